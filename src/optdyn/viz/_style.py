"""Looks shared by the pictures that matplotlib draws: sizes, bare axes.

Everything is set on the objects themselves; matplotlib's global settings are left as the user has them.
"""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure

from optdyn.viz._palette import FAINT, GRID, INK

TITLE_SIZE = 11.0
LABEL_SIZE = 9.5
TICK_SIZE = 8.5


def new_figure(width: float, height: float, *, dpi: float = 100, constrained: bool = True) -> Figure:
    """A figure with an Agg canvas of its own, unknown to pyplot."""
    figure = Figure(
        figsize=(width, height), dpi=dpi, facecolor="white", layout="constrained" if constrained else None
    )
    FigureCanvasAgg(figure)
    return figure


def time_colors() -> Colormap:
    """Colours from early to late, dark to light; the palest end is cut off because it vanishes on white."""
    import matplotlib as mpl

    viridis = mpl.colormaps["viridis"]
    return LinearSegmentedColormap.from_list("optdyn_time", [viridis(0.92 * i / 63) for i in range(64)])


def style_chart(axes: Axes, *, title: str = "", ylabel: str = "", xlabel: str = "") -> None:
    """Make axes of a chart: light grid, no box, title on the left."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
    axes.tick_params(labelsize=TICK_SIZE, colors=INK, color=FAINT)
    axes.grid(visible=True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_title(title, loc="left", fontsize=TITLE_SIZE, color=INK)
    axes.set_ylabel(ylabel, fontsize=LABEL_SIZE, color=INK)
    axes.set_xlabel(xlabel, fontsize=LABEL_SIZE, color=INK)
    axes.margins(x=0.01)


def style_scene(axes: Axes, extent: tuple[float, float, float, float], *, ticks: bool) -> None:
    """Make axes of a drawing: equal scales, the given extent, and ticks in metres only if wanted."""
    xmin, xmax, ymin, ymax = extent
    axes.set_xlim(xmin, xmax)
    axes.set_ylim(ymin, ymax)
    axes.set_aspect("equal")
    for spine in axes.spines.values():
        spine.set_color(GRID)
    if ticks:
        axes.tick_params(labelsize=TICK_SIZE, colors=INK, color=FAINT)
    else:
        axes.set_xticks([])
        axes.set_yticks([])


def legend_above(axes: Axes, entries: int, **options: Any) -> None:
    """A legend on the title's line at the right, where it hides no data."""
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 0.98),
        ncols=max(entries, 1),
        frameon=False,
        fontsize=TICK_SIZE,
        handlelength=1.6,
        columnspacing=1.2,
        borderaxespad=0.2,
        **options,
    )
