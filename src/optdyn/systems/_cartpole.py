"""Cart-pole with Coulomb friction on the rail and in the hinge.

Parameters, costs and the published step: 'Trajectory Optimization with Optimization-Based Dynamics' (2021)
and its companion code. The angle counts from hanging down. The state is (q_previous, q) [4] with
q = (cart in m, pole in rad); the control is the impulse on the cart per step in N s [1].

As published, the normal impulses of both joints are fixed: what carries the weight at rest. In the variants
`_coupled` they follow from the motion: see `reactions`.
"""

from functools import lru_cache, partial

import jax.numpy as jnp
import numpy as np

from optdyn._typing import Array
from optdyn.dynamics import (
    Friction,
    Mechanism,
    Motion,
    ProgramDynamics,
    frictional_dynamics,
    mechanical_dynamics,
)
from optdyn.interior_point import InteriorPoint
from optdyn.systems._scenario import Force, Panel, Scenario, Settings, Shape
from optdyn.trajopt import ILQR, AugmentedLagrangian, Continuation, Equality, Plan, TrajectoryProblem

CART_MASS = 1.0  # kg
POLE_MASS = 0.2  # kg, at the end of the pole
LENGTH = 0.5  # m
GRAVITY = 9.81  # m / s^2
STEP = 0.05  # s
HORIZON = 50
GOAL = np.array([0.0, np.pi, 0.0, np.pi])
CENTRAL_PATH = 1e-4  # J: largest friction impulse times slip at which friction is simulated
SMOOTHING = 0.1  # J, times the coefficient of friction
# What presses the joints together in one step: N s on the rail, N m s in the hinge.
NORMAL_IMPULSE = GRAVITY * STEP * np.array([CART_MASS + POLE_MASS, POLE_MASS * LENGTH])
# Share of the load at rest with which the bearings are clamped, so that a load of zero is no kink.
PRELOAD = 0.01


def _kinetic_energy(q, v):
    cart = (CART_MASS + POLE_MASS) * v[0] ** 2
    both = 2 * POLE_MASS * LENGTH * jnp.cos(q[1]) * v[0] * v[1]
    return (cart + both + POLE_MASS * LENGTH**2 * v[1] ** 2) / 2


def _potential_energy(q):
    return -POLE_MASS * GRAVITY * LENGTH * jnp.cos(q[1])


def _input_map(q):
    return jnp.asarray([[1.0], [0.0]], q.dtype)


def _published_bias(q, v):
    """As published: the centrifugal term has the wrong sign."""
    lever = POLE_MASS * LENGTH * jnp.sin(q[1])
    return jnp.stack([lever * v[1] ** 2, GRAVITY * lever])


def _slip(q, v):
    return v


def _normal_impulse(motion, gap_impulse):
    return jnp.asarray(NORMAL_IMPULSE, motion.q2.dtype)


def _tip_momentum(q_from, q_to, h):
    """Linear momentum of the pole [2] (along the rail, upwards) on the way between two configurations."""
    middle, v = (q_from + q_to) / 2, (q_to - q_from) / h
    along, up = v[0] + LENGTH * jnp.cos(middle[1]) * v[1], LENGTH * jnp.sin(middle[1]) * v[1]
    return POLE_MASS * jnp.stack([along, up])


def reactions(motion: Motion) -> tuple[Array, Array]:
    """Normal impulse of the rail on the cart [], impulse of the hinge on the pole [2], in N s per step.

    They are what the discrete equations of motion ask for in the directions that rail and hinge hold: with
    free coordinates for the height of the cart and the place of the pole's lower end, the rows of these
    coordinates in the discrete Euler-Lagrange equations are the momentum balances below. A rail that has to
    hold the cart down has a negative normal impulse.
    """
    h = motion.h.astype(motion.q2.dtype)
    before, after = _tip_momentum(motion.q0, motion.q1, h), _tip_momentum(motion.q1, motion.q2, h)
    weight = jnp.stack([jnp.zeros_like(h), GRAVITY * POLE_MASS * h])
    hinge = after - before + weight
    return hinge[1] + GRAVITY * CART_MASS * h, hinge


def _coupled_normal_impulse(motion, gap_impulse):
    """Sizes of both reactions; the lever of the hinge is the length of the pole, as at rest."""
    rail, hinge = reactions(motion)
    square = jnp.stack([rail**2, LENGTH**2 * jnp.sum(hinge**2)])
    return jnp.sqrt(square + jnp.asarray((PRELOAD * NORMAL_IMPULSE) ** 2, square.dtype))


MECHANISM = Mechanism(
    kinetic_energy=_kinetic_energy,
    potential_energy=_potential_energy,
    input_map=_input_map,
    num_positions=2,
    num_inputs=1,
    published_bias=_published_bias,
)


@lru_cache(maxsize=32)
def dynamics(
    friction: float = 0.0,
    paper: bool = False,
    central_path: float = CENTRAL_PATH,
    smoothing: float | None = 1e-3,
    coupled: bool = False,
) -> ProgramDynamics:
    """Time stepping with the coefficient `friction` in both joints.

    `paper`: the published discretisation. `coupled`: normal impulses that follow from the motion.
    """
    settings = {
        "input_units": "impulse",
        "form": "paper_compat" if paper else "variational",
        "solver": InteriorPoint(central_path=central_path),
        "smoothing": smoothing,
    }
    if friction == 0:
        return mechanical_dynamics(MECHANISM, STEP, **settings)
    joints = Friction(
        slip=_slip,
        normal_impulse=_coupled_normal_impulse if coupled else _normal_impulse,
        coefficient=np.full(2, friction),
        dims=(1, 1),
    )
    return frictional_dynamics(MECHANISM, joints, STEP, **settings)


