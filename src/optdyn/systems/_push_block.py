"""A receding-horizon task on the sliding block: push it to a place and stop there."""

import jax.numpy as jnp
import numpy as np

from optdyn.systems import _sliding_block as block
from optdyn.systems._control import ControlTask
from optdyn.trajopt import ControlSpline, ResidualCost, SingleShooting, TrajectoryProblem

HORIZON = 12
GOAL = 0.5  # m
MODEL_FRICTION, PLANT_FRICTION = 0.15, 0.2


def _stage(x, u, t):
    return jnp.stack([x[0] - GOAL, 0.1 * x[1], 0.01 * u[0]])


def _terminal(x):
    return 5 * (x - jnp.asarray([GOAL, 0.0], x.dtype))


def build(noise, num_knots: int | None, description: str) -> ControlTask:
    """The task; `noise` moves the initial position by up to 0.1 m."""
    problem = TrajectoryProblem(
        block.dynamics(MODEL_FRICTION, smoothing=1e-3),
        HORIZON,
        ResidualCost(_stage),
        ResidualCost(_terminal),
        control_bounds=(-block.FORCE_LIMIT, block.FORCE_LIMIT),
    )
    return ControlTask(
        name="push_block",
        description=description,
        task=SingleShooting(problem, ControlSpline(6 if num_knots is None else num_knots)),
        plant=block.dynamics(PLANT_FRICTION),
        x0=jnp.stack([0.1 * noise[0], 0 * noise[0]]),
        # Strong enough to break the block loose: below that, friction hides the effect of the force.
        controls=jnp.full((HORIZON, 1), 3.0),
        spread=4.0,
        temperature=0.05,
        steps=40,
        dt=block.STEP,
        goal_error=lambda x: float(np.max(np.abs(x - [GOAL, 0.0]))),
    )
