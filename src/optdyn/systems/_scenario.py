"""A ready-made problem: data and equations, and how to look at its solutions."""

from collections.abc import Callable
from dataclasses import dataclass
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
