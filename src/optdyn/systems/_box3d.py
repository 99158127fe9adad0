"""A box on a plane that slides, tips and tumbles under a wrench at its centre, with Coulomb friction.

The configuration q is (centre in m, attitude as a unit quaternion (w, x, y, z)) [7], the state is
(q_previous, q) [14], a tangent of it [12]. Controls are forces in N and torques in N m at the centre, in the
directions of the world. Every corner touches the plane z = 0 with a gap and a friction cone of dimension 3.
"""

from dataclasses import dataclass
from functools import lru_cache, partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from optdyn._typing import Array, Float
from optdyn.dynamics import (
    Friction,
    Mechanism,
    ProgramDynamics,
    StateSpace,
    frictional_dynamics,
    rotation_matrix,
)
from optdyn.interior_point import InteriorPoint
from optdyn.systems._box3d_pictures import draw, forces, panels, seen_extent, solids
from optdyn.systems._scenario import Scenario, Settings
from optdyn.trajopt import ILQR, AugmentedLagrangian, Continuation, Equality, Plan, TrajectoryProblem

HALF = np.array([0.15, 0.1, 0.1])  # m, half the edges of the box
MASS = 1.0  # kg
INERTIA = MASS / 3 * (np.sum(HALF**2) - HALF**2)  # kg m^2, about the axes of the box
GRAVITY = 9.81  # m / s^2
FRICTION = 0.5
STEP = 0.05  # s
CENTRAL_PATH = 1e-5  # N s m, and J
SIGNS = np.array([[x, y, z] for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)])  # the lower corners first


class Box(eqx.Module):
    """Where the box touches the plane, and what pushes it.

    Arguments:
        corners: from the centre, in the frame of the box, in m.
        inputs: wrench (force, torque) per unit of control.
    """

    corners: Float[Array, "n 3"]
    inputs: Float[Array, "6 nu"]

    def arms(self, q: Float[Array, " 7"]) -> Float[Array, "n 3"]:
        """From the centre to the corners in the world, in m."""
        return self.corners.astype(q.dtype) @ rotation_matrix(q[3:]).T

    def gap(self, q: Float[Array, " 7"]) -> Float[Array, " n"]:
        """Heights of the corners over the plane in m."""
        return q[2] + self.arms(q)[:, 2]

    def slip(self, q: Float[Array, " 7"], v: Float[Array, " 6"]) -> Float[Array, " 2n"]:
        """Velocities of the corners along the plane in m/s."""
        arm, turn = self.arms(q), rotation_matrix(q[3:]) @ v[3:]
        x = v[0] + turn[1] * arm[:, 2] - turn[2] * arm[:, 1]
        y = v[1] + turn[2] * arm[:, 0] - turn[0] * arm[:, 2]
        return jnp.stack([x, y], axis=1).reshape(-1)

    def input_map(self, q: Float[Array, " 7"]) -> Float[Array, "6 nu"]:
        """The wrench with its torque in the frame of the box."""
        inputs = self.inputs.astype(q.dtype)
        return jnp.concatenate([inputs[:3], rotation_matrix(q[3:]).T @ inputs[3:]])


def _kinetic_energy(q, v):
    inertia = jnp.asarray(INERTIA, v.dtype)
    return (MASS * jnp.sum(v[:3] ** 2) + jnp.sum(inertia * v[3:] ** 2)) / 2


def _potential_energy(q):
    return MASS * GRAVITY * q[2]


def _normal_impulse(motion, gap_impulse):
    return gap_impulse


@lru_cache(maxsize=16)
def dynamics(
    inputs: tuple[int, ...] = (0, 1, 2, 3, 4, 5),
    corners: int = 8,
    central_path: float = CENTRAL_PATH,
    smoothing: float | None = 1e-3,
) -> ProgramDynamics:
    """Time stepping of the box.

    Arguments:
        inputs: components of the wrench (force x, y, z; torque x, y, z) that the controls are.
        corners: 8, or 4 for the lower ones only.
        central_path: kappa at which the box is simulated.
        smoothing: as in `ProgramDynamics`.
    """
    box = Box(jnp.asarray(HALF * SIGNS[:corners]), jnp.asarray(np.eye(6)[:, list(inputs)]))
    mechanism = Mechanism(
        kinetic_energy=_kinetic_energy,
        potential_energy=_potential_energy,
        input_map=box.input_map,
        gap=box.gap,
        num_positions=7,
        num_inputs=len(inputs),
        num_gaps=corners,
        quaternions=(3,),
    )
    contacts = Friction(
        slip=box.slip,
        normal_impulse=_normal_impulse,
        coefficient=np.full(corners, FRICTION),
        dims=(2,) * corners,
    )
    return frictional_dynamics(
        mechanism,
        contacts,
        STEP,
        solver=InteriorPoint(central_path=central_path),
        smoothing=smoothing,
    )


@dataclass(frozen=True)
class Task:
    """What the box shall do.

    `inputs` are the components of the wrench that act, `corners` those that may touch, `goal` is (x, y in m,
    rotation vector in rad); `pushes` are pairs of a number of steps and the control of the first guess during
    them; `low` and `high` bound the region that is drawn, in m.
    """

    description: str
    inputs: tuple[int, ...]
    limits: tuple[float, ...]
    corners: int
    goal: tuple[float, ...]
    pushes: tuple[tuple[int, tuple[float, ...]], ...]
    low: tuple[float, float, float]
    high: tuple[float, float, float]


