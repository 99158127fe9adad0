"""Soft landing of a rocket whose thrust is projected onto a cone with a cap.

Parameters and costs: 'Trajectory Optimization with Optimization-Based Dynamics' (2021) and its companion
code. The state is (position in m, attitude as modified Rodrigues parameters, velocity in m/s in the world,
angular velocity in rad/s in the body) [12]; the control is the thrust at the tail in the body frame in N [3],
whose last component acts along the axis. Implicit midpoint rule.

The engine turns and throttles within |(F1, F2)| <= F3 <= 12.5 N. Variant `projection`: any control may be
asked for, and the step flies the nearest thrust that the engine can give. Variant `nominal`: the step flies
what is asked for, and the control has bounds.
"""

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from optdyn._typing import Array, Float, PyTree
from optdyn.cones import NonnegativeOrthant, ProductCone, SecondOrderCone
from optdyn.dynamics import AbstractDynamics, ContinuousDynamics, ImplicitMidpoint, ProgramDynamics
from optdyn.interior_point import InteriorPoint
from optdyn.programs import AbstractComplementarityProblem, AbstractProgram
from optdyn.systems._rocket_pictures import draw, forces, panels, solids
from optdyn.systems._scenario import Scenario, Settings
from optdyn.trajopt import (
    ILQR,
    AugmentedLagrangian,
    Continuation,
    Equality,
    Inequality,
    Plan,
    TrajectoryProblem,
)

MASS = 1.0  # kg
LENGTH = 1.0  # m, from the tail to the centre of mass
INERTIA = np.array([1 / 12, 1 / 12, 1e-5])  # kg m^2
GRAVITY = 9.81  # m / s^2
MAX_THRUST = 12.5  # N
STEP = 0.05  # s
HORIZON = 60
START = np.array([2.5, 2.5, 10.0, 0.16367331, -0.39514232, 0.16367331, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0])
GOAL = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.19891237, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
PAD = np.array([0.5, 0.75])  # m, half sizes of the landing pad
SIDE_THRUST = 1.0  # N, bound of the variant `nominal`
STATE_WEIGHT = np.array([0.1, 0.1, 0.1, 1e-5, 1e-5, 1e-5, 0.1, 0.1, 0.1, 1e3, 1e3, 1e3])
THRUST_WEIGHT = np.array([1e3, 1e3, 1e2])
CENTRAL_PATH = 1e-4  # N^2: thrust times distance from its limits at which the projection is simulated


def rotation(r: Float[Array, " 3"]) -> Float[Array, "3 3"]:
    """Rotation from the body to the world, of modified Rodrigues parameters (axis times tan(angle / 4))."""
    zero = jnp.zeros_like(r[0])
    S = jnp.stack(
        [jnp.stack([zero, -r[2], r[1]]), jnp.stack([r[2], zero, -r[0]]), jnp.stack([-r[1], r[0], zero])]
    )
    square = jnp.sum(r**2)
    return jnp.eye(3, dtype=r.dtype) + (8 * S @ S + 4 * (1 - square) * S) / (1 + square) ** 2


def field(x: Float[Array, " 12"], thrust: Float[Array, " 3"], t=None) -> Float[Array, " 12"]:
    """Time derivative of the state under a thrust in N in the body frame."""
    r, v, w = x[3:6], x[6:9], x[9:12]
    inertia = jnp.asarray(INERTIA, x.dtype)
    r_dot = ((1 - jnp.sum(r**2)) * w + 2 * jnp.cross(r, w) + 2 * jnp.sum(r * w) * r) / 4
    v_dot = rotation(r) @ thrust / MASS - jnp.asarray([0.0, 0.0, GRAVITY], x.dtype)
    torque = LENGTH * jnp.stack([thrust[1], -thrust[0], jnp.zeros_like(thrust[0])])
    w_dot = (torque - jnp.cross(w, inertia * w)) / inertia
    return jnp.concatenate([v, r_dot, v_dot, w_dot])


class ThrustProjection(AbstractProgram):
    """The thrust nearest to theta [3] that the engine can give, in N."""

    cone: ProductCone = ProductCone(NonnegativeOrthant(1), SecondOrderCone(3))
    convex = True

    def initial_guess(self, theta: PyTree) -> Array:
        return jnp.asarray([0.0, 0.0, MAX_THRUST / 2], jnp.asarray(theta).dtype)

    def objective(self, w: PyTree, theta: PyTree) -> Array:
        return jnp.sum((w - theta) ** 2) / 2

    def cone_constraint(self, w: PyTree, theta: PyTree) -> Array:
        return jnp.stack([MAX_THRUST - w[2], w[2], w[0], w[1]])


