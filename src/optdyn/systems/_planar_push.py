"""A block on a table, pushed by a point: Coulomb friction under four corners and at the pusher.

Parameters and costs: 'Trajectory Optimization with Optimization-Based Dynamics' (2021) and its companion
code. q = (block x, y in m, angle in rad, pusher x, y in m); the state is (q_previous, q) [10], control is the
impulse on the pusher per step in N s [2]. Each corner carries a quarter of the weight, whatever happens.

The block is a square of 0.2 m with corners rounded by 1 cm where the pusher touches it: its signed
distance is exact outside and has a normal everywhere. Variants `_paper` take the published
(dx^10 + dy^10)^(1/10) - 0.1 in its place, which is no distance away from the middle of a side.
"""

from functools import lru_cache, partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from optdyn._typing import Array, Float
from optdyn.dynamics import Friction, Mechanism, ProgramDynamics, frictional_dynamics
from optdyn.interior_point import InteriorPoint
from optdyn.systems._planar_push_pictures import draw, forces, panels
from optdyn.systems._scenario import Scenario, Settings
from optdyn.trajopt import ILQR, AugmentedLagrangian, Continuation, Equality, Plan, TrajectoryProblem

HALF = 0.1  # m, half a side of the block
ROUNDING = 0.01  # m
MASS = 1.0  # kg, block
PUSHER_MASS = 10.0  # kg
INERTIA = MASS * (2 * (2 * HALF) ** 2) / 12  # kg m^2
GRAVITY = 9.81  # m / s^2
FRICTION = 0.5  # table and pusher
STEP = 0.1  # s
HORIZON = 25
LIMIT = 5.0  # N s
CENTRAL_PATH = 1e-4  # N s m, and J
CORNERS = HALF * np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
MASSES = np.array([MASS, MASS, INERTIA, PUSHER_MASS, PUSHER_MASS])
WEIGHT = np.array([1.0, 1.0, 1.0, 0.1, 0.1])
# Goal of the block, weight of the control, start of the pusher, pushes along x of the first guess.
TASKS = {
    "translate": ((1.0, 0.0, 0.0), 0.1, (-HALF - 1e-8, 0.0), np.repeat([1.0, 0.0], [5, 20])),
    "rotate": ((0.5, 0.5, np.pi / 2), 0.01, (-HALF - 1e-8, -0.01), np.repeat([1.0, 0.5, 0.0], [5, 5, 15])),
}


