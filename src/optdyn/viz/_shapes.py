"""Shapes of a scenario as matplotlib artists."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Polygon

from optdyn.viz._motion import finite_shape


def add_shape(
    axes: Axes,
    shape: Any,
    *,
    color: Any = None,
    alpha: float = 1.0,
    outline: bool = False,
    width_scale: float = 1.0,
    zorder: float = 2.0,
) -> Artist | None:
    """Draw one shape.

    Arguments:
        axes: where.
        shape: a polyline, disc or polygon.
        color: replaces the shape's own colour.
        alpha: opacity.
        outline: draw the outline of a filled shape and little of its inside, so that many can overlap.
        width_scale: factor on the line width.
        zorder: drawing order.

    Returns:
        The artist, or None if the shape has points that are not finite.
    """
    if not finite_shape(shape):
        return None
    points = np.asarray(shape.points, dtype=float)
    color = shape.color if color is None else color
    width = shape.width * width_scale
    if shape.kind == "polyline":
        line = Line2D(
            points[:, 0],
            points[:, 1],
            color=color,
            linewidth=width,
            alpha=alpha,
            solid_capstyle="round",
            solid_joinstyle="round",
            zorder=zorder,
        )
        return axes.add_line(line)
    look = {
        "facecolor": to_rgba(color, 0.25 * alpha if outline else alpha),
        "edgecolor": to_rgba(color, min(2 * alpha, 1.0) if outline else alpha),
        "linewidth": max(width, 1.0) if outline else width,
        "zorder": zorder,
    }
    if shape.kind == "disc":
        return axes.add_patch(Circle((points[0, 0], points[0, 1]), shape.radius, **look))
    if shape.kind == "polygon":
        return axes.add_patch(Polygon(points, closed=True, **look))
    raise ValueError(f"unknown kind of shape {shape.kind!r}; known are polyline, disc and polygon")


def add_trail(
    axes: Axes, points: np.ndarray, colors: Sequence[Any], *, width: float, zorder: float = 1.5
) -> Artist:
    """Draw a path whose segments have their own colours ([k, 2] points, k - 1 colours)."""
    segments = np.stack([points[:-1], points[1:]], axis=1)
    finite = np.all(np.isfinite(segments), axis=(1, 2))
    kept = [color for color, good in zip(colors, finite, strict=True) if good]
    trail = LineCollection(
        list(segments[finite]), colors=kept, linewidths=width, capstyle="round", zorder=zorder
    )
    return axes.add_collection(trail, autolim=False)
