"""Drawings in a plane as bodies in space.

Every shape is extruded, later ones a little further, so that they cover earlier ones from both sides as they
do on paper. A shape that keeps its form is one mesh that moves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optdyn.viz import _meshes
from optdyn.viz._bodies import Body, Part, Scene, by_name, make_body, unit_vector
from optdyn.viz._turns import about_z, multiply, rotate

# A line of one point is this fraction of the drawing wide, as in the animation.
_POINT = 1 / 420
# Half the depth of what is extruded, as a fraction of the drawing, and how much each later shape adds.
_DEPTH, _LAYER = 0.02, 0.08
# Seen from the side, lines that lie and stand still are floors; they are this fraction of the drawing deep.
_FLOOR = 0.3
# From above, there is a table of this colour below everything, and lines that stand still are drawn on it.
_TABLE, _TABLE_COLOR, _FLAT = 0.01, "#E8EAED", 0.1
_SAME_FORM = 1e-6  # of the drawing
# From the frame of a drawing (right, up, towards the reader) to the world, whose z is up.
_FRAMES = {"side": np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0]), "above": np.array([1.0, 0.0, 0.0, 0.0])}


def to_space(points: np.ndarray, plane: str) -> np.ndarray:
    """Vectors of a drawing [..., 2], or of space already [..., 3], as vectors of space [..., 3]."""
    if points.shape[-1] == 3:
        return points
    flat = np.concatenate([points, np.zeros((*points.shape[:-1], 1))], axis=-1)
    return rotate(_FRAMES[plane], flat)


def flat_scene(frames: Sequence[Sequence[Any]], extent: tuple[float, ...], plane: str) -> Scene:
    xmin, xmax, ymin, ymax = extent
    unit = max(xmax - xmin, ymax - ymin)
    frame = _FRAMES[plane]
    bodies = []
    names = by_name(frames, lambda shape: shape.label or shape.kind)
    for layer, (name, shapes) in enumerate(names.items()):
        for suffix, pieces in _pieces(shapes):
            bodies.append(_flat_body(name + suffix, pieces, unit, layer, frame, plane))
    if plane == "above":
        bodies.insert(0, _table(extent, unit, len(frames)))
    corners = to_space(np.array([[xmin, ymin], [xmax, ymax]]), plane)
    towards = {"side": [0.3, -1.0, 0.3], "above": [0.0, -0.55, 1.0]}[plane]
    depth = _depth(unit, len(names))
    front = rotate(frame, np.array([0.0, 0.0, depth]))
    return Scene(tuple(bodies), corners.min(axis=0), corners.max(axis=0), unit_vector(towards), front)


def _table(extent: tuple[float, ...], unit: float, count: int) -> Body:
    xmin, xmax, ymin, ymax = extent
    outline = np.array([[xmin, ymin], [xmax, ymin], [xmax, ymax], [xmin, ymax]])
    part = Part(_meshes.prism(outline, -_TABLE * unit, 0.0), _TABLE_COLOR)
    return make_body("table", (part,), np.zeros((count, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)))


def _depth(unit: float, layer: int) -> float:
    return _DEPTH * unit * (1 + _LAYER * layer)


def _flat_body(
    name: str, pieces: Sequence[Any], unit: float, layer: int, frame: np.ndarray, plane: str
) -> Body:
    """One shape over time; None where it is absent."""
    first = next(piece for piece in pieces if piece is not None)
    places = np.array([_place(piece) for piece in pieces])
    outlines = [None if piece is None else _outline(piece, unit) for piece in pieces]
    reference = _outline(first, unit)
    deep = _depth(unit, layer)
    # From the side bodies reach as far to the front as to the back; from above they stand on the table.
    standing = _stands_still(first, pieces)
    if plane == "above":
        low, high = 0.0, _FLAT * deep if standing else deep
    else:
        deep = _FLOOR * unit if standing and np.ptp(first.ends[:, 1]) == 0 else deep
        low, high = -deep, deep
    mesh = _meshes.prism(reference, low, high)
    forms = None
    if any(one is not None and not _same_form(one, reference, unit) for one in outlines):
        if any(one is not None and len(one) != len(reference) for one in outlines):
            raise ValueError(f"the shape {name!r} has different numbers of points in different states")
        prisms = [_meshes.prism(reference if one is None else one, low, high) for one in outlines]
        forms = np.array([one.vertices for one in prisms])
    positions = rotate(frame, np.column_stack([places[:, :2], np.zeros(len(places))]))
    attitudes = multiply(frame, about_z(places[:, 2]))
    return make_body(name, (Part(mesh, first.color, forms=forms),), positions, attitudes)


def _pieces(shapes: Sequence[Any]) -> list[tuple[str, list[Any]]]:
    """A polyline as its segments, everything else as it is; each with the end of its name."""
    first = next(shape for shape in shapes if shape is not None)
    if first.kind != "polyline":
        return [("", list(shapes))]
    count = len(first.points) - 1
    return [
        (
            f" {k + 1}" if count > 1 else "",
            [None if shape is None else _Segment(shape, k) for shape in shapes],
        )
        for k in range(count)
    ]


@dataclass(frozen=True)
class _Segment:
    shape: Any
    index: int

    @property
    def ends(self) -> np.ndarray:
        return np.asarray(self.shape.points, dtype=float)[self.index : self.index + 2]

    @property
    def color(self) -> str:
        return self.shape.color


def _place(piece: Any) -> np.ndarray:
    """(right, up, angle) of the frame of a shape; NaN where it is absent."""
    if piece is None:
        return np.full(3, np.nan)
    if isinstance(piece, _Segment):
        way = piece.ends[1] - piece.ends[0]
        return np.array([*piece.ends.mean(axis=0), np.arctan2(way[1], way[0])])
    points = np.asarray(piece.points, dtype=float)
    center = points.mean(axis=0)
    if piece.kind == "disc":
        return np.array([*center, 0.0])
    arm = points[0] - center
    return np.array([*center, np.arctan2(arm[1], arm[0])])


def _outline(piece: Any, unit: float) -> np.ndarray:
    """The shape in its own frame [k, 2]."""
    if isinstance(piece, _Segment):
        length = float(np.linalg.norm(piece.ends[1] - piece.ends[0]))
        return _meshes.stadium(length, piece.shape.width * _POINT * unit)
    if piece.kind == "disc":
        return _meshes.circle(piece.radius)
    if piece.kind != "polygon":
        raise ValueError(f"unknown kind of shape {piece.kind!r}; known are polyline, disc and polygon")
    x, y, angle = _place(piece)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return (np.asarray(piece.points, dtype=float) - [x, y]) @ turn


def _same_form(a: np.ndarray, b: np.ndarray, unit: float) -> bool:
    return a.shape == b.shape and bool(np.abs(a - b).max() <= _SAME_FORM * unit)


def _stands_still(first: Any, pieces: Sequence[Any]) -> bool:
    """Whether it is a line that never moves."""
    return isinstance(first, _Segment) and all(
        piece is not None and np.array_equal(piece.ends, first.ends) for piece in pieces
    )
