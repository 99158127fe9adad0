"""A block on a rough floor: the smallest system whose step is a program, with a closed form to check it by.

The next velocity minimizes the kinetic energy of the change plus the dissipated friction,

    min over (v, t)  1/2 m (v - v_free)^2 + mu p t   subject to  |v| <= t,

whose answer is the soft threshold of the free velocity at mu p / m (p: normal impulse of the step).
"""

import jax.numpy as jnp
import numpy as np

from optdyn._typing import Array, Float
from optdyn.cones import NonnegativeOrthant, SecondOrderCone
from optdyn.dynamics import ProgramDynamics
from optdyn.interior_point import InteriorPoint
from optdyn.programs import AbstractProgram
from optdyn.systems._scenario import Force, Panel, Scenario, Settings, Shape
from optdyn.trajopt import ILQR, AugmentedLagrangian, Continuation, Equality, Plan, TrajectoryProblem

MASS = 1.0  # kg
GRAVITY = 9.81  # m / s^2
STEP = 0.05  # s
HORIZON = 40
GOAL = 1.0  # m
FORCE_LIMIT = 20.0  # N
CENTRAL_PATH = 1e-6  # J


class SlidingBlock(AbstractProgram):
    """The program above; theta = {"v_free", "normal_impulse"}."""

    mass: Float[Array, ""]
    friction: Float[Array, ""]
    cone: SecondOrderCone = SecondOrderCone(2)
    convex = True

    def objective(self, w, theta):
        v, t = w
        return self.mass * (v - theta["v_free"]) ** 2 / 2 + self.friction * theta["normal_impulse"] * t

    def cone_constraint(self, w, theta):
        v, t = w
        return jnp.stack([t, v])


class FreeBlock(AbstractProgram):
    """The program without friction: at mu = 0 every t >= |v| would solve it, and there is no central path."""

    mass: Float[Array, ""]
    cone: NonnegativeOrthant = NonnegativeOrthant(0)
    convex = True

    def objective(self, w, theta):
        return self.mass * (w[0] - theta["v_free"]) ** 2 / 2


# Functions of the module rather than closures: all scenarios share one compiled program.
def _free_velocity(x, u):
    return x[1] + STEP * u[0] / MASS


def _parameters(x, u, t):
    return {"v_free": _free_velocity(x, u), "normal_impulse": MASS * GRAVITY * STEP}


def _guess(x, u, t):
    return x[1], jnp.abs(x[1]) + 1


def _free_guess(x, u, t):
    return (x[1],)


def _next_state(x, u, t, w, z):
    return jnp.stack([x[0] + STEP * w[0], w[0]])


def _outputs(x, u, t, w, z):
    return {"friction_impulse": MASS * (w[0] - _free_velocity(x, u))}


def _stage_cost(x, u, t):
    return 0.5 * STEP * jnp.sum(u**2)


def _terminal_cost(x):
    return jnp.zeros((), x.dtype)


def _distance_to_goal(x):
    return x - jnp.asarray([GOAL, 0.0], x.dtype)


def dynamics(
    friction: float, central_path: float = CENTRAL_PATH, smoothing: float | None = 1e-3
) -> ProgramDynamics:
    """State (position, velocity), control force in N."""
    mass = jnp.asarray(MASS, float)
    return ProgramDynamics(
        SlidingBlock(mass=mass, friction=jnp.asarray(friction, float)) if friction else FreeBlock(mass=mass),
        parameters=_parameters,
        guess=_guess if friction else _free_guess,
        next_state=_next_state,
        outputs=_outputs,
        state_dim=2,
        control_dim=1,
        solver=InteriorPoint(central_path=central_path),
        smoothing=smoothing,
    )


