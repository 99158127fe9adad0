"""Figures of suites. matplotlib is imported only to draw one."""

import math
from os import PathLike
from typing import Any

_LINES = (("#0072B2", "o-"), ("#D55E00", "s--"))
_LABELS = {"on the path": "at kappa, on the central path", "below": "anywhere below kappa"}


def plot(suite: str, rows: list[dict[str, Any]], path: str | PathLike[str]) -> None:
    """Draw the rows of the suite `smoothing` and write the figure.

    Above: share of the seeds that were solved. Below: median number of iterations of the solved ones.

    Raises:
        ValueError: for a suite that has no figure.
    """
    if suite != "smoothing":
        raise ValueError(f"the suite {suite!r} has no figure; only 'smoothing' has one")
    from matplotlib.figure import Figure

    cases = list(dict.fromkeys(row["case"] for row in rows))
    figure = Figure(figsize=(3.6 * len(cases), 5.2), layout="constrained")
    grid = figure.subplots(2, len(cases), squeeze=False, sharex=True)
    for column, case in enumerate(cases):
        above, below = grid[:, column]
        most, least = 0.0, math.inf
        for (color, line), (rule, points) in zip(_LINES, _curves(rows, case).items(), strict=False):
            smoothing, share, iterations = zip(*points, strict=True)
            look = {"color": color, "markerfacecolor": "white" if line == "s--" else color}
            above.plot(smoothing, share, line, label=_LABELS.get(rule, rule), **look)
            below.plot(smoothing, iterations, line, **look)
            solved = [number for number in iterations if not math.isnan(number)]
            most, least = max([most, *solved]), min([least, *solved])
        above.set_title(case.replace("/", "\n"), fontsize=10)
        above.set_ylim(-5, 105)
        if most > 8 * least > 0:
            below.set_yscale("log")
            below.set_ylim(least / 1.5, most * 1.5)
        elif most > 0:
            below.set_ylim(0, 1.08 * most)
        below.set_xscale("log")
        below.set_xlabel("smoothing of the derivatives")
        for axes in (above, below):
            axes.grid(alpha=0.3)
            axes.spines[["top", "right"]].set_visible(False)
    grid[0, 0].set_ylabel("solved [percent]")
    grid[1, 0].set_ylabel("iterations, median")
    grid[0, 0].legend(loc="lower left", fontsize=8)
    figure.savefig(path, dpi=140)


def _curves(rows: list[dict[str, Any]], case: str) -> dict[str, list[tuple[float, float, float]]]:
    """By rule: (smoothing, percent solved, iterations), in the order of smoothing."""
    curves: dict[str, list[tuple[float, float, float]]] = {}
    for row in rows:
        if row["case"] == case:
            rule, _, smoothing = row["method"].rpartition(", ")
            iterations = math.nan if row["iterations"] is None else row["iterations"]
            curves.setdefault(rule, []).append(
                (float(smoothing), 100 * row["solved"] / row["seeds"], iterations)
            )
    return {rule: sorted(points) for rule, points in curves.items()}
