"""A trajectory as drawings: the shapes of every state, which stand still, where the tip goes. NumPy only."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Motion:
    """Drawings of the states of one trajectory.

    Arguments:
        title: what is shown.
        times: [N + 1] seconds.
        frames: for each state the shapes that `scenario.draw` returned.
        extent: (xmin, xmax, ymin, ymax) that contains the motion.
    """

    title: str
    times: np.ndarray
    frames: Sequence[Sequence[Any]]
    extent: tuple[float, float, float, float]

    @property
    def aspect(self) -> float:
        """Width of the extent divided by its height."""
        xmin, xmax, ymin, ymax = self.extent
        return (xmax - xmin) / (ymax - ymin)

    @cached_property
    def standing(self) -> list[Any]:
        """The shapes that look the same in every frame (floors, walls, targets)."""
        return [shape for shape in self.frames[0] if all(_contains(frame, shape) for frame in self.frames)]

    def moving(self, frame: int) -> list[Any]:
        """The other shapes of one frame."""
        return [shape for shape in self.frames[frame] if not _contains(self.standing, shape)]

    @cached_property
    def tip(self) -> np.ndarray:
        """Path of the point worth following, [N + 1, 2]; NaN where there is none.

        It is the centre of the shape labelled `tip`; else the last point of the last moving polyline (the
        end of a chain of links); else the centre of the first moving shape. Where shapes come and go (forces,
        contacts) a polyline may be one of those, and the first moving shape is taken.
        """
        moving = [self.moving(i) for i in range(len(self.frames))]
        steady = len({len(shapes) for shapes in moving}) == 1
        return np.stack([_tip(shapes, steady) for shapes in moving])


def record_motion(scenario: Any, plan: Any) -> Motion:
    """Draw every state of a plan."""
    states = np.asarray(plan.states)
    frames = [list(scenario.draw(state)) for state in states]
    variant = f" ({scenario.variant})" if scenario.variant else ""
    xmin, xmax, ymin, ymax = (float(value) for value in scenario.extent)
    return Motion(
        title=f"{scenario.name}{variant}",
        times=np.asarray(scenario.times, dtype=float),
        frames=frames,
        extent=(xmin, xmax, ymin, ymax),
    )


def same_shape(a: Any, b: Any) -> bool:
    """Whether two shapes look the same."""
    return (
        a.kind == b.kind
        and a.color == b.color
        and a.radius == b.radius
        and np.shape(a.points) == np.shape(b.points)
        and bool(np.allclose(a.points, b.points, rtol=0.0, atol=1e-9, equal_nan=True))
    )


def finite_shape(shape: Any) -> bool:
    """Whether a shape can be drawn at all; the states of a failed plan may not be numbers."""
    return bool(np.all(np.isfinite(shape.points)))


def _contains(shapes: Sequence[Any], wanted: Any) -> bool:
    return any(same_shape(shape, wanted) for shape in shapes)


def _tip(shapes: Sequence[Any], steady: bool) -> np.ndarray:
    labelled = [shape for shape in shapes if shape.label == "tip"]
    chains = [shape for shape in shapes if shape.kind == "polyline"] if steady else []
    if labelled:
        return np.mean(np.asarray(labelled[-1].points, dtype=float), axis=0)
    if chains:
        return np.asarray(chains[-1].points, dtype=float)[-1]
    if shapes:
        return np.mean(np.asarray(shapes[0].points, dtype=float), axis=0)
    return np.full(2, np.nan)
