"""A receding-horizon task with many controls: pendulums in a row, joined by springs, a motor in each."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from optdyn.dynamics import DiscreteDynamics
from optdyn.systems._control import ControlTask
from optdyn.trajopt import ControlSpline, ResidualCost, SingleShooting, TrajectoryProblem

LINKS = 12
LENGTH, GRAVITY = 0.5, 9.81  # m, m / s^2
MASS = 1.0  # kg
STIFFNESS, DAMPING = 1.0, 0.05  # N m / rad between neighbours, N m s
TORQUE = 7.0  # N m; the weight asks for up to 4.9 N m
DT, SUBSTEPS = 0.04, 2
HORIZON = 25


class Chain(eqx.Module):
    """State (angles from hanging, rates) [24], control torques [12]; semi-implicit Euler, two substeps."""

    mass: jax.Array

    def __call__(self, x, u, t):
        q, v = x[:LINKS], x[LINKS:]
        h, inertia = DT / SUBSTEPS, self.mass * LENGTH**2
        for _ in range(SUBSTEPS):
            stretch = q[1:] - q[:-1]
            pull = STIFFNESS * (jnp.pad(stretch, (0, 1)) - jnp.pad(stretch, (1, 0)))
            torque = u + pull - DAMPING * v - self.mass * GRAVITY * LENGTH * jnp.sin(q)
            v = v + h * torque / inertia
            q = q + h * v
        return jnp.concatenate([q, v])


def _stage(x, u, t):
    return jnp.concatenate([x[:LINKS] - np.pi, 0.1 * x[LINKS:], 0.02 * u])


def _terminal(x):
    return jnp.concatenate([3 * (x[:LINKS] - np.pi), 0.6 * x[LINKS:]])


def dynamics(mass: float) -> DiscreteDynamics:
    """The chain with links of `mass` kg."""
    return DiscreteDynamics(Chain(jnp.asarray(mass, float)), 2 * LINKS, LINKS)


def build(noise, num_knots: int | None, description: str) -> ControlTask:
    """The task; `noise` turns the links by up to 0.3 rad."""
    problem = TrajectoryProblem(
        dynamics(MASS),
        HORIZON,
        ResidualCost(_stage),
        ResidualCost(_terminal),
        control_bounds=(-TORQUE, TORQUE),
    )
    q = 0.3 * noise[:LINKS]
    return ControlTask(
        name="chain",
        description=description,
        task=SingleShooting(problem, ControlSpline(6 if num_knots is None else num_knots)),
        plant=dynamics(1.1 * MASS),
        x0=jnp.concatenate([q, 0 * q]),
        controls=jnp.zeros((HORIZON, LINKS)),
        spread=1.5,
        temperature=5.0,
        steps=75,
        dt=DT,
        goal_error=lambda x: float(np.max(np.abs(x[:LINKS] - np.pi))),
    )
