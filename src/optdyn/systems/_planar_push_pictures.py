"""Drawings and charts of planar pushing."""

import numpy as np

from optdyn.systems._scenario import Force, Panel, Shape
from optdyn.trajopt import Plan


def draw(x, goal: np.ndarray, half: float) -> list[Shape]:
    """Seen from above: the block with a mark on its front, the pusher, and where the block shall go."""
    q = np.asarray(x, dtype=float)[5:]
    front = np.array([[0.0, 0.0], [half, 0.0]])
    outline = _square(goal, half)
    return [
        Shape("polyline", np.vstack([outline, outline[:1]]), color="#009E73", width=2.0, label="goal"),
        Shape("polygon", _square(q, half), color="#0072B2", width=1.0, label="block"),
        Shape("polyline", q[:2] + front @ _rotation(q[2]).T, color="#FFFFFF", width=2.0),
        Shape("disc", q[None, 3:], radius=0.02, color="#D55E00", width=1.0, label="tip"),
    ]


def forces(plan: Plan, dt: float, corners: np.ndarray, pusher_mass: float) -> list[Force]:
    """What the pusher and the table do to the block; `corners` [4, 2] in its frame in m."""
    states, controls = np.asarray(plan.states), np.asarray(plan.controls)
    before, here, after = states[:-1, :5], states[:-1, 5:], states[1:, 5:]
    # What the pusher was given and did not keep, it gave to the block.
    kept = pusher_mass * (after - 2 * here + before)[:, 3:] / dt
    arrows = [Force("pusher", after[:, 3:], (controls - kept) / dt, ends=True)]
    rub = np.asarray(plan.step_info.outputs["friction_impulse"])[:, :8].reshape(-1, 4, 2)
    turns = np.array([_rotation(angle) for angle in after[:, 2]])
    for i, corner in enumerate(corners):
        arrows.append(Force(f"table {i + 1}", after[:, :2] + turns @ corner, rub[:, i] / dt, "#E69F00"))
    return arrows


def _rotation(angle: float) -> np.ndarray:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def _square(pose: np.ndarray, half: float) -> np.ndarray:
    corners = half * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    return pose[:2] + corners @ _rotation(pose[2]).T


def panels(plan: Plan, dt: float, goal: np.ndarray, limit: float) -> list[Panel]:
    """Charts of a plan."""
    states, controls = np.asarray(plan.states), np.asarray(plan.controls)
    outputs = {name: np.asarray(value) for name, value in plan.step_info.outputs.items()}
    times = dt * np.arange(len(states))
    q = states[:, 5:]
    press, rub = outputs["impulse"][:, 0], outputs["friction_impulse"][:, 8]
    cone = outputs["friction_limit"][:, 4]
    place = {"block x": q[:, 0], "block y": q[:, 1], "pusher x": q[:, 3], "pusher y": q[:, 4]}
    return [
        Panel("Position", "m", times, place, tuple(sorted({float(goal[0]), float(goal[1])}))),
        Panel("Angle of the block", "rad", times, {"block": q[:, 2]}, (float(goal[2]),)),
        Panel(
            "Impulse on the pusher per step",
            "N s",
            times[:-1],
            {"x": controls[:, 0], "y": controls[:, 1]},
            (-limit, limit),
            kind="step",
        ),
        Panel("Push on the block", "N s", times[1:], {"normal": press}, (0.0,), kind="step"),
        Panel(
            "Friction at the pusher and its cone",
            "N s",
            times[1:],
            {"friction": rub, "cone": cone, "cone, other side": -cone},
            kind="step",
        ),
    ]
