"""Raibert's hopper on flat ground: one period of a gait whose first state is free.

Parameters and costs: 'Trajectory Optimization with Optimization-Based Dynamics' (2021) and its companion
code. q = (body x, z in m, pitch in rad, leg length in m); controls are impulses per step: pitch torque in
N m s, leg force in N s. Body and foot touch the ground with friction, and the leg has hard limits.

A gait begins where it likes and ends in the same posture further on: its second configuration is a parameter
of the problem [4], the state is (q_previous, q) [8].
"""

from functools import lru_cache, partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from optdyn._typing import Array
from optdyn.dynamics import Friction, Mechanism, ProgramDynamics, frictional_dynamics
from optdyn.interior_point import InteriorPoint
from optdyn.systems._hopper_pictures import draw, forces, panels
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

BODY_MASS, FOOT_MASS = 1.0, 0.1  # kg
INERTIA = 0.1  # kg m^2, body
BODY_RADIUS, FOOT_RADIUS = 0.1, 0.05  # m
LEG = (0.25, 1.0)  # m, shortest and longest
LEG_DAMPING = 0.1  # N s / m
FRICTION = 0.5  # body and foot
GRAVITY = 9.81  # m / s^2
STEP = 0.05  # s
HORIZON = 20
LIMIT = 10.0  # N m s, N s
TRAVEL = 0.5  # m
CENTRAL_PATH = 1e-4  # N s m, and J
START = np.array([0.0, 0.55, 0.0, 0.5])
TARGET = np.array([0.5, 0.8, 0.0, 0.25])
WEIGHT = np.array([1.0, 10.0, 1.0, 10.0])
# Weights of the controls, and of the states on the way.
GAITS = {"gait_1": (0.1, 0.1), "gait_2": (1.0, 1.0), "gait_3": (1e-3, 0.1)}


def _foot(q):
    return jnp.stack([q[0] + q[3] * jnp.sin(q[2]), q[1] - q[3] * jnp.cos(q[2])])


def _foot_velocity(q, v):
    s, c = jnp.sin(q[2]), jnp.cos(q[2])
    return jnp.stack([v[0] + q[3] * c * v[2] + s * v[3], v[1] + q[3] * s * v[2] - c * v[3]])


def _kinetic_energy(q, v):
    body = BODY_MASS * (v[0] ** 2 + v[1] ** 2) + INERTIA * v[2] ** 2
    return (body + FOOT_MASS * jnp.sum(_foot_velocity(q, v) ** 2)) / 2


def _potential_energy(q):
    return GRAVITY * (BODY_MASS * q[1] + FOOT_MASS * _foot(q)[1])


def _input_map(q):
    zero, one = jnp.zeros_like(q[0]), jnp.ones_like(q[0])
    leg = jnp.stack([-jnp.sin(q[2]), jnp.cos(q[2]), zero, one])
    return jnp.stack([jnp.stack([zero, zero, one, zero]), leg], axis=1)


def _damping(q, v):
    return jnp.zeros_like(v).at[3].set(-LEG_DAMPING * v[3])


def _published_damping(q, v):
    """As published: an impulse per step that does not depend on its length."""
    return _damping(q, v) / STEP


def _gap(q):
    return jnp.stack([q[1] - BODY_RADIUS, _foot(q)[1] - FOOT_RADIUS, q[3] - LEG[0], LEG[1] - q[3]])


def _slip(q, v):
    return jnp.stack([v[0] + BODY_RADIUS * v[2], _foot_velocity(q, v)[0]])


def _normal_impulse(motion, gap_impulse):
    return gap_impulse[:2]


@lru_cache(maxsize=8)
def dynamics(
    paper: bool = False, central_path: float = CENTRAL_PATH, smoothing: float | None = 1e-3
) -> ProgramDynamics:
    """Time stepping of the hopper; `paper` selects the published form."""
    mechanism = Mechanism(
        kinetic_energy=_kinetic_energy,
        potential_energy=_potential_energy,
        input_map=_input_map,
        force=_published_damping if paper else _damping,
        gap=_gap,
        num_positions=4,
        num_inputs=2,
        num_gaps=4,
    )
    contacts = Friction(
        slip=_slip, normal_impulse=_normal_impulse, coefficient=np.full(2, FRICTION), dims=(1, 1)
    )
    return frictional_dynamics(
        mechanism,
        contacts,
        STEP,
        input_units="impulse",
        form="paper_compat" if paper else "variational",
        contact_at="start" if paper else "end",
        solver=InteriorPoint(central_path=central_path),
        smoothing=smoothing,
    )


