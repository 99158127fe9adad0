"""Hopper and planar push once more, as casadi expressions: what the direct transcription is built from.

`ca` is the casadi module; it is passed in, so that nothing here needs it until it is used. The tests compare
every function with the scenario it stands for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optdyn.systems import _hopper as hopper
from optdyn.systems import _planar_push as push

Expression = Any


@dataclass(frozen=True)
class Model:
    """A mechanism, its costs and its constraints as functions that build casadi expressions."""

    num_positions: int
    num_inputs: int
    num_gaps: int
    dims: tuple[int, ...]
    step: float
    horizon: int
    friction: float
    limit: float
    central_path: float
    tolerance: float
    start: np.ndarray
    kinetic_energy: Callable[..., Expression]
    potential_energy: Callable[..., Expression]
    input_map: Callable[..., Expression]
    force: Callable[..., Expression]
    gap: Callable[..., Expression]
    slip: Callable[..., Expression]
    normal_impulse: Callable[..., Expression]
    stage_cost: Callable[..., Expression]
    terminal_cost: Callable[..., Expression]
    terminal_constraints: Callable[..., list[tuple[Expression, float, float]]]
    way: Callable[[float], np.ndarray]  # first guess of the configuration, at 0 .. 1 of the time
    first_is_free: bool = False
    first_cost: Callable[..., Expression] = lambda ca, q1: 0.0
    first_constraint: Callable[..., Expression] = lambda ca, q1: None


def _square(ca, weight, x):
    return ca.sum1(ca.DM(weight) * x**2)


def hopper_model(variant: str) -> Model:
    """A gait (correct mechanics)."""
    control_weight, state_weight = hopper.GAITS[variant]
    target, weight = hopper.TARGET, hopper.WEIGHT

    def foot(ca, q):
        return ca.vertcat(q[0] + q[3] * ca.sin(q[2]), q[1] - q[3] * ca.cos(q[2]))

    def foot_velocity(ca, q, v):
        s, c = ca.sin(q[2]), ca.cos(q[2])
        return ca.vertcat(v[0] + q[3] * c * v[2] + s * v[3], v[1] + q[3] * s * v[2] - c * v[3])

    def kinetic(ca, q, v):
        body = hopper.BODY_MASS * (v[0] ** 2 + v[1] ** 2) + hopper.INERTIA * v[2] ** 2
        return (body + hopper.FOOT_MASS * ca.sumsqr(foot_velocity(ca, q, v))) / 2

    def potential(ca, q):
        return hopper.GRAVITY * (hopper.BODY_MASS * q[1] + hopper.FOOT_MASS * foot(ca, q)[1])

    def input_map(ca, q):
        return ca.horzcat(ca.DM([0, 0, 1, 0]), ca.vertcat(-ca.sin(q[2]), ca.cos(q[2]), 0, 1))

    def gap(ca, q):
        clear = foot(ca, q)[1] - hopper.FOOT_RADIUS
        return ca.vertcat(q[1] - hopper.BODY_RADIUS, clear, q[3] - hopper.LEG[0], hopper.LEG[1] - q[3])

    def distance(ca, qa, qb):
        return (_square(ca, weight, qa - target) + _square(ca, weight, qb - target)) / 2

    def stage_cost(ca, qa, qb, u, t):
        way = state_weight * distance(ca, qa, qb) if t > 0 else 0.0
        return control_weight * ca.sumsqr(u) / 2 + way

    def first_cost(ca, q1):
        constant = 0.1 * np.sum(hopper.START**2) / 2 + np.sum(weight * (hopper.START - target) ** 2)
        return 1e-5 * ca.sumsqr(q1) / 2 + constant

    def terminal_constraints(ca, q1, qa, qb):
        moved = ca.vertcat(qa - ca.DM(hopper.START), qb - q1)
        travel = ca.vertcat(moved[0], moved[4])
        rest = ca.vertcat(moved[1:4], moved[5:8])
        return [(travel, hopper.TRAVEL, np.inf), (rest, 0.0, 0.0)]

    return Model(
        num_positions=4,
        num_inputs=2,
        num_gaps=4,
        dims=(1, 1),
        step=hopper.STEP,
        horizon=hopper.HORIZON,
        friction=hopper.FRICTION,
        limit=hopper.LIMIT,
        central_path=hopper.CENTRAL_PATH,
        tolerance=5e-3,
        start=hopper.START,
        kinetic_energy=kinetic,
        potential_energy=potential,
        input_map=input_map,
        force=lambda ca, q, v: ca.vertcat(0, 0, 0, -hopper.LEG_DAMPING * v[3]),
        gap=gap,
        slip=lambda ca, q, v: ca.vertcat(v[0] + hopper.BODY_RADIUS * v[2], foot_velocity(ca, q, v)[0]),
        normal_impulse=lambda ca, press: press[:2],
        stage_cost=stage_cost,
        terminal_cost=lambda ca, qa, qb: (ca.sumsqr(qa - target) + ca.sumsqr(qb - target)) / 2,
        terminal_constraints=terminal_constraints,
        way=lambda part: hopper.START + part * np.array([hopper.TRAVEL, 0.0, 0.0, 0.0]),
        first_is_free=True,
        first_cost=first_cost,
        first_constraint=lambda ca, q1: foot(ca, q1) - foot(ca, ca.DM(hopper.START)),
    )


def push_model(variant: str) -> Model:
    """A push with the exact distance of the rounded block."""
    goal, control_weight, pusher, _ = push.TASKS[variant]
    goal = np.array(goal)
    target = np.array([*goal, *(goal[:2] - push.HALF)])

    def in_block(ca, q):
        c, s = ca.cos(q[2]), ca.sin(q[2])
        d = q[3:] - q[:2]
        return ca.vertcat(c * d[0] + s * d[1], c * d[1] - s * d[0])

    def corner(ca, d):
        return ca.fabs(d) - (push.HALF - push.ROUNDING)

    def norm(ca, a):
        return ca.sqrt(ca.sumsqr(a) + 1e-24)

    def gap(ca, q):
        a = corner(ca, in_block(ca, q))
        return norm(ca, ca.fmax(a, 0)) + ca.fmin(ca.fmax(a[0], a[1]), 0) - push.ROUNDING

    def normal(ca, d):
        a = corner(ca, d)
        inside = ca.vertcat(a[0] >= a[1], a[1] > a[0])
        n = ca.sign(d) * ca.if_else(ca.fmax(a[0], a[1]) > 0, ca.fmax(a, 0), inside)
        return n / norm(ca, n)

    def slip(ca, q, v):
        c, s = ca.cos(q[2]), ca.sin(q[2])
        axes = ca.vertcat(ca.horzcat(c, -s), ca.horzcat(s, c))
        rows = []
        for x, y in push.CORNERS:
            arm = axes @ ca.DM([x, y])
            rows.append(v[:2] + v[2] * ca.vertcat(-arm[1], arm[0]))
        n = normal(ca, in_block(ca, q))
        tangent = axes @ ca.vertcat(-n[1], n[0])
        arm = q[3:] - q[:2]
        at_pusher = v[:2] + v[2] * ca.vertcat(-arm[1], arm[0]) - v[3:]
        return ca.vertcat(*rows, ca.dot(tangent, at_pusher))

    def state_cost(ca, qa, qb):
        total = (qb - qa) ** 2 / push.STEP**2 + (qa - target) ** 2 + (qb - target) ** 2
        return ca.sum1(ca.DM(push.WEIGHT) * total) / 2

    load = push.MASS * push.GRAVITY * push.STEP / 4
    start = np.array([0.0, 0.0, 0.0, *pusher])
    return Model(
        num_positions=5,
        num_inputs=2,
        num_gaps=1,
        dims=(2, 2, 2, 2, 1),
        step=push.STEP,
        horizon=push.HORIZON,
        friction=push.FRICTION,
        limit=push.LIMIT,
        central_path=push.CENTRAL_PATH,
        tolerance=5e-3,
        start=start,
        kinetic_energy=lambda ca, q, v: _square(ca, push.MASSES, v) / 2,
        potential_energy=lambda ca, q: 0.0 * q[0],
        input_map=lambda ca, q: ca.DM(np.eye(5)[:, 3:]),
        force=lambda ca, q, v: ca.DM.zeros(5),
        gap=gap,
        slip=slip,
        normal_impulse=lambda ca, press: ca.vertcat(load, load, load, load, press),
        stage_cost=lambda ca, qa, qb, u, t: state_cost(ca, qa, qb) + control_weight * ca.sumsqr(u) / 2,
        terminal_cost=state_cost,
        terminal_constraints=lambda ca, q1, qa, qb: [
            (ca.vertcat(qa[:3] - ca.DM(goal), qb[:3] - ca.DM(goal)), 0.0, 0.0)
        ],
        way=lambda part: start + part * np.array([*goal, *goal[:2]]),
    )


SYSTEMS: dict[str, Callable[[str], Model]] = {"hopper": hopper_model, "planar_push": push_model}
