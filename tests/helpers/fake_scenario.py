"""A scenario and a plan without an optimizer behind them: a double pendulum that swings, integrated in NumPy.

Pictures and reports are tested on it, so that those tests need no compilation and no converged plan.
"""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from optdyn._results import RESULTS, result_name
from optdyn.systems import Force, Panel, Shape


@dataclass(frozen=True)
class FakeScenario:
    """Two links that swing, the elbow between its limits."""

    name: str = "pendulum"
    variant: str = "fake"
    description: str = "Two links <under> gravity & nothing else."
    horizon: int = 80
    dt: float = 0.05
    extent: tuple[float, float, float, float] = (-2.2, 2.2, -2.2, 2.2)
    problem: Any = None
    x0: Any = None
    controls: Any = None
    solver: Any = None
    plane: str = "side"
    solids = None  # not a field: a subclass may have a method in its place

    def forces(self, plan: Any) -> list[Force]:
        """The weight of the lower mass, and nothing in the first step."""
        tips = np.array([self.draw(x)[2].points[-1] for x in np.asarray(plan.states)[1:]])
        values = np.tile([0.0, -9.81], (len(tips), 1))
        values[0] = 0.0
        return [Force("weight", tips, values)]

    @property
    def times(self) -> np.ndarray:
        return self.dt * np.arange(self.horizon + 1)

    def goal_error(self, plan: Any) -> float:
        return float(abs(np.asarray(plan.states)[-1, 0]))

    def draw(self, x: Any) -> list[Shape]:
        q1, q2 = float(x[0]), float(x[1])
        elbow = np.array([np.sin(q1), -np.cos(q1)])
        tip = elbow + np.array([np.sin(q1 + q2), -np.cos(q1 + q2)])
        return [
            Shape("polygon", np.array([[-0.25, 0.0], [0.25, 0.0], [0.0, 0.12]]), color="#BBBBBB", width=1.0),
            Shape("polyline", np.stack([np.zeros(2), elbow]), color="#0072B2", width=6.0, label="upper link"),
            Shape("polyline", np.stack([elbow, tip]), color="#D55E00", width=6.0, label="lower link"),
            Shape("disc", elbow[None], radius=0.07, color="#222222", width=1.0),
        ]

    def panels(self, plan: Any) -> list[Panel]:
        states, times = np.asarray(plan.states), self.times
        return [
            Panel(
                "Joint angles", "rad", times, {"shoulder": states[:, 0], "elbow": states[:, 1]}, (-1.57, 1.57)
            ),
            Panel("Joint rates", "rad/s", times, {"shoulder": states[:, 2], "elbow": states[:, 3]}, (400.0,)),
            Panel("Control", "N m s", times[:-1], {"torque": np.asarray(plan.controls)[:, 0]}, (), "step"),
        ]


def fake_plan(scenario: FakeScenario, *, iterations: int = 40, failed: bool = False) -> SimpleNamespace:
    """What an optimizer could have returned for `scenario`; `failed` puts NaN into its second half."""
    states = _swing(scenario.horizon, scenario.dt)
    controls = 0.3 * np.sin(np.arange(scenario.horizon) * scenario.dt)[:, None]
    if failed:
        states[scenario.horizon // 2 :] = np.nan
    k = np.arange(120, dtype=float)
    entries = {
        "cost": 50 + 400 * np.exp(-k / 5),
        "violation": np.exp(-k / 4),
        "step_length": np.ones_like(k),
        "regularization": np.full_like(k, 1e-6),
        "penalty": 10.0 ** (k // 15),
        "outer": 1 + k // 15,
    }
    history = SimpleNamespace(
        **{name: np.where(k < iterations, values, np.nan) for name, values in entries.items()}
    )
    return SimpleNamespace(
        states=states,
        controls=controls,
        gains=None,
        feedforward=None,
        step_info=SimpleNamespace(outputs={"impulse": np.zeros((scenario.horizon, 2))}),
        cost=np.float64(np.nan if failed else 63.2),
        constraint_violation=np.float64(np.inf if failed else 3e-4),
        result=RESULTS.nonfinite if failed else RESULTS.successful,
        stats=SimpleNamespace(
            outer_iterations=np.int32(1 + (max(iterations, 1) - 1) // 15),
            inner_iterations=np.int32(iterations),
            history=history,
            lower_level=SimpleNamespace(
                solves=4000, failed=int(failed), steps_mean=7.25, steps_max=19, residual_max=4e-11
            ),
        ),
    )


def _swing(horizon: int, dt: float, substeps: int = 50) -> np.ndarray:
    """States (q1, q2, v1, v2) of two point masses on unit links, by symplectic Euler with small steps."""
    q, v, g = np.array([1.9, 0.6]), np.zeros(2), 9.81
    states = [np.concatenate([q, v])]
    for _ in range(horizon):
        for _ in range(substeps):
            c, s = np.cos(q[1]), np.sin(q[1])
            mass = np.array([[3 + 2 * c, 1 + c], [1 + c, 1.0]])
            bias = np.array([-s * v[1] * (2 * v[0] + v[1]), s * v[0] ** 2])
            gravity = g * np.array([2 * np.sin(q[0]) + np.sin(q.sum()), np.sin(q.sum())])
            v = v + dt / substeps * np.linalg.solve(mass, -bias - gravity)
            q = q + dt / substeps * v
        states.append(np.concatenate([q, v]))
    return np.stack(states)


@dataclass(frozen=True)
class FakeSlider(FakeScenario):
    """A block that travels: a motion much wider than high, with shapes that come and go."""

    name: str = "slider"
    extent: tuple[float, float, float, float] = (-0.5, 4.5, -0.3, 0.9)

    def forces(self, plan: Any) -> list[Force]:
        return []

    def draw(self, x: Any) -> list[Shape]:
        left = 1.0 - np.cos(float(x[0]))
        corners = np.array([[0.0, 0.0], [0.5, 0.0], [0.5, 0.4], [0.0, 0.4]]) + np.array([left, 0.0])
        shapes = [
            Shape("polyline", np.array([[-0.5, 0.0], [4.5, 0.0]]), color="#777777", width=2.0),
            Shape("polygon", corners, color="#56B4E9", width=1.0),
        ]
        if float(x[2]) > 0:
            shapes.append(Shape("polyline", np.array([[left, 0.2], [left - 0.3, 0.2]]), color="#D55E00"))
        return shapes

    def panels(self, plan: Any) -> list[Panel]:
        return super().panels(plan) * 2


@dataclass
class FakeRecord:
    """One record of the optimizer's callback."""

    outer: int = 1
    inner: int = 1
    cost: float = 12.5
    merit: float = 13.0
    violation: float = 1e-2
    step_length: float = 1.0
    regularization: float = 1e-6
    penalty: float = 10.0


@dataclass
class FakeLibrary:
    """Stands in for the `optdyn` that the command line calls."""

    scenario: FakeScenario = field(default_factory=FakeScenario)
    plan: Any = None
    calls: int = 0

    RESULTS = RESULTS
    result_name = staticmethod(result_name)

    def optimize_trajectory(self, problem, x0, controls, *, solver, throw, callback) -> Any:
        del problem, x0, controls, solver
        assert throw is False
        self.calls += 1
        for i in range(20):
            if callback is not None:
                callback(FakeRecord(outer=1 + i // 7, inner=i + 1))
        return fake_plan(self.scenario) if self.plan is None else self.plan
