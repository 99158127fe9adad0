"""`optdyn solve`: load a scenario, optimize its trajectory, report."""

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from optdyn import viz
from optdyn.cli import _errors, _output
from optdyn.cli._document import Timing, document, write
from optdyn.cli._errors import BadInputError
from optdyn.cli._progress import SolveProgress
from optdyn.cli._summary import summary
from optdyn.cli._worker import call_in_thread, process_age


@dataclass(frozen=True)
class SolveRequest:
    """The arguments of `optdyn solve`, as the user gave them."""

    scenario: str
    variant: str | None
    seed: int
    central_path: float | None
    smoothing: float | None
    dtype: str
    json: Path | None
    plot: Path | None
    animate: Path | None
    quiet: bool

    def outputs(self) -> list[tuple[str, Path, tuple[str, ...]]]:
        """Option, file and allowed extensions of every output that was asked for."""
        candidates = (
            ("--json", self.json, (".json",)),
            ("--plot", self.plot, viz.PLOT_EXTENSIONS),
            ("--animate", self.animate, viz.ANIMATION_EXTENSIONS),
        )
        return [(option, path, known) for option, path, known in candidates if path is not None]


def solve(request: SolveRequest) -> int:
    """Solve what was asked for; returns the exit code."""
    _check(request)
    od, scenario = _load(request)
    for option, path, _ in request.outputs():
        _output.prepare(option, path)

    title = f"{scenario.name} ({scenario.variant})"
    with SolveProgress(title, enabled=not request.quiet) as progress:
        plan, timing = _optimize(od, scenario, progress, request)
        content = document(
            scenario,
            plan,
            result=od.result_name(plan.result),
            goal_error=float(scenario.goal_error(plan)),
            timing=timing,
            dtype=request.dtype,
        )
        _write_outputs(request, scenario, plan, content, progress)

    if not request.quiet:
        _report(request, content, str(od.RESULTS[plan.result]))
    return _errors.SUCCESS if content["result"] == "successful" else _errors.NOT_CONVERGED


def _check(request: SolveRequest) -> None:
    """Everything that can be wrong without knowing the scenario."""
    for option, value in (("--central-path", request.central_path), ("--smoothing", request.smoothing)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise BadInputError(f"{option} {value:g} is not a positive number; give one such as 1e-4")
    for option, path, known in request.outputs():
        _output.check_extension(option, path, known)
        missing = viz.missing_packages(path.suffix) if option != "--json" else ()
        if missing:
            raise BadInputError(
                f"{option} {path} needs {' and '.join(missing)}; run `pip install 'optdyn[viz]'`"
            )
    _output.check_distinct([path for _, path, _ in request.outputs()])


def _load(request: SolveRequest) -> tuple[Any, Any]:
    """The library and the scenario, in the precision asked for."""
    import jax
    import numpy as np

    # The library leaves this to its users, and here the user is the command line. No array exists yet.
    jax.config.update("jax_enable_x64", request.dtype == "float64")
    import optdyn as od

    try:
        scenario = od.systems.load(
            request.scenario,
            request.variant,
            seed=request.seed,
            central_path=request.central_path,
            smoothing=request.smoothing,
            dtype=np.dtype(request.dtype),
        )
    except od.ScenarioError as error:
        raise BadInputError(f"{error} (see `optdyn list`)") from None
    return od, scenario


def _optimize(od: Any, scenario: Any, progress: SolveProgress, request: SolveRequest) -> tuple[Any, Timing]:
    """Solve, then solve again with what is compiled by now, so that both times are measured."""
    import jax

    callback = None if request.quiet else progress.record  # one object: a second one would compile again

    def once() -> tuple[Any, float]:
        started = time.perf_counter()
        plan = od.optimize_trajectory(
            scenario.problem,
            scenario.x0,
            scenario.controls,
            solver=scenario.solver,
            throw=False,
            callback=callback,
        )
        return jax.block_until_ready(plan), time.perf_counter() - started

    progress.phase("compiling")
    plan, first = call_in_thread(once)
    first_result = process_age()
    if request.quiet and request.json is None:
        return plan, Timing(compile_s=math.nan, solve_s=math.nan, first_result_s=first_result)
    progress.phase("timing the compiled program", follow=False)
    _, second = call_in_thread(once)
    return plan, Timing(compile_s=max(first - second, 0.0), solve_s=second, first_result_s=first_result)


def _write_outputs(
    request: SolveRequest, scenario: Any, plan: Any, content: dict[str, Any], progress: SolveProgress
) -> None:
    if request.json is not None:
        with _output.atomic(request.json) as path:
            write(content, path)
    if request.plot is not None:
        progress.phase("drawing the figure", follow=False)
        with _output.atomic(request.plot) as path:
            viz.plot(scenario, plan, path)
    if request.animate is not None:
        progress.phase("drawing the animation", follow=False)
        with _output.atomic(request.animate) as path:
            viz.animate(scenario, plan, path)


def _report(request: SolveRequest, content: dict[str, Any], message: str) -> None:
    console = Console()
    console.print(summary(content, message))
    for _, path, _ in request.outputs():
        console.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
