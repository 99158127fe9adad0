"""Bodies in space over time: what every scene is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optdyn.viz._meshes import Mesh
from optdyn.viz._motion import finite_shape


@dataclass(frozen=True)
class Part:
    """A mesh of one colour; `forms` [T, n, 3] are its vertices over time where its form changes."""

    mesh: Mesh
    color: str
    opacity: float = 1.0
    forms: np.ndarray | None = None


@dataclass(frozen=True)
class Body:
    """Parts that move together: positions [T, 3] in m, attitudes (w, x, y, z) [T, 4], visible [T]."""

    name: str
    parts: tuple[Part, ...]
    positions: np.ndarray
    attitudes: np.ndarray
    visible: np.ndarray


@dataclass(frozen=True)
class Scene:
    """Bodies over time, and what a camera has to see.

    Arguments:
        bodies: with different names.
        low, high: corners in m of the region of the motion.
        towards: unit vector from the motion to a camera that looks at it as the drawing does.
        front: from the plane of a drawing to in front of its bodies, in m [3].
    """

    bodies: tuple[Body, ...]
    low: np.ndarray
    high: np.ndarray
    towards: np.ndarray
    front: np.ndarray

    @property
    def size(self) -> float:
        """Length of the longest edge of the region in m."""
        return float(np.max(self.high - self.low))


def by_name(frames: Sequence[Sequence[Any]], name_of: Any) -> dict[str, list[Any]]:
    """What is drawn by name, and None where it is absent or not finite; equal names are numbered."""
    found: dict[str, list[Any]] = {}
    for i, frame in enumerate(frames):
        seen: dict[str, int] = {}
        for item in frame:
            name = name_of(item)
            seen[name] = seen.get(name, 0) + 1
            name = name if seen[name] == 1 else f"{name} {seen[name]}"
            found.setdefault(name, [None] * len(frames))[i] = item if _is_finite(item) else None
    return {name: items for name, items in found.items() if any(item is not None for item in items)}


def _is_finite(item: Any) -> bool:
    if hasattr(item, "points"):
        return finite_shape(item)
    return bool(np.isfinite(item.position).all() and np.isfinite(item.attitude).all())


def make_body(name: str, parts: tuple[Part, ...], positions: np.ndarray, attitudes: np.ndarray) -> Body:
    """A body that rests at its nearest earlier place (or else its first one) where it is not visible."""
    visible = np.asarray(np.isfinite(positions).all(axis=1))
    source = np.maximum.accumulate(np.where(visible, np.arange(len(visible)), np.argmax(visible)))
    return Body(name, parts, positions[source], attitudes[source], visible)


def unit_vector(vector: Sequence[float]) -> np.ndarray:
    array = np.asarray(vector, dtype=float)
    return array / np.linalg.norm(array)
