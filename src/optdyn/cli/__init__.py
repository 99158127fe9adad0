"""The command line. `main` is the console script; `run` is the same without ending the process."""

from optdyn.cli._app import main, run

__all__ = ["main", "run"]
