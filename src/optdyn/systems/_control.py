"""Tasks for receding horizons: small systems, a cost, and a plant that is not quite the model."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from optdyn.dynamics import AbstractDynamics
from optdyn.systems._scenario import ScenarioError
from optdyn.trajopt import SingleShooting


@dataclass(frozen=True)
class ControlTask:
    """A task for a controller.

    Attributes:
        name, description: for reports.
        task: model, cost and spline.
        plant: what is controlled.
        x0: initial state [nx].
        controls: first guess of the plan [N, nu].
        spread: standard deviation of the noise of sampling controllers, in the unit of the controls.
        temperature: of `MPPI`, in the unit of the cost.
        steps: control steps of an episode.
        dt: duration of one, in s.
        goal_error: `(last state) -> distance from the goal`.
    """

    name: str
    description: str
    task: SingleShooting
    plant: AbstractDynamics
    x0: jax.Array
    controls: jax.Array
    spread: float
    temperature: float
    steps: int
    dt: float
    goal_error: Callable[[np.ndarray], float]


_TASKS = {
    "push_block": "push a block on a rough floor; the plant's friction is a third above the model's",
    "chain": "a chain of twelve driven pendulums goes upright; the plant's are a tenth heavier",
}


def available_tasks() -> dict[str, str]:
    """Tasks for `optdyn mpc` and what they are."""
    return dict(_TASKS)


def load_task(name: str, *, seed: int = 0, num_knots: int | None = None) -> ControlTask:
    """Load a task.

    Arguments:
        name: see `available_tasks()`.
        seed: of a small change of the initial state.
        num_knots: of the control spline. Default: the task's.

    Raises:
        ScenarioError: for an unknown name or a negative seed.
    """
    if name not in _TASKS:
        raise ScenarioError(f"unknown task {name!r}; choose from: {', '.join(_TASKS)}")
    if seed < 0:
        raise ScenarioError(f"seed must be >= 0, got {seed}")
    build = importlib.import_module(f"optdyn.systems._{name}").build
    return build(jnp.asarray(np.random.default_rng(seed).uniform(-1, 1, 64)), num_knots, _TASKS[name])
