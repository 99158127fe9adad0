"""The table that ends `optdyn solve`."""

from typing import Any

from rich.table import Table
from rich.text import Text


def summary(content: dict[str, Any], message: str) -> Table:
    """A table of the figures in `content`, the JSON document of the same run.

    Arguments:
        content: what `document` returned.
        message: what the result code means; shown when the plan did not converge.
    """
    solved = content["result"] == "successful"
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0), title_justify="left")
    table.title = Text(f"{content['scenario']} ({content['variant']})", style="bold")
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")

    table.add_row("result", Text(content["result"], style="bold green" if solved else "bold red"))
    if not solved and message:
        table.add_row("", Text(message))
    table.add_row("cost", f"{content['cost']:.6g}")
    table.add_row("goal error", f"{content['goal_error']:.2e}")
    table.add_row("constraint violation", f"{content['constraint_violation']:.2e}")
    iterations = content["iterations"]
    table.add_row("iterations", f"{iterations['inner']} in {iterations['outer']} outer rounds")
    _add_lower_level(table, content["lower_level"])
    time = content["time"]
    table.add_row("compile", f"{time['compile_s']:.2f} s")
    table.add_row("solve", f"{time['solve_s']:.3f} s (compiled, {content['dtype']})")
    table.add_row("first result", f"{time['first_result_s']:.1f} s after start")
    return table


def _add_lower_level(table: Table, lower: dict[str, Any]) -> None:
    if not lower["solves"]:
        table.add_row("lower level", "none (explicit dynamics)")
        return
    text = Text(f"{lower['solves']} solves, ")
    text.append(f"{lower['failed']} failed", style="bold red" if lower["failed"] else "")
    table.add_row("lower level", text)
    table.add_row("steps per solve", f"{lower['steps_mean']:.1f} mean, {lower['steps_max']} max")
    table.add_row("largest residual", f"{lower['residual_max']:.1e}")