COMPONENTS = ("force x", "force y", "force z", "torque x", "torque y", "torque z")
TASKS = {
    # Without a force upwards or a torque about a horizontal axis the lower face stays down.
    "slide": Task(
        description="Push a box over a plane to another place and turn it by a right angle",
        inputs=(0, 1, 5),
        limits=(8.0, 8.0, 1.0),
        corners=4,
        goal=(0.6, 0.4, 0.0, 0.0, np.pi / 2),
        pushes=((12, (5.0, 3.0, 0.5)), (18, (0.0, 0.0, 0.0))),
        low=(-0.3, -0.3, 0.0),
        high=(0.9, 0.7, 0.3),
    ),
    "tumble": Task(
        description="Tip a box over its edge onto the next face",
        inputs=(0, 1, 2, 3, 4, 5),
        limits=(6.0, 6.0, 6.0, 0.8, 0.8, 0.8),
        corners=8,
        goal=(0.0, 0.2, -np.pi / 2, 0.0, 0.0),
        pushes=((5, (0.0, 1.5, 3.0, -0.8, 0.0, 0.0)), (25, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))),
        low=(-0.4, -0.3, 0.0),
        high=(0.4, 0.6, 0.4),
    ),
}
HORIZON = 30
MOTION_WEIGHT = 0.01
_POSE = StateSpace((3,))


class Objective(eqx.Module):
    """Costs and goal; numbers only."""

    goal: Float[Array, " 7"]
    control_weight: Float[Array, " nu"]

    def velocity(self, x):
        """Velocity (centre in m/s; rotation in rad/s, in the frame of the box) [6] of the last step."""
        return _POSE.difference(x[7:], x[:7]) / STEP

    def pose_error(self, x):
        """Position in the plane in m, and rotation vector in rad, from the goal [5]."""
        off = _POSE.difference(x[7:], self.goal.astype(x.dtype))
        return jnp.concatenate([off[:2], off[3:]])

    def stage_cost(self, x, u, t):
        """Effort and, with a small weight, motion: an integral over time."""
        effort = jnp.sum(self.control_weight.astype(x.dtype) * u**2)
        return STEP / 2 * (effort + MOTION_WEIGHT * jnp.sum(self.velocity(x) ** 2))

    def terminal_cost(self, x):
        """Half the square of what is left to the goal, at rest."""
        return 5.0 * jnp.sum(self.pose_error(x) ** 2) + 0.05 * jnp.sum(self.velocity(x) ** 2)

    def terminal_error(self, x):
        """Zero at the goal at rest [11]: pose, and motion per step; the height is the plane's business."""
        return jnp.concatenate([self.pose_error(x), STEP * self.velocity(x)])


def pose(x: float, y: float, turn: tuple[float, ...]) -> np.ndarray:
    """Configuration of a box that lies on the plane, turned by a rotation vector [7]."""
    flat, turned = jnp.asarray([x, y, 0.0, 1.0, 0.0, 0.0, 0.0]), jnp.asarray([0.0, 0.0, 0.0, *turn])
    q = np.array(_POSE.retract(flat, turned))
    q[2] = -np.min((HALF * SIGNS) @ rotation_matrix(jnp.asarray(q[3:])).T[:, 2])
    return q


def _goal_error(plan: Plan, objective: Objective) -> float:
    return float(jnp.max(jnp.abs(objective.pose_error(plan.states[-1]))))


def build(variant: str, settings: Settings) -> Scenario:
    """Move the box to its goal and leave it at rest."""
    task = TASKS[variant]
    central_path = CENTRAL_PATH if settings.central_path is None else settings.central_path
    if settings.smoothing is None:
        smoothing = Continuation(1e-3, 1e-4, 0.5)
    else:
        smoothing = Continuation(settings.smoothing, settings.smoothing)
    x, y, *turn = task.goal
    start, goal = pose(0.0, 0.0, (0.0, 0.0, 0.0)), pose(x, y, tuple(turn))
    limits, low, high = np.array(task.limits), np.array(task.low), np.array(task.high)
    effort = jnp.asarray(1 / limits**2, settings.dtype)
    objective = Objective(goal=jnp.asarray(goal, settings.dtype), control_weight=effort)
    pushes = np.concatenate([np.tile(control, (steps, 1)) for steps, control in task.pushes])
    noise = 1e-3 * np.random.default_rng(settings.seed).normal(size=pushes.shape)
    return Scenario(
        name="box3d",
        variant=variant,
        description=task.description,
        problem=TrajectoryProblem(
            dynamics(task.inputs, task.corners, central_path),
            horizon=HORIZON,
            stage_cost=objective.stage_cost,
            terminal_cost=objective.terminal_cost,
            terminal_constraint=Equality(objective.terminal_error),
            control_bounds=(-limits, limits),
        ),
        x0=jnp.asarray(np.concatenate([start, start]), settings.dtype),
        controls=jnp.asarray(pushes + noise, settings.dtype),
        solver=AugmentedLagrangian(
            ILQR(max_iterations=20, cost_tol=1e-4),
            constraint_tol=1e-3,
            max_rounds=25,
            initial_penalty=10.0,
            penalty_factor=4.0,
            smoothing=smoothing,
        ),
        dt=STEP,
        extent=seen_extent(low, high),
        goal_error=partial(_goal_error, objective=objective),
        draw=partial(draw, half=HALF, goal=goal, low=low, high=high),
        panels=partial(panels, dt=STEP, names=tuple(COMPONENTS[i] for i in task.inputs), limits=limits),
        solids=partial(solids, half=HALF, goal=goal, low=low, high=high),
        forces=partial(forces, dt=STEP, half=HALF, signs=SIGNS),
    )