def _stage_cost(x, u, t):
    return jnp.sum(u**2)


def _terminal_error(x):
    return x - jnp.asarray(GOAL, x.dtype)


def _terminal_cost(x):
    return jnp.sum(_terminal_error(x) ** 2)


def _goal_error(plan: Plan) -> float:
    return float(np.max(np.abs(np.asarray(plan.states[-1]) - GOAL)))


def build(variant: str, settings: Settings) -> Scenario:
    """Swing up from hanging at rest and stop upright where the cart began."""
    paper, coupled = variant.endswith("_paper"), variant.endswith("_coupled")
    friction = 0.0 if variant == "frictionless" else float(variant.split("_")[1])
    central_path = CENTRAL_PATH if settings.central_path is None else settings.central_path
    # Derivatives that blur the slip over the same range of speeds, whatever the coefficient is. From its own
    # guess, the published 0.25 finds the cheaper of two swings with less of it only.
    blur = (0.04 if paper and friction == 0.25 else SMOOTHING) * max(friction, 0.01)
    smoothing = Continuation(blur, blur)
    if settings.smoothing is not None:
        smoothing = Continuation(settings.smoothing, settings.smoothing)
    controls = 1e-3 * np.random.default_rng(settings.seed).normal(size=(HORIZON, 1))
    controls[0] += -1.0 if friction == 0.25 else -1.5
    # With loads that follow from the motion, the best way is to swing slowly and far.
    reach = (-5.6, 1.2) if coupled else (-3.8, 2.0) if paper else (-2.4, 2.0)
    extent = (*reach, -0.8, 0.8)
    return Scenario(
        name="cartpole",
        variant=variant,
        description="Swing up a pole on a cart"
        + (f", friction coefficient {friction:g} on the rail and in the hinge" if friction else "")
        + (", in proportion to the reactions" if coupled else ""),
        problem=TrajectoryProblem(
            dynamics(friction, paper, central_path, coupled=coupled),
            horizon=HORIZON,
            stage_cost=_stage_cost,
            terminal_cost=_terminal_cost,
            terminal_constraint=Equality(_terminal_error),
        ),
        x0=jnp.zeros(4, settings.dtype),
        controls=jnp.asarray(controls, settings.dtype),
        solver=AugmentedLagrangian(
            ILQR(max_iterations=100, cost_tol=1e-4),
            constraint_tol=5e-3 if paper else 1e-3,
            max_rounds=20,
            initial_penalty=10.0,
            smoothing=smoothing,
        ),
        dt=STEP,
        extent=extent,
        goal_error=_goal_error,
        draw=partial(_draw, rail=extent[:2]),
        panels=lambda plan: _panels(plan, friction),
        forces=_forces,
    )


def _draw(x, rail: tuple[float, float]) -> list[Shape]:
    cart, angle = np.asarray(x, dtype=float)[2:]
    hinge = np.array([cart, 0.0])
    tip = hinge + LENGTH * np.array([np.sin(angle), -np.cos(angle)])
    box = hinge + np.array([[-0.16, -0.08], [0.16, -0.08], [0.16, 0.08], [-0.16, 0.08]])
    return [
        Shape("polyline", np.array([[x, -0.08] for x in rail]), color="#9AA0A6", width=2.0, label="rail"),
        Shape("polygon", box, color="#0072B2", width=1.0, label="cart"),
        Shape("polyline", np.stack([hinge, tip]), color="#D55E00", width=5.0, label="pole"),
        Shape("disc", hinge[None], radius=0.025, color="#222222", width=1.0),
        Shape("disc", tip[None], radius=0.05, color="#D55E00", width=1.0, label="tip"),
    ]


def _forces(plan: Plan) -> list[Force]:
    """What pushes the cart, and the friction of the rail."""
    cart = np.asarray(plan.states)[1:, 2]
    none = np.zeros_like(cart)
    push = np.stack([np.asarray(plan.controls)[:, 0] / STEP, none], axis=1)
    arrows = [Force("motor", np.stack([cart, none], axis=1), push, color="#E69F00", ends=True)]
    if "friction_impulse" in plan.step_info.outputs:
        rub = np.asarray(plan.step_info.outputs["friction_impulse"])[:, 0] / STEP
        arrows.append(Force("rail", np.stack([cart, none - 0.08], axis=1), np.stack([rub, none], axis=1)))
    return arrows


def _panels(plan: Plan, friction: float) -> list[Panel]:
    states, controls = np.asarray(plan.states), np.asarray(plan.controls)
    times = STEP * np.arange(len(states))
    q, v = states[:, 2:], (states[:, 2:] - states[:, :2]) / STEP
    panels = [
        Panel("Cart", "m", times, {"cart": q[:, 0]}, (0.0,)),
        Panel("Pole angle", "rad", times, {"pole": q[:, 1]}, goals=(np.pi,)),
        Panel("Velocities", "m/s, rad/s", times, {"cart": v[:, 0], "pole": v[:, 1]}),
        Panel("Impulse on the cart per step", "N s", times[:-1], {"motor": controls[:, 0]}, kind="step"),
    ]
    if friction:
        impulse = np.asarray(plan.step_info.outputs["friction_impulse"])
        limit = np.asarray(plan.step_info.outputs["friction_limit"])
        for i, (name, unit) in enumerate((("rail", "N s"), ("hinge", "N m s"))):
            series = {name: impulse[:, i], "limit": limit[:, i], "limit, other side": -limit[:, i]}
            panels.append(Panel(f"Friction of the {name} and its cone", unit, times[1:], series, kind="step"))
    return panels
