"""`optdyn bench`: run a suite, show a table, write JSON after every row."""

import json as json_module
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from optdyn import viz
from optdyn.cli import _errors, _output
from optdyn.cli._document import write
from optdyn.cli._errors import BadInputError
from optdyn.cli._progress import SolveProgress
from optdyn.cli._worker import call_in_thread

_WIDTH = 120
_HEADINGS = {"lower_level_solves": "solves", "lower_level_failed": "failed", "cpu_s": "CPU s"}


@dataclass(frozen=True)
class BenchRequest:
    """The arguments of `optdyn bench`, as the user gave them."""

    suite: str
    quick: bool
    seeds: int
    peers: str | None
    json: Path | None
    plot: Path | None
    resume: bool
    quiet: bool


def bench(request: BenchRequest) -> int:
    """Run the suite; returns the exit code."""
    tasks, columns = _prepare(request)
    from optdyn import bench as benches

    settings = {"quick": request.quick, "seeds": 1 if request.quick else request.seeds}
    rows = _earlier_rows(request, settings) if request.resume else []
    done = {(row["case"], row["method"]) for row in rows}
    document = {"suite": request.suite, "settings": settings, "machine": benches.machine(), "rows": rows}
    with SolveProgress(f"bench {request.suite}", enabled=not request.quiet) as progress:
        for i, task in enumerate(tasks):
            if (task.case, task.method) in done:
                continue
            progress.phase(f"{i + 1} of {len(tasks)}: {task.case}, {task.method}")
            rows.append(call_in_thread(task.row))
            if request.json is not None:
                with _output.atomic(request.json) as path:
                    write({**document, "complete": len(rows) == len(tasks)}, path)
    if request.plot is not None:
        with _output.atomic(request.plot) as path:
            benches.plot(request.suite, rows, path)
    if not request.quiet:
        wide = max(Console().width, _WIDTH)  # a narrow terminal wraps lines rather than losing numbers
        Console(width=wide).print(table(request.suite, rows, columns), soft_wrap=True)
        for path in (request.json, request.plot):
            if path is not None:
                Console().print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
    return _errors.SUCCESS


def _prepare(request: BenchRequest) -> tuple[list[Any], tuple[str, ...]]:
    """Check everything that can be wrong, then load the library and the tasks."""
    outputs = [("--json", request.json, (".json",)), ("--plot", request.plot, viz.PLOT_EXTENSIONS)]
    for option, path, known in outputs:
        if path is not None:
            _output.check_extension(option, path, known)
            _output.prepare(option, path)
    if request.resume and request.json is None:
        raise BadInputError("--resume needs --json FILE, the file of the run to go on with")
    import jax

    jax.config.update("jax_enable_x64", True)
    from optdyn import bench as benches

    if request.suite not in benches.available():
        known = ", ".join(benches.available())
        raise BadInputError(f"unknown suite {request.suite!r}; choose from: {known} (see `optdyn list`)")
    if request.plot is not None and request.suite != "smoothing":
        raise BadInputError(f"--plot: the suite {request.suite} has no figure; only smoothing has one")
    if request.plot is not None and viz.missing_packages(request.plot.suffix):
        raise BadInputError("--plot needs matplotlib; run `pip install 'optdyn[viz]'`")
    peers = None if request.peers is None else tuple(name for name in request.peers.split(",") if name)
    unknown = sorted(set(peers or ()) - {"mujoco", "casadi"})
    if unknown:
        raise BadInputError(f"--peers: unknown {', '.join(unknown)}; choose from: mujoco, casadi")
    options = benches.Options(seeds=request.seeds, quick=request.quick, peers=peers)
    return benches.tasks(request.suite, options), benches.columns(request.suite)


def _earlier_rows(request: BenchRequest, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the file that `--resume` goes on with; none if there is no such file."""
    if request.json is None or not request.json.exists():
        return []
    try:
        found = json_module.loads(request.json.read_text(encoding="utf-8"))
        suite, earlier, rows = found["suite"], found["settings"], list(found["rows"])
        complete_rows = all({"case", "method"} <= set(row) for row in rows)
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInputError(f"--resume: {request.json} is no result of `optdyn bench`") from None
    if suite != request.suite or earlier != settings or not complete_rows:
        raise BadInputError(f"--resume: {request.json} was made by another suite or with other options")
    return rows


def table(suite: str, rows: list[dict[str, Any]], columns: tuple[str, ...]) -> Table:
    """Rows as a table; cases are named once."""
    made = Table(box=None, padding=(0, 2, 0, 0), title=f"bench {suite}", title_justify="left")
    made.add_column("case", style="bold", no_wrap=True)
    made.add_column("method", no_wrap=True)
    for name in columns:
        made.add_column(_HEADINGS.get(name, name), justify="right", no_wrap=True)
    last = None
    for row in rows:
        case = row["case"] if row["case"] != last else ""
        last = row["case"]
        if "skipped" in row:
            made.add_row(case, f"{row['method']} ({row['skipped']})")
        else:
            made.add_row(case, row["method"], *(_cell(name, row) for name in columns))
    return made


def _cell(name: str, row: dict[str, Any]) -> str:
    value = row.get(name)
    if name == "solved":
        return f"{value}/{row['seeds']}"
    if value is None:
        return ""
    if name == "violation":
        return f"{value:.1e}"
    return f"{value:.4g}" if isinstance(value, float) and abs(value) < 1e4 else f"{value:.0f}"
