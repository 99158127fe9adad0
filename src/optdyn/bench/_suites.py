"""Names of the suites, and how to get their tasks."""

import importlib
from dataclasses import dataclass

from optdyn.bench._task import Options, Task


@dataclass(frozen=True)
class Suite:
    """A suite: its module has `tasks(options)`; `columns` are the numbers a table shows."""

    module: str
    description: str
    columns: tuple[str, ...]


_SUITES = {
    "dynamics": Suite(
        "_dynamics",
        "gradients and transcriptions on the same problems",
        ("solved", "iterations", "cost", "violation", "lower_level_solves", "lower_level_failed", "cpu_s"),
    ),
    "ggn": Suite(
        "_ggn",
        "generalized Gauss-Newton against sampling in closed loop: cost, time, dimension, environments",
        ("variables", "environments", "cost", "completed", "cpu_s", "cpu_s_per_solve"),
    ),
    "smoothing": Suite(
        "_smoothing",
        "success and iterations against the smoothing, on the central path and below it",
        ("solved", "iterations", "cost", "violation", "cpu_s"),
    ),
}


def available() -> dict[str, str]:
    """Suites and what they measure."""
    return {name: suite.description for name, suite in _SUITES.items()}


def columns(suite: str) -> tuple[str, ...]:
    """Numbers that a table of the suite shows."""
    return _SUITES[suite].columns


def tasks(suite: str, options: Options) -> list[Task]:
    """The measurements of a suite, in order.

    Raises:
        KeyError: for an unknown suite.
    """
    return importlib.import_module(f"optdyn.bench.{_SUITES[suite].module}").tasks(options)