def build(variant: str, settings: Settings) -> Scenario:
    """Push the block one metre and leave it at rest, with little effort."""
    friction = 0.0 if variant == "frictionless" else float(variant.removeprefix("friction_"))
    dtype = settings.dtype
    central_path = CENTRAL_PATH if settings.central_path is None else settings.central_path
    smoothing = Continuation(start=1e-2, end=1e-4, factor=0.5)
    if settings.smoothing is not None:
        smoothing = Continuation(start=settings.smoothing, end=settings.smoothing)
    problem = TrajectoryProblem(
        dynamics(friction, central_path),
        horizon=HORIZON,
        stage_cost=_stage_cost,
        terminal_cost=_terminal_cost,
        terminal_constraint=Equality(_distance_to_goal),
        control_bounds=(-FORCE_LIMIT, FORCE_LIMIT),
    )
    noise = np.random.default_rng(settings.seed).normal(size=(HORIZON, 1))
    return Scenario(
        name="sliding_block",
        variant=variant,
        description=f"Push a block by one metre and stop it, friction coefficient {friction:g}",
        problem=problem,
        x0=jnp.zeros(2, dtype),
        # Strong enough to break the block loose: below that, friction hides the effect of the force.
        controls=jnp.asarray(2 * friction * MASS * GRAVITY + 1e-3 * noise, dtype),
        solver=AugmentedLagrangian(
            ILQR(max_iterations=50, cost_tol=1e-6),
            constraint_tol=1e-4,
            initial_penalty=10.0,
            smoothing=smoothing,
        ),
        dt=STEP,
        extent=(-0.5, 1.5, -0.3, 0.9),
        goal_error=lambda plan: float(np.max(np.abs(np.asarray(plan.states[-1]) - [GOAL, 0.0]))),
        draw=_draw,
        panels=_panels_of(friction),
        forces=_forces,
    )


def _draw(x) -> list[Shape]:
    center = float(np.asarray(x)[0])
    box = np.array([[-0.1, 0.0], [0.1, 0.0], [0.1, 0.15], [-0.1, 0.15]]) + np.array([center, 0.0])
    return [
        Shape("polyline", np.array([[-0.5, 0.0], [1.5, 0.0]]), color="#555555", width=2.0, label="floor"),
        Shape("polyline", np.array([[GOAL, 0.0], [GOAL, 0.3]]), color="#009E73", width=2.0, label="goal"),
        Shape("polygon", box, color="#0072B2", width=1.0, label="block"),
        Shape("disc", np.array([[center, 0.075]]), radius=0.015, color="#222222", width=1.0, label="tip"),
    ]


def _forces(plan: Plan) -> list[Force]:
    """What pushes the block, at the height of its centre, and what the floor does to it."""
    place = np.asarray(plan.states)[1:, 0]
    push = np.asarray(plan.controls)[:, 0]
    rub = np.asarray(plan.step_info.outputs["friction_impulse"]) / STEP
    none = np.zeros_like(place)
    return [
        Force(
            "push", np.stack([place, none + 0.075], 1), np.stack([push, none], 1), color="#E69F00", ends=True
        ),
        Force("floor", np.stack([place, none], 1), np.stack([rub, none + MASS * GRAVITY], 1)),
    ]


def _panels_of(friction: float):
    def panels(plan: Plan) -> list[Panel]:
        states, controls = np.asarray(plan.states), np.asarray(plan.controls)
        times = STEP * np.arange(len(states))
        largest = friction * MASS * GRAVITY * STEP
        impulse = np.asarray(plan.step_info.outputs["friction_impulse"])
        return [
            Panel("Position", "m", times, {"block": states[:, 0]}, (GOAL,)),
            Panel("Velocity", "m/s", times, {"block": states[:, 1]}),
            Panel(
                "Force", "N", times[:-1], {"push": controls[:, 0]}, (-FORCE_LIMIT, FORCE_LIMIT), kind="step"
            ),
            Panel(
                "Friction impulse", "N s", times[1:], {"friction": impulse}, (-largest, largest), kind="step"
            ),
        ]

    return panels
