"""Drawings and charts of the rocket."""

import numpy as np

from optdyn.systems._scenario import Force, Panel, Shape, Solid
from optdyn.trajopt import Plan


def draw(x, length: float, pad: np.ndarray) -> list[Shape]:
    """Seen along the diagonal of the ground on which the flight begins: right is (x + y) / sqrt(2)."""
    view = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, np.sqrt(2)]]) / np.sqrt(2)
    state = np.asarray(x, dtype=float)
    matrix = rotation_matrix(state[3:6])
    center, axis = view @ state[:3], view @ matrix[:, 2]
    # The hull is drawn flat: its width across the axis as seen.
    across = 0.18 * np.array([-axis[1], axis[0]]) / max(np.linalg.norm(axis), 1e-9)
    tail, nose = center - length * axis, center + length * axis
    shoulder = center + 0.6 * length * axis
    hull = np.stack([tail - across, tail + across, shoulder + across, nose, shoulder - across])
    fins = np.stack([tail - 2 * across, tail + 2 * across, tail + 0.35 * axis])
    edge = np.linalg.norm(pad) / np.sqrt(2)
    return [
        Shape("polyline", np.array([[-1.6, 0.0], [5.2, 0.0]]), color="#9AA0A6", width=2.0, label="ground"),
        Shape("polyline", np.array([[-edge, 0.0], [edge, 0.0]]), color="#009E73", width=6.0, label="pad"),
        Shape("polygon", fins, color="#D55E00", width=1.0, label="fins"),
        Shape("polygon", hull, color="#0072B2", width=1.0, label="hull"),
        Shape("disc", center[None], radius=0.05, color="#222222", width=1.0, label="tip"),
    ]


def solids(x, length: float, pad: np.ndarray) -> list[Solid]:
    """The same in space: ground, pad, and a hull with a nose and four fins."""
    state = np.asarray(x, dtype=float)
    center, r = state[:3], state[3:6]
    square = r @ r
    attitude = np.concatenate([[1 - square], 2 * r]) / (1 + square)
    matrix = rotation_matrix(r)
    radius = 0.18

    def part(kind, size, place, color, label):
        return Solid(kind, size, center + matrix @ place, attitude, (color,), label=label)

    fins = []
    for x_side, y_side in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)):
        wide = tuple(0.02 + radius * abs(side) for side in (x_side, y_side))
        place = np.array([1.5 * radius * x_side, 1.5 * radius * y_side, 0.175 - length])
        fins.append(part("box", (*wide, 0.35), place, "#D55E00", f"fin {len(fins) + 1}"))
    middle = np.array([0.0, 0.0, -0.2 * length])
    return [
        Solid("box", (8.0, 8.0, 0.1), np.array([1.0, 1.0, -0.1]), colors=("#E8EAED",), label="ground"),
        Solid("box", (*(2 * pad), 0.05), np.array([0.0, 0.0, -0.025]), colors=("#009E73",), label="pad"),
        part("cylinder", (radius, 1.6 * length), middle, "#0072B2", "hull"),
        part("cone", (radius, 0.4 * length), np.array([0.0, 0.0, 0.8 * length]), "#0072B2", "nose"),
        *fins,
    ]


def forces(plan: Plan, length: float, projection: bool) -> list[Force]:
    """The thrust, which acts at the tail."""
    thrust = np.asarray(plan.step_info.outputs["thrust"] if projection else plan.controls)
    states = np.asarray(plan.states)[1:]
    turns = np.array([rotation_matrix(x[3:6]) for x in states])
    tail = states[:, :3] - length * turns[:, :, 2]
    return [Force("thrust", tail, np.einsum("tij,tj->ti", turns, thrust), color="#E69F00", ends=True)]


def rotation_matrix(r: np.ndarray) -> np.ndarray:
    """Body to world, of modified Rodrigues parameters; in NumPy, because it draws one state at a time."""
    S = np.cross(np.eye(3), r)
    square = r @ r
    return np.eye(3) + (8 * S @ S + 4 * (1 - square) * S) / (1 + square) ** 2


def panels(plan: Plan, dt: float, length: float, max_thrust: float, side_bound: float | None) -> list[Panel]:
    """Charts of a plan; with a projected thrust `side_bound` is None, and the plan knows what was flown."""
    projection = side_bound is None
    states, controls = np.asarray(plan.states), np.asarray(plan.controls)
    times = dt * np.arange(len(states))
    thrust = np.asarray(plan.step_info.outputs["thrust"]) if projection else controls
    tilt = np.arccos(np.clip([rotation_matrix(x[3:6])[2, 2] for x in states], -1, 1))
    side = np.linalg.norm(thrust[:, :2], axis=1)
    axial = {"thrust": thrust[:, 2]}
    if projection:
        axial["asked for"] = controls[:, 2]
    charts = [
        Panel("Height of the centre", "m", times, {"height": states[:, 2]}, (length,)),
        Panel("Position over the pad", "m", times, {"x": states[:, 0], "y": states[:, 1]}),
        Panel("Tilt of the axis", "rad", times, {"tilt": tilt}, (0.0,)),
        Panel("Velocity", "m/s", times, {"x": states[:, 6], "y": states[:, 7], "z": states[:, 8]}),
        Panel("Axial thrust", "N", times[:-1], axial, (0.0, max_thrust), kind="step"),
    ]
    if projection:
        series = {"sideways": side, "axial": thrust[:, 2]}
        charts.append(Panel("Sideways thrust under the cone", "N", times[:-1], series, kind="step"))
    else:
        series = {"first": thrust[:, 0], "second": thrust[:, 1]}
        limits = (-side_bound, side_bound)
        charts.append(Panel("Sideways thrust", "N", times[:-1], series, limits, kind="step"))
    return charts