def _axes(angle: Array) -> Float[Array, "2 2"]:
    """The axes of the block, as columns."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([jnp.stack([c, -s]), jnp.stack([s, c])])


def _quarter_turn(a: Float[Array, "*b 2"]) -> Float[Array, "*b 2"]:
    return a @ jnp.asarray([[0.0, 1.0], [-1.0, 0.0]], a.dtype)


class Block(eqx.Module):
    """Where the pusher touches the block, and what slips on what."""

    published: bool = eqx.field(static=True)

    def distance(self, d: Float[Array, " 2"]) -> Float[Array, ""]:
        """Signed distance in m of a point in the frame of the block."""
        if self.published:
            return jnp.sum(d**10) ** 0.1 - HALF
        a = jnp.abs(d) - (HALF - ROUNDING)
        return _norm(jnp.maximum(a, 0)) + jnp.minimum(jnp.max(a), 0) - ROUNDING

    def normal(self, d: Float[Array, " 2"]) -> Float[Array, " 2"]:
        """Unit vector along the gradient of the distance."""
        if self.published:
            n = d**9
        else:
            a = jnp.abs(d) - (HALF - ROUNDING)
            nearest_side = (a >= jnp.max(a)).astype(d.dtype)
            n = jnp.sign(d) * jnp.where(jnp.max(a) > 0, jnp.maximum(a, 0), nearest_side)
        return n / _norm(n)

    def gap(self, q: Float[Array, " 5"]) -> Float[Array, " 1"]:
        """Distance of the pusher from the block in m."""
        return self.distance((q[3:] - q[:2]) @ _axes(q[2]))[None]

    def slip(self, q: Float[Array, " 5"], v: Float[Array, " 5"]) -> Float[Array, " 9"]:
        """Velocities of the corners over the table, and of the block along the pusher, in m/s."""
        axes = _axes(q[2])
        arm = q[3:] - q[:2]
        tangent = axes @ _quarter_turn(self.normal(arm @ axes))
        at_pusher = v[:2] + v[2] * _quarter_turn(arm) - v[3:]
        arms = jnp.asarray(CORNERS, q.dtype) @ axes.T
        at_corners = v[None, :2] + v[2] * _quarter_turn(arms)
        return jnp.concatenate([at_corners.ravel(), jnp.sum(tangent * at_pusher)[None]])


def _norm(a: Float[Array, " 2"]) -> Float[Array, ""]:
    """Length, with derivative zero at zero."""
    square = jnp.sum(a * a)
    positive = square > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1)), 0)


def _kinetic_energy(q, v):
    return jnp.sum(jnp.asarray(MASSES, v.dtype) * v**2) / 2


def _potential_energy(q):
    return jnp.zeros((), q.dtype)


def _input_map(q):
    return jnp.eye(5, dtype=q.dtype)[:, 3:]


def _normal_impulse(motion, gap_impulse):
    weight = MASS * GRAVITY * motion.h.astype(gap_impulse.dtype) / 4
    return jnp.concatenate([jnp.broadcast_to(weight, (4,)), gap_impulse])


def mechanism(published: bool = False) -> Mechanism:
    """Block and pusher by their energies; the gap is their distance."""
    return Mechanism(
        kinetic_energy=_kinetic_energy,
        potential_energy=_potential_energy,
        input_map=_input_map,
        gap=Block(published).gap,
        num_positions=5,
        num_inputs=2,
        num_gaps=1,
    )


@lru_cache(maxsize=8)
def dynamics(
    published: bool = False, central_path: float = CENTRAL_PATH, smoothing: float | None = 1e-2
) -> ProgramDynamics:
    """Time stepping of block and pusher; `published` selects the shape of the published code."""
    contacts = Friction(
        slip=Block(published).slip,
        normal_impulse=_normal_impulse,
        coefficient=np.full(5, FRICTION),
        dims=(2, 2, 2, 2, 1),
    )
    return frictional_dynamics(
        mechanism(published),
        contacts,
        STEP,
        input_units="impulse",
        solver=InteriorPoint(central_path=central_path),
        smoothing=smoothing,
    )


class Task(eqx.Module):
    """Costs and goal; numbers only, so that both tasks share compiled code."""

    goal: Array  # [3]
    control_weight: Array

    def state_cost(self, x):
        """Half the weighted square of velocity and of the distance from the goal."""
        goal = self.goal.astype(x.dtype)
        target = jnp.concatenate([goal, goal[:2] - HALF])
        weight = jnp.asarray(WEIGHT, x.dtype)
        previous, current = x[:5], x[5:]
        v = (current - previous) / STEP
        return jnp.sum(weight * (v**2 + (previous - target) ** 2 + (current - target) ** 2)) / 2

    def stage_cost(self, x, u, t):
        """Cost of a stage."""
        return self.state_cost(x) + self.control_weight.astype(x.dtype) * jnp.sum(u**2) / 2

    def error(self, x):
        """Pose of the block at the end, which also stands still: zero at the goal [6]."""
        goal = self.goal.astype(x.dtype)
        return jnp.concatenate([x[:3] - goal, x[5:8] - goal])


def _goal_error(plan: Plan, goal: np.ndarray) -> float:
    x = np.asarray(plan.states[-1])
    return float(max(np.max(np.abs(x[:3] - goal)), np.max(np.abs(x[5:8] - goal))))


def build(variant: str, settings: Settings) -> Scenario:
    """Push the block to its goal and leave it at rest."""
    name, published = variant.removesuffix("_paper"), variant.endswith("_paper")
    goal, control_weight, pusher, pushes = TASKS[name]
    central_path = CENTRAL_PATH if settings.central_path is None else settings.central_path
    smoothing = 1e-2 if settings.smoothing is None else settings.smoothing
    task = Task(jnp.asarray(goal, settings.dtype), jnp.asarray(control_weight, settings.dtype))
    start = np.array([0.0, 0.0, 0.0, *pusher])
    controls = 1e-3 * np.random.default_rng(settings.seed).normal(size=(HORIZON, 2))
    controls[:, 0] += pushes
    return Scenario(
        name="planar_push",
        variant=variant,
        description="Push a block over a table by one metre"
        if name == "translate"
        else "Push a block over a table and turn it by a right angle",
        problem=TrajectoryProblem(
            dynamics(published, central_path),
            horizon=HORIZON,
            stage_cost=task.stage_cost,
            terminal_cost=task.state_cost,
            terminal_constraint=Equality(task.error),
            control_bounds=(-LIMIT, LIMIT),
        ),
        x0=jnp.asarray(np.concatenate([start, start]), settings.dtype),
        controls=jnp.asarray(controls, settings.dtype),
        solver=AugmentedLagrangian(
            ILQR(max_iterations=20, cost_tol=1e-3),
            constraint_tol=5e-3,
            max_rounds=15,
            initial_penalty=10.0,
            smoothing=Continuation(smoothing, smoothing),
        ),
        dt=STEP,
        extent=(-0.25, 1.2, -0.35, 0.35) if name == "translate" else (-0.25, 0.75, -0.25, 0.75),
        goal_error=partial(_goal_error, goal=np.array(goal)),
        draw=partial(draw, goal=np.array(goal), half=HALF),
        panels=partial(panels, dt=STEP, goal=np.array(goal), limit=LIMIT),
        plane="above",
        forces=partial(forces, dt=STEP, corners=CORNERS, pusher_mass=PUSHER_MASS),
    )
