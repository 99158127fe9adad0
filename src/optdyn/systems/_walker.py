"""A planar biped takes a step through contact, from standing to standing.

When a foot leaves the ground and lands is not given: contact decides it. The optimizer is told what to keep
to roughly, the way of hip and feet of a kinematic step, and has to end in its last posture, at rest.
"""

from functools import partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from optdyn._typing import Array, Float
from optdyn.systems._scenario import Scenario, Settings
from optdyn.systems._walker_gait import Gait, feedforward
from optdyn.systems._walker_model import CENTRAL_PATH, FEET, KNEE, STEP, dynamics, points
from optdyn.systems._walker_pictures import draw, forces, panels
from optdyn.trajopt import ILQR, AugmentedLagrangian, Continuation, Equality, Plan, TrajectoryProblem

TORQUE = 150.0  # N m
PLACE_WEIGHT = 300.0  # 1 / m^2, of hip and of the foot that swings
TURN_WEIGHT = 1.0  # 1 / rad^2
MOTION_WEIGHT = 0.03
EFFORT_WEIGHT = 1e-4  # 1 / (N m)^2
TERMINAL_WEIGHT = 0.3  # s


class Objective(eqx.Module):
    """Costs and goal; numbers only."""

    reference: Float[Array, "steps 7"]

    def distance(self, x, t):
        """Weighted square of the distance from the kinematic step."""
        q, wanted = x[7:], self.reference[t].astype(x.dtype)
        hip, foot = q[:2] - wanted[:2], points(q, FEET)[1] - points(wanted, FEET)[1]
        place = PLACE_WEIGHT * (jnp.sum(hip**2) + jnp.sum(foot**2))
        return place + TURN_WEIGHT * jnp.sum((q[2:] - wanted[2:]) ** 2)

    def stage_cost(self, x, u, t):
        """Distance, motion and effort: an integral over time."""
        motion = jnp.sum(((x[7:] - x[:7]) / STEP) ** 2)
        return STEP / 2 * (self.distance(x, t) + MOTION_WEIGHT * motion + EFFORT_WEIGHT * jnp.sum(u**2))

    def terminal_cost(self, x):
        """Distance from the last posture."""
        return TERMINAL_WEIGHT / 2 * self.distance(x, len(self.reference) - 1)

    def terminal_error(self, x):
        """Zero in the last posture at rest [14]: posture, and motion of the last step."""
        return jnp.concatenate([x[7:] - self.reference[-1].astype(x.dtype), x[7:] - x[:7]])


def _goal_error(plan: Plan, goal: np.ndarray) -> float:
    return float(np.abs(np.asarray(plan.states)[-1, 7:] - goal).max())


def build(variant: str, settings: Settings) -> Scenario:
    """One step: foot b from 0.35 m behind foot a to 0.35 m in front of it."""
    central_path = CENTRAL_PATH if settings.central_path is None else settings.central_path
    if settings.smoothing is None:
        smoothing = Continuation(1e-2, 1e-3, 0.5)
    else:
        smoothing = Continuation(settings.smoothing, settings.smoothing)
    gait = Gait()
    wanted = gait.configurations()
    objective = Objective(jnp.asarray(wanted, settings.dtype))
    controls = feedforward(wanted, gait.single_support)
    controls += 1e-3 * np.random.default_rng(settings.seed).normal(size=controls.shape)
    return Scenario(
        name="walker",
        variant=variant,
        description="A biped steps forward, from standing to standing",
        problem=TrajectoryProblem(
            dynamics(central_path),
            horizon=gait.horizon,
            stage_cost=objective.stage_cost,
            terminal_cost=objective.terminal_cost,
            terminal_constraint=Equality(objective.terminal_error),
            control_bounds=(-TORQUE, TORQUE),
        ),
        x0=jnp.asarray(np.concatenate([wanted[0], wanted[0]]), settings.dtype),
        controls=jnp.asarray(controls, settings.dtype),
        solver=AugmentedLagrangian(
            ILQR(max_iterations=15, cost_tol=1e-3),
            constraint_tol=1e-3,
            max_rounds=25,
            early_cost_tol=1e-2,
            initial_penalty=10.0,
            penalty_factor=4.0,
            smoothing=smoothing,
        ),
        dt=STEP,
        extent=(-0.75, 0.75, -0.1, 1.45),
        goal_error=partial(_goal_error, goal=wanted[-1]),
        draw=draw,
        panels=partial(panels, dt=STEP, knee=KNEE, limit=TORQUE),
        forces=partial(forces, dt=STEP),
    )
