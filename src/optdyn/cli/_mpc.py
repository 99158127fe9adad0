"""`optdyn mpc`: control a task in a closed loop, report cost and the time of every step."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from optdyn.cli import _errors, _output
from optdyn.cli._document import versions, write
from optdyn.cli._errors import BadInputError
from optdyn.cli._progress import SolveProgress
from optdyn.cli._worker import call_in_thread

CONTROLLERS = ("ggn", "ilqr", "dial", "mppi")
_REPORTS = 8  # lines of progress where stderr is not a terminal


@dataclass(frozen=True)
class MPCRequest:
    """The arguments of `optdyn mpc`, as the user gave them."""

    task: str
    controller: str
    steps: int | None
    knots: int | None
    seed: int
    json: Path | None
    quiet: bool


def mpc(request: MPCRequest) -> int:
    """Run the closed loop; returns the exit code, 0 only if the plant went through all steps."""
    if request.json is not None:
        _output.check_extension("--json", request.json, (".json",))
        _output.prepare("--json", request.json)
    import jax

    jax.config.update("jax_enable_x64", True)
    import optdyn as od

    try:
        task = od.systems.load_task(request.task, seed=request.seed, num_knots=request.knots)
    except od.ScenarioError as error:
        raise BadInputError(f"{error} (see `optdyn list`)") from None
    controller = _controller(request.controller, task)
    steps = task.steps if request.steps is None else request.steps
    with SolveProgress(f"mpc {task.name}, {request.controller}", enabled=not request.quiet) as progress:
        progress.phase("compiling")

        def follow(k: int, report: Any, seconds: float) -> None:
            if (k + 1) % max(steps // _REPORTS, 1) == 0:
                merit = float(report.merit)
                progress.phase(f"step {k + 1} of {steps}, plan costs {merit:.4g}, {1e3 * seconds:.1f} ms")

        episode = call_in_thread(
            lambda: od.mpc.closed_loop(
                controller,
                task.task,
                task.plant,
                task.x0,
                steps,
                controls=task.controls,
                key=jax.random.key(request.seed),
                callback=follow,
            )
        )
    content = _document(request, task, episode)
    if request.json is not None:
        with _output.atomic(request.json) as path:
            write(content, path)
    if not request.quiet:
        Console().print(_summary(content))
        if request.json is not None:
            Console().print(f"wrote {request.json}", markup=False, highlight=False, soft_wrap=True)
    return _errors.SUCCESS if episode.completed else _errors.NOT_CONVERGED


def _controller(name: str, task: Any) -> Any:
    from optdyn import mpc
    from optdyn.trajopt import ILQR, AugmentedLagrangian

    if name == "ggn":
        return mpc.GaussNewtonMPC()
    if name == "ilqr":
        return mpc.ILQRMPC(AugmentedLagrangian(ILQR(max_iterations=3), max_rounds=3, initial_penalty=10.0))
    if name == "dial":
        return mpc.DIALMPC(task.spread)
    return mpc.MPPI(task.spread, task.temperature, 512)


def _document(request: MPCRequest, task: Any, episode: Any) -> dict[str, Any]:
    seconds = episode.seconds
    return {
        "task": task.name,
        "controller": request.controller,
        "seed": request.seed,
        "completed": episode.completed,
        "cost": episode.cost,
        "goal_error": float(task.goal_error(episode.states[-1])),
        "steps": len(seconds),
        "time": {
            "compile_s": episode.compile_seconds,
            "median_s": float(np.median(seconds)),
            "largest_s": float(np.max(seconds)),
            "step_s": task.dt,
        },
        "versions": versions(),
        "states": episode.states.tolist(),
        "controls": episode.controls.tolist(),
        "stage_costs": episode.stage_costs.tolist(),
        "plan_costs": episode.merits.tolist(),
        "results": list(episode.results),
        "seconds": seconds.tolist(),
    }


def _summary(content: dict[str, Any]) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0), title_justify="left")
    table.title = f"{content['task']}, {content['controller']}"
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("completed", "yes" if content["completed"] else "no: the plant failed")
    table.add_row("cost", f"{content['cost']:.6g}")
    table.add_row("goal error", f"{content['goal_error']:.2e}")
    counts = {name: content["results"].count(name) for name in sorted(set(content["results"]))}
    table.add_row("results", ", ".join(f"{name} {count}" for name, count in counts.items()))
    time = content["time"]
    table.add_row("compile", f"{time['compile_s']:.2f} s")
    table.add_row(
        "control step", f"{1e3 * time['median_s']:.2f} ms median, {1e3 * time['largest_s']:.2f} largest"
    )
    table.add_row("real time", f"{1e3 * time['step_s']:.0f} ms for a step")
    return table
