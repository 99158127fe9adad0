"""Arguments of every command, and the one place that turns what happened into an exit code.

Nothing heavy is imported here: `optdyn --help` has to be quick.
"""

import enum
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from optdyn.cli import _errors
from optdyn.cli._errors import BadInputError, InterruptedByUserError, interruptible, one_line

app = typer.Typer(
    name="optdyn",
    help="Optimization-based dynamics: solve ready-made trajectory optimization problems, and look at them.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Dtype(enum.StrEnum):
    """Floating-point type of a whole run."""

    float64 = "float64"
    float32 = "float32"


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"optdyn {version('optdyn')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command("list")
def list_command() -> int:
    """List the scenarios with their variants, and the suites of measured comparisons."""
    from optdyn.cli._list import list_scenarios

    with interruptible():
        list_scenarios()
    return _errors.SUCCESS


@app.command("solve")
def solve_command(
    scenario: Annotated[str, typer.Argument(help="A name that `optdyn list` shows.", show_default=False)],
    variant: Annotated[
        str | None, typer.Option(help="Variant of the scenario; its first one if absent.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the initial guess.")] = 0,
    central_path: Annotated[
        float | None, typer.Option(metavar="K", help="Central-path parameter of the lower-level solve.")
    ] = None,
    smoothing: Annotated[
        float | None, typer.Option(metavar="K", help="Central-path parameter that derivatives are taken at.")
    ] = None,
    dtype: Annotated[Dtype, typer.Option(help="Floating-point type.")] = Dtype.float64,
    json: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write the result as JSON.")] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Write a figure (png, pdf or svg).")
    ] = None,
    animate: Annotated[
        Path | None, typer.Option(metavar="FILE.gif", help="Write an animation (gif or html).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")] = False,
) -> int:
    """Optimize the trajectory of SCENARIO.

    The exit code is 0 only if the result is `successful`, 1 if it is not, and 2 on bad input.
    """
    from optdyn.cli._solve import SolveRequest, solve

    request = SolveRequest(
        scenario=scenario,
        variant=variant,
        seed=seed,
        central_path=central_path,
        smoothing=smoothing,
        dtype=dtype.value,
        json=json,
        plot=plot,
        animate=animate,
        quiet=quiet,
    )
    with interruptible():
        return solve(request)


@app.command("bench")
def bench_command(
    suite: Annotated[str, typer.Argument(help="A suite that `optdyn list` shows.", show_default=False)],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer cases, one seed.")] = False,
    seeds: Annotated[int, typer.Option(min=1, help="Runs per case and method.")] = 5,
    peers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Peers to use; all that are installed if absent."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write the rows as JSON, after each of them.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="Write a figure (png, pdf or svg)."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the rows that are in the JSON file, measure the others.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no table.")] = False,
) -> int:
    """Run the measured comparisons of SUITE."""
    from optdyn.cli._bench import BenchRequest, bench

    request = BenchRequest(
        suite=suite, quick=quick, seeds=seeds, peers=peers, json=json, plot=plot, resume=resume, quiet=quiet
    )
    with interruptible():
        return bench(request)


@app.command("view")
def view_command(
    result: Annotated[
        Path,
        typer.Argument(metavar="RESULT.json", help="What `optdyn solve --json` wrote.", show_default=False),
    ],
    port: Annotated[
        int | None,
        typer.Option(
            metavar="P", min=0, max=65535, help="Port of the page; the first free one from 8080 on if absent."
        ),
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
) -> int:
    """Show a result in a browser: play, scrub, contact forces, charts. Ctrl-C ends it.

    The exit code is 0 after Ctrl-C, and 2 on bad input.
    """
    from optdyn.cli._view import view

    with interruptible():
        return view(result, port, open_browser=not no_open)


class Controller(enum.StrEnum):
    """Controllers of `optdyn mpc`."""

    ggn = enum.auto()
    ilqr = enum.auto()
    dial = enum.auto()
    mppi = enum.auto()


@app.command("mpc")
def mpc_command(
    task: Annotated[str, typer.Argument(help="A task that `optdyn list` shows.", show_default=False)],
    controller: Annotated[Controller, typer.Option(help="Who plans.")] = Controller.ggn,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Control steps; those of the task if absent.")
    ] = None,
    knots: Annotated[
        int | None, typer.Option(min=1, help="Knots of the controls; those of the task if absent.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the initial state and of sampling.")] = 0,
    json: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write the episode as JSON.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")] = False,
) -> int:
    """Control TASK in a receding horizon.

    The exit code is 0 only if the plant went through all steps, 1 if it did not, and 2 on bad input.
    """
    from optdyn.cli._mpc import MPCRequest, mpc

    request = MPCRequest(
        task=task,
        controller=controller.value,
        steps=steps,
        knots=knots,
        seed=seed,
        json=json,
        quiet=quiet,
    )
    with interruptible():
        return mpc(request)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` default to those of the process."""
    try:
        code = app(args=None if arguments is None else list(arguments), standalone_mode=False)
    except BadInputError as error:
        return _fail(one_line(error), _errors.BAD_INPUT)
    except typer.TyperException as error:
        return _fail(
            f"{one_line(error.format_message()).rstrip('.')} (see `optdyn --help`)", _errors.BAD_INPUT
        )
    except (InterruptedByUserError, KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", _errors.INTERRUPTED)
    except BrokenPipeError:
        # The reader went away (`optdyn list | head -1`); give the interpreter's last flush somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _errors.SUCCESS
    except Exception as error:
        traceback.print_exc()
        return _fail(f"internal error, please report it: {one_line(error)}", _errors.INTERNAL_ERROR)
    return int(code or 0)


def main() -> NoReturn:
    """Run the command line of this process."""
    code = run()
    if code == _errors.INTERRUPTED:
        # A compiled solve cannot be stopped from outside and would hold the interpreter's shutdown back.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _fail(message: str, code: int) -> int:
    print(f"optdyn: {message}", file=sys.stderr)
    return code
