"""Charts of a plan: the quantities that the scenario wants seen, and the convergence of the optimizer."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from optdyn.viz._curves import held, limit_lines
from optdyn.viz._palette import COLORS, FAINT, GOAL, INK, LIMIT
from optdyn.viz._style import TICK_SIZE, legend_above, style_chart

_COLOR_OF = {"limit": LIMIT, "goal": GOAL}


def draw_panel(axes: Axes, panel: Any, *, xlabel: str = "") -> None:
    """Draw one panel: its series over time, its limits and goals as dashed lines."""
    style_chart(axes, title=panel.title, ylabel=f"[{panel.unit}]" if panel.unit else "", xlabel=xlabel)
    times = np.asarray(panel.times, dtype=float)
    for color, (name, values) in zip(_cycle(len(panel.series)), panel.series.items(), strict=True):
        y = np.asarray(values, dtype=float)
        if panel.kind == "step":
            edges, steps = held(times, y)
            axes.plot(edges, steps, drawstyle="steps-post", color=color, linewidth=1.4, label=name)
        else:
            axes.plot(times[: y.size], y, color=color, linewidth=1.7, label=name)
    far = _draw_limits(axes, panel)
    if far:
        text = "outside this view: " + ", ".join(f"{value:.4g}" for value in far)
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5}
        axes.text(
            0.99, 0.04, text, transform=axes.transAxes, ha="right", fontsize=TICK_SIZE, color=LIMIT, bbox=box
        )
    shown = len(axes.get_legend_handles_labels()[0])
    if shown > 1 or (shown == 1 and next(iter(panel.series)) != panel.title):
        legend_above(axes, shown)


def draw_convergence(cost_axes: Axes, violation_axes: Axes, history: Any, count: int) -> None:
    """Draw cost and constraint violation against the inner iteration, and mark the outer rounds.

    Arguments:
        cost_axes: upper chart.
        violation_axes: lower chart.
        history: arrays `cost`, `violation` and `outer` of fixed length.
        count: how many of their entries are meant.
    """
    cost, violation, outer = (
        np.asarray(values, dtype=float)[:count] for values in (history.cost, history.violation, history.outer)
    )
    style_chart(cost_axes, title="Convergence", ylabel="cost")
    style_chart(violation_axes, ylabel="violation", xlabel="inner iteration")
    cost_axes.tick_params(labelbottom=False)
    if count == 0:
        cost_axes.text(0.5, 0.5, "no iterations", transform=cost_axes.transAxes, ha="center", color=FAINT)
        return
    for axes, values, color in ((cost_axes, cost, COLORS[0]), (violation_axes, violation, COLORS[1])):
        _draw_history(axes, values, color)
    rounds = 1.5 + np.flatnonzero(np.diff(outer) != 0)
    for axes in (cost_axes, violation_axes):
        axes.set_xlim(0.5, count + 0.5)
        for position in rounds:
            axes.axvline(position, color=FAINT, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    if rounds.size:
        text = f"{rounds.size + 1} outer rounds (dotted)"
        cost_axes.set_title(text, loc="right", fontsize=TICK_SIZE, color=INK)


def _draw_history(axes: Axes, values: np.ndarray, color: str) -> None:
    positive = values[np.isfinite(values) & (values > 0)]
    finite = values[np.isfinite(values)]
    # Zeros have no place on a log scale, but one exact zero is no reason to give the scale up.
    logarithmic = positive.size > 0 and np.all(finite >= 0) and positive.max() > 30 * positive.min()
    if logarithmic:
        axes.set_yscale("log")
        values = np.where(values > 0, values, np.nan)
    marker = "o" if values.size <= 40 else ""
    axes.plot(1 + np.arange(values.size), values, color=color, linewidth=1.4, marker=marker, markersize=3)


def _draw_limits(axes: Axes, panel: Any) -> list[float]:
    """Draw the limits and goals that lie near the data; returns the others."""
    far: list[float] = []
    named: set[str] = set()
    for line in limit_lines(panel):
        if not line.near:
            far.append(line.value)
            continue
        color, label = _COLOR_OF[line.name], None if line.name in named else line.name
        axes.axhline(line.value, color=color, linewidth=1.2, linestyle=(0, (5, 3)), label=label, zorder=1.9)
        named.add(line.name)
    return far


def _cycle(count: int) -> list[str]:
    return [COLORS[i % len(COLORS)] for i in range(count)]