def _distance(x):
    """Half the weighted square of the distance from the target."""
    error = x - jnp.asarray(np.tile(TARGET, 2), x.dtype)
    return jnp.sum(jnp.asarray(np.tile(WEIGHT, 2), x.dtype) * error**2) / 2


class Costs(eqx.Module):
    """Weights of a gait; numbers only, so that all gaits share compiled code."""

    control: Array
    state: Array

    def stage_cost(self, x, u, t, p):
        """Controls, and states from the second step on."""
        way = jnp.where(t > 0, self.state.astype(x.dtype) * _distance(x), 0)
        return self.control.astype(x.dtype) * jnp.sum(u**2) / 2 + way


def _terminal_cost(x, p):
    return jnp.sum((x - jnp.asarray(np.tile(TARGET, 2), x.dtype)) ** 2) / 2


def _first_state(p):
    return jnp.concatenate([jnp.asarray(START, p.dtype), p])


def _first_cost(p):
    """Next to nothing for p; the rest is a constant of the published cost."""
    start = jnp.asarray(START, p.dtype)
    constant = 0.1 * jnp.sum(start**2) / 2 + _distance(jnp.concatenate([start, start]))
    return 1e-5 * jnp.sum(p**2) / 2 + constant


def _foot_moves(p):
    return _foot(p) - _foot(jnp.asarray(START, p.dtype))


def _short_of_travel(x, p):
    return TRAVEL - (x - _first_state(p))[np.array([0, 4])]


def _not_periodic(x, p):
    return (x - _first_state(p))[np.array([1, 2, 3, 5, 6, 7])]


def _goal_error(plan: Plan) -> float:
    change = np.asarray(plan.states[-1] - plan.states[0])
    return float(max(np.abs(change[[1, 2, 3, 5, 6, 7]]).max(), (TRAVEL - change[[0, 4]]).max()))


def build(variant: str, settings: Settings) -> Scenario:
    """Half a metre forward in one second, and ready to do it again."""
    paper = variant.endswith("_paper")
    control_weight, state_weight = GAITS[variant.removesuffix("_paper")]
    central_path = CENTRAL_PATH if settings.central_path is None else settings.central_path
    if settings.smoothing is not None:
        smoothing = Continuation(settings.smoothing, settings.smoothing)
    else:
        smoothing = Continuation(3e-3, 3e-3) if paper else Continuation(1e-2, 1e-3, 0.7)
    costs = Costs(jnp.asarray(control_weight, settings.dtype), jnp.asarray(state_weight, settings.dtype))
    controls = 1e-3 * np.random.default_rng(settings.seed).normal(size=(HORIZON, 2))
    controls[:, 1] += 0.5 * BODY_MASS * GRAVITY * STEP
    return Scenario(
        name="hopper",
        variant=variant,
        description="A period of a hopping gait whose first state is free",
        problem=TrajectoryProblem(
            dynamics(paper, central_path),
            horizon=HORIZON,
            stage_cost=costs.stage_cost,
            terminal_cost=_terminal_cost,
            terminal_constraint=(Inequality(_short_of_travel), Equality(_not_periodic)),
            control_bounds=(-LIMIT, LIMIT),
            initial_state=_first_state,
            parameter_cost=_first_cost,
            parameter_constraint=Equality(_foot_moves),
        ),
        x0=jnp.asarray(START, settings.dtype),
        controls=jnp.asarray(controls, settings.dtype),
        solver=AugmentedLagrangian(
            ILQR(max_iterations=20, cost_tol=1e-2),
            constraint_tol=5e-3,
            max_rounds=15,
            initial_penalty=30.0,
            penalty_factor=10.0 if paper else 4.0,
            smoothing=smoothing,
        ),
        dt=STEP,
        extent=(-0.3, 1.0, -0.1, 1.2),
        goal_error=_goal_error,
        draw=partial(draw, body=BODY_RADIUS, foot=FOOT_RADIUS),
        panels=partial(panels, dt=STEP, leg=LEG, limit=LIMIT),
        forces=partial(forces, dt=STEP, body=BODY_RADIUS, foot=FOOT_RADIUS),
    )
