"""Triangle meshes of simple bodies, in NumPy: vertices [n, 3] in m and faces [m, 3], counterclockwise."""

from dataclasses import dataclass

import numpy as np

_ROUND = 32  # corners of a circle
_BOX_FACES = np.array(
    [[1, 3, 7, 5], [0, 4, 6, 2], [2, 6, 7, 3], [0, 1, 5, 4], [4, 5, 7, 6], [0, 2, 3, 1]]
)  # x+, x-, y+, y-, z+, z-; a corner's number has bit 0 for x+, bit 1 for y+, bit 2 for z+


@dataclass(frozen=True)
class Mesh:
    """Triangles in space; `smooth` shades over edges."""

    vertices: np.ndarray
    faces: np.ndarray
    smooth: bool = False


def prism(outline: np.ndarray, low: float, high: float) -> Mesh:
    """The polygon [k, 2], which may have notches but does not cut itself, from z = low to z = high."""
    outline = np.asarray(outline, dtype=float)
    if _area(outline) < 0:
        outline = outline[::-1]
    k = len(outline)
    below, above = (np.column_stack([outline, np.full(k, z)]) for z in (low, high))
    cap = triangulate(outline)
    i = np.arange(k)
    j = (i + 1) % k
    sides = np.concatenate([np.stack([i, j, j + k], axis=1), np.stack([i, j + k, i + k], axis=1)])
    return Mesh(np.concatenate([below, above]), np.concatenate([cap[:, ::-1], cap + k, sides]))


def circle(radius: float) -> np.ndarray:
    """Outline of a disc around zero [k, 2]."""
    angles = 2 * np.pi * np.arange(_ROUND) / _ROUND
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def stadium(length: float, width: float) -> np.ndarray:
    """Outline of a line along x of this length around zero, with round ends [k, 2]."""
    angles = np.linspace(-np.pi / 2, np.pi / 2, _ROUND // 2 + 1)
    end = np.stack([length / 2 + width / 2 * np.cos(angles), width / 2 * np.sin(angles)], axis=1)
    return np.concatenate([end, -end])


def box(size: tuple[float, ...]) -> list[Mesh]:
    """The six faces x+, x-, y+, y-, z+, z- of a box around zero, a mesh each."""
    bits = np.arange(8)
    signs = np.stack([bits & 1, (bits >> 1) & 1, (bits >> 2) & 1], axis=1) - 0.5
    corners = signs * np.asarray(size, dtype=float)
    return [Mesh(corners[face], np.array([[0, 1, 2], [0, 2, 3]])) for face in _BOX_FACES]


def cylinder(radius: float, length: float) -> Mesh:
    """Around the z axis."""
    return prism(circle(radius), -length / 2, length / 2)


def cone(radius: float, length: float) -> Mesh:
    """Around the z axis, the tip up."""
    base = np.column_stack([circle(radius), np.full(_ROUND, -length / 2)])
    i = np.arange(_ROUND)
    j = (i + 1) % _ROUND
    tip, center = np.full(_ROUND, _ROUND), np.full(_ROUND, _ROUND + 1)
    faces = np.concatenate([np.stack([i, j, tip], axis=1), np.stack([j, i, center], axis=1)])
    return Mesh(np.concatenate([base, [[0, 0, length / 2], [0, 0, -length / 2]]]), faces)


def sphere(radius: float) -> Mesh:
    """Around zero: rings from pole to pole."""
    rings = _ROUND // 2
    heights = np.cos(np.pi * np.arange(1, rings) / rings)
    around = circle(1.0)
    points = [np.column_stack([np.sqrt(1 - z * z) * around, np.full(_ROUND, z)]) for z in heights]
    vertices = radius * np.concatenate([*points, [[0, 0, 1], [0, 0, -1]]])
    i = np.arange(_ROUND)
    j = (i + 1) % _ROUND
    north, south, last = len(vertices) - 2, len(vertices) - 1, (rings - 2) * _ROUND
    faces = [np.stack([i, j, np.full(_ROUND, north)], axis=1)]
    for ring in range(rings - 2):
        a, b = ring * _ROUND, (ring + 1) * _ROUND
        faces += [np.stack([b + i, b + j, a + j], axis=1), np.stack([b + i, a + j, a + i], axis=1)]
    faces.append(np.stack([last + j, last + i, np.full(_ROUND, south)], axis=1))
    return Mesh(vertices, np.concatenate(faces), smooth=True)


def triangulate(outline: np.ndarray) -> np.ndarray:
    """Triangles [k - 2, 3] that cover a counterclockwise polygon, by cutting ears."""
    left = list(range(len(outline)))
    triangles = []
    while len(left) > 3:
        ear = next((i for i in range(len(left)) if _is_ear(outline, left, i)), 0)
        triangles.append([left[ear - 1], left[ear], left[(ear + 1) % len(left)]])
        del left[ear]
    return np.array([*triangles, left])


def _is_ear(outline: np.ndarray, left: list[int], i: int) -> bool:
    corners = outline[[left[i - 1], left[i], left[(i + 1) % len(left)]]]
    if _area(corners) <= 0:
        return False
    others = [k for k in left if k not in (left[i - 1], left[i], left[(i + 1) % len(left)])]
    return not any(_inside(outline[k], corners) for k in others)


def _inside(point: np.ndarray, triangle: np.ndarray) -> bool:
    edges = np.roll(triangle, -1, axis=0) - triangle
    to_point = point - triangle
    return bool(np.all(edges[:, 0] * to_point[:, 1] - edges[:, 1] * to_point[:, 0] >= 0))


def _area(outline: np.ndarray) -> float:
    x, y = outline.T
    return float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2)
