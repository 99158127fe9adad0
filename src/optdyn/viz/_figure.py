"""The one figure that explains a solution: motion, quantities, convergence."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpecFromSubplotSpec

from optdyn._results import result_name
from optdyn.viz._charts import draw_convergence, draw_panel
from optdyn.viz._motion import Motion, record_motion
from optdyn.viz._palette import INK
from optdyn.viz._shapes import add_shape, add_trail
from optdyn.viz._style import LABEL_SIZE, TICK_SIZE, new_figure, style_scene, time_colors

# A motion wider than this travels; it gets the whole width of the figure and one picture for all of it.
_WIDE = 1.7
# A motion in place is cut into windows of time, because poses on top of one another cannot be read.
_WINDOWS = (2, 3)
_POSES_PER_WINDOW = 6
_POSES_IN_ONE = 14
# Line widths of a scenario are meant for one drawing of its own; here the drawings are small.
_WIDTHS = 0.6
# Taller charts of the convergence would say no more.
_CONVERGENCE_INCHES = 4.4


def draw_figure(scenario: Any, plan: Any) -> Figure:
    """Draw the figure of one plan; see `optdyn.viz.plot`."""
    motion = record_motion(scenario, plan)
    panels = list(scenario.panels(plan))
    rows = max(len(panels), 1)
    if motion.aspect > _WIDE:
        charts = max(1.75 * rows, _CONVERGENCE_INCHES)
        figure = new_figure(12.5, 3.2 + charts)
        top, below = figure.add_gridspec(2, 1, height_ratios=[3.2, charts])
        _draw_motion(figure, top, motion, windows=(1, 1))
        left, right = GridSpecFromSubplotSpec(1, 2, below, width_ratios=[1.0, 1.5])
        half = _CONVERGENCE_INCHES / 2
        convergence = GridSpecFromSubplotSpec(
            3, 1, left, height_ratios=[half, half, max(charts - 2 * half, 0.01)]
        )
    else:
        figure = new_figure(13.0, max(1.9 * rows, 7.4))
        left, right = figure.add_gridspec(1, 2, width_ratios=[1.0, 1.3])
        top, below = GridSpecFromSubplotSpec(2, 1, left, height_ratios=[1.8, 1.0])
        _draw_motion(figure, top, motion, windows=_WINDOWS)
        convergence = GridSpecFromSubplotSpec(2, 1, below)

    cost_axes = figure.add_subplot(convergence[0])
    violation_axes = figure.add_subplot(convergence[1], sharex=cost_axes)
    draw_convergence(cost_axes, violation_axes, plan.stats.history, int(plan.stats.inner_iterations))
    _draw_panels(figure, right, panels)
    figure.suptitle(_headline(motion, plan), x=0.01, ha="left", fontsize=13, color=INK)
    return figure


def _draw_panels(figure: Figure, place: Any, panels: list[Any]) -> None:
    grid = GridSpecFromSubplotSpec(max(len(panels), 1), 1, place)
    first: Axes | None = None
    for i, panel in enumerate(panels):
        axes = figure.add_subplot(grid[i], sharex=first)
        first = axes if first is None else first
        last = i == len(panels) - 1
        draw_panel(axes, panel, xlabel="time [s]" if last else "")
        axes.tick_params(labelbottom=last)


def _draw_motion(figure: Figure, place: Any, motion: Motion, windows: tuple[int, int]) -> None:
    """Stroboscopic pictures, one for each window of time."""
    rows, columns = windows
    count = rows * columns
    edges = np.linspace(0, len(motion.frames) - 1, count + 1).round().astype(int)
    poses = _POSES_IN_ONE if count == 1 else _POSES_PER_WINDOW
    cmap, norm = time_colors(), Normalize(motion.times[0], motion.times[-1])
    grid = GridSpecFromSubplotSpec(rows, columns, place)
    all_axes = []
    for window in range(count):
        axes = figure.add_subplot(grid[window // columns, window % columns])
        first, last = int(edges[window]), int(edges[window + 1])
        style_scene(axes, motion.extent, ticks=count == 1)
        _draw_window(axes, motion, first, last, poses, cmap, norm)
        if count > 1:
            span = f"{motion.times[first]:.2f} to {motion.times[last]:.2f} s"
            axes.set_title(span, fontsize=TICK_SIZE, color=INK, pad=3)
        all_axes.append(axes)
    bar = figure.colorbar(
        ScalarMappable(norm, cmap), ax=all_axes, location="bottom", aspect=50, shrink=0.9, pad=0.02
    )
    bar.set_label("time [s]", fontsize=LABEL_SIZE, color=INK)
    bar.ax.tick_params(labelsize=TICK_SIZE, colors=INK)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]


def _draw_window(axes: Axes, motion: Motion, first: int, last: int, poses: int, cmap: Any, norm: Any) -> None:
    for shape in motion.standing:
        add_shape(axes, shape, width_scale=_WIDTHS, zorder=1.0)
    colors = [cmap(norm(time)) for time in motion.times]
    if last > first:
        add_trail(axes, motion.tip[first : last + 1], colors[first:last], width=1.1)
    chosen = np.unique(np.linspace(first, last, poses).round().astype(int))
    for i in chosen:
        newest = i == chosen[-1]
        for shape in motion.moving(int(i)):
            add_shape(
                axes,
                shape,
                color=colors[i],
                alpha=1.0 if newest else 0.4,
                outline=not newest,
                width_scale=_WIDTHS if newest else 0.6 * _WIDTHS,
                zorder=3.0 if newest else 2.0,
            )


def _headline(motion: Motion, plan: Any) -> str:
    return (
        f"{motion.title}: {result_name(plan.result)}, cost {float(plan.cost):.5g}, violation "
        f"{float(plan.constraint_violation):.1e}, {int(plan.stats.inner_iterations)} iterations in "
        f"{int(plan.stats.outer_iterations)} outer rounds"
    )