class LandingStep(AbstractComplementarityProblem):
    """The midpoint step under the projected thrust: w = {"thrust" [3], "x" [12]}, both found at once.

    theta = {"x": state, "u": the thrust that is asked for}.
    """

    cone: ProductCone = ProductCone(NonnegativeOrthant(1), SecondOrderCone(3))

    def equations(self, w: PyTree, z: Array, theta: PyTree) -> Array:
        projection, thrust, x = ThrustProjection(), w["thrust"], theta["x"]
        gradient = jax.grad(projection.objective)(thrust, theta["u"])
        _, pull = jax.vjp(lambda thrust: projection.cone_constraint(thrust, theta["u"]), thrust)
        rate = field((x + w["x"]) / 2, thrust)
        return jnp.concatenate([gradient - pull(z)[0], w["x"] - x - STEP * rate])

    def slack(self, w: PyTree, z: Array, theta: PyTree) -> Array:
        return ThrustProjection().cone_constraint(w["thrust"], theta["u"])


def _parameters(x, u, t):
    return {"x": x, "u": u}


def _guess(x, u, t):
    return {"thrust": ThrustProjection().initial_guess(u), "x": x}


def _next_state(x, u, t, w, z):
    return w["x"]


def _outputs(x, u, t, w, z):
    return {"thrust": w["thrust"]}


@lru_cache(maxsize=8)
def dynamics(
    projection: bool = True, central_path: float = CENTRAL_PATH, smoothing: float | None = 1e-4
) -> AbstractDynamics:
    """The rocket with projected thrust, or with whatever thrust is asked for."""
    if not projection:
        return ContinuousDynamics(field, ImplicitMidpoint(), STEP, 12, 3)
    return ProgramDynamics(
        LandingStep(),
        parameters=_parameters,
        guess=_guess,
        next_state=_next_state,
        outputs=_outputs,
        state_dim=12,
        control_dim=3,
        solver=InteriorPoint(central_path=central_path),
        smoothing=smoothing,
    )


def _stage_cost(x, u, t):
    error = x - jnp.asarray(GOAL, x.dtype)
    state = jnp.sum(jnp.asarray(STATE_WEIGHT, x.dtype) * error**2)
    return STEP / 2 * (state + jnp.sum(jnp.asarray(THRUST_WEIGHT, x.dtype) * u**2))


def _terminal_cost(x):
    return STEP / 2 * 1000 * jnp.sum((x - jnp.asarray(GOAL, x.dtype)) ** 2)


def _below_ground(x, u, t):
    return LENGTH - x[2:3]


def _off_the_pad(x):
    return jnp.abs(x[:2]) - jnp.asarray(PAD, x.dtype)


def _not_landed(x):
    return (x - jnp.asarray(GOAL, x.dtype))[2:]


def _goal_error(plan: Plan) -> float:
    x = np.asarray(plan.states[-1])
    return float(max(np.max(np.abs(x - GOAL)[2:]), np.max(np.abs(x[:2]) - PAD)))


def build(variant: str, settings: Settings) -> Scenario:
    """From lying flat at 10 m to standing on the pad, in 3 s."""
    projection = variant == "projection"
    central_path = CENTRAL_PATH if settings.central_path is None else settings.central_path
    smoothing = Continuation(1e-2, 1e-4, 0.5)
    if settings.smoothing is not None:
        smoothing = Continuation(settings.smoothing, settings.smoothing)
    side = SIDE_THRUST
    noise = np.random.default_rng(settings.seed).normal(size=(HORIZON, 3))
    return Scenario(
        name="rocket",
        variant=variant,
        description="Land a rocket softly from lying flat in the air"
        + (", with thrust projected onto a cone with a cap" if projection else ", with bounds on the thrust"),
        problem=TrajectoryProblem(
            dynamics(projection, central_path),
            horizon=HORIZON,
            stage_cost=_stage_cost,
            terminal_cost=_terminal_cost,
            stage_constraint=Inequality(_below_ground),
            terminal_constraint=(Inequality(_off_the_pad), Equality(_not_landed)),
            control_bounds=None if projection else ((-side, -side, 0.0), (side, side, MAX_THRUST)),
        ),
        x0=jnp.asarray(START, settings.dtype),
        controls=jnp.asarray(1e-3 * noise, settings.dtype),
        solver=AugmentedLagrangian(
            ILQR(max_iterations=100, cost_tol=1e-5),
            constraint_tol=5e-3,
            max_rounds=20,
            initial_penalty=10.0 if projection else 0.1,
            smoothing=smoothing,
        ),
        dt=STEP,
        extent=(-1.6, 5.2, -0.4, 11.2),
        goal_error=_goal_error,
        draw=partial(draw, length=LENGTH, pad=PAD),
        panels=partial(
            panels,
            dt=STEP,
            length=LENGTH,
            max_thrust=MAX_THRUST,
            side_bound=None if projection else SIDE_THRUST,
        ),
        solids=partial(solids, length=LENGTH, pad=PAD),
        forces=partial(forces, length=LENGTH, projection=projection),
    )
