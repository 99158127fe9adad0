"""A ready-made problem: data and equations, and how to look at its solutions."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from optdyn._typing import Array
from optdyn.dynamics import AbstractDynamics
from optdyn.trajopt import ILQR, AugmentedLagrangian, Plan, TrajectoryProblem


class ScenarioError(ValueError):
    """An unknown scenario or variant, or a setting that it does not take."""


@dataclass(frozen=True)
class Shape:
    """A part of a drawing, in metres. `width` is a line width in points."""

    kind: Literal["polyline", "disc", "polygon"]
    points: np.ndarray  # [k, 2]; the centre for a disc
    radius: float = 0.0
    color: str = "#333333"
    width: float = 3.0
    label: str = ""


@dataclass(frozen=True)
class Solid:
    """A body of a drawing in space, in metres.

    `size` holds the edge lengths of a box, the radius of a sphere, or (radius, length) of a cylinder or cone,
    whose axis is z and whose middle is at `position`. `attitude` is a unit quaternion (w, x, y, z). `colors`
    has one entry, or for a box six: of the faces x+, x-, y+, y-, z+, z-.
    """

    kind: Literal["box", "sphere", "cylinder", "cone"]
    size: tuple[float, ...]
    position: np.ndarray  # [3]
    attitude: np.ndarray = field(default_factory=lambda: np.array([1.0, 0.0, 0.0, 0.0]))
    colors: tuple[str, ...] = ("#333333",)
    opacity: float = 1.0
    label: str = ""


@dataclass(frozen=True)
class Force:
    """A force over time, for arrows: `points` in m and `values` in N, both [N, d], one row for each step.

    Row t belongs to state t + 1, the end of the step. d is 2 in the plane of `Scenario.draw` and 3 in space.
    The arrow starts at its point, or ends there if `ends` (a push from outside).
    """

    label: str
    points: np.ndarray
    values: np.ndarray
    color: str = "#B22222"
    ends: bool = False


@dataclass(frozen=True)
class Panel:
    """Curves over time that belong in one chart, with the limits that apply to them and their goals."""

    title: str
    unit: str
    times: np.ndarray
    series: dict[str, np.ndarray]
    limits: tuple[float, ...] = ()
    kind: Literal["line", "step"] = "line"
    goals: tuple[float, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """A trajectory problem with its start, a guess, a solver that suits it, and its pictures.

    `x0` is the initial state or, where the problem has parameters, their first guess. `goal_error(plan)` is
    the largest distance of the final state from the goal, `draw(x)` the shapes of one state, `panels(plan)`
    the charts of a plan, `extent` (xmin, xmax, ymin, ymax) the frame of drawings.

    For a view in space: `plane` says whether the drawing is one from the side (x, z) or from above (x, y);
    `solids(x)`, where there is one, takes its place; `forces(plan)` are the forces that contacts exert.
    """

    name: str
    variant: str
    description: str
    problem: TrajectoryProblem
    x0: Array
    controls: Array
    solver: AugmentedLagrangian | ILQR
    dt: float
    extent: tuple[float, float, float, float]
    goal_error: Callable[[Plan], float]
    draw: Callable[[Any], list[Shape]]
    panels: Callable[[Plan], list[Panel]]
    plane: Literal["side", "above"] = "side"
    solids: Callable[[Any], list[Solid]] | None = None
    forces: Callable[[Plan], list[Force]] | None = None

    @property
    def dynamics(self) -> AbstractDynamics:
        """The dynamics of the problem."""
        return self.problem.dynamics

    @property
    def first_state(self) -> Array:
        """The state that the first guess starts from."""
        free = self.problem.initial_state
        return self.x0 if free is None else free(self.x0)

    @property
    def times(self) -> np.ndarray:
        """Times of the states in s, [horizon + 1]."""
        return self.dt * np.arange(self.problem.horizon + 1)


@dataclass(frozen=True)
class Settings:
    """What `load` hands to a builder; None means the scenario's own value."""

    seed: int
    central_path: float | None
    smoothing: float | None
    dtype: np.dtype
