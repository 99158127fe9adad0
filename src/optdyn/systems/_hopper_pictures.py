"""Drawings and charts of the hopper."""

import numpy as np

from optdyn.systems._scenario import Force, Panel, Shape
from optdyn.trajopt import Plan


def draw(x, body: float, foot: float) -> list[Shape]:
    """Seen from the side: body with a mark of its pitch, leg, foot and ground."""
    q = np.asarray(x, dtype=float)[4:8]
    down = np.array([np.sin(q[2]), -np.cos(q[2])])
    center, toe = q[:2], q[:2] + q[3] * down
    return [
        Shape("polyline", np.array([[-0.3, 0.0], [1.0, 0.0]]), color="#9AA0A6", width=2.0, label="ground"),
        Shape("polyline", np.stack([center, toe]), color="#D55E00", width=4.0, label="leg"),
        Shape("disc", center[None], radius=body, color="#0072B2", width=1.0, label="body"),
        Shape("disc", toe[None], radius=foot, color="#D55E00", width=1.0, label="tip"),
        Shape("polyline", np.stack([center, center - body * down]), color="#FFFFFF", width=2.0),
    ]


def forces(plan: Plan, dt: float, body: float, foot: float) -> list[Force]:
    """What the ground does to foot and body."""
    outputs = {name: np.asarray(value) for name, value in plan.step_info.outputs.items()}
    q = np.asarray(plan.states)[1:, 4:8]
    toe = q[:, :2] + q[:, 3:] * np.stack([np.sin(q[:, 2]), -np.cos(q[:, 2])], axis=1)
    arrows = []
    for i, (name, center, radius) in enumerate((("body", q[:, :2], body), ("foot", toe, foot))):
        impulse = np.stack([outputs["friction_impulse"][:, i], outputs["impulse"][:, i]], axis=1)
        arrows.append(Force(name, center - np.array([0.0, radius]), impulse / dt))
    return arrows


def panels(plan: Plan, dt: float, leg: tuple[float, float], limit: float) -> list[Panel]:
    """Charts of a plan."""
    states, controls = np.asarray(plan.states), np.asarray(plan.controls)
    outputs = {name: np.asarray(value) for name, value in plan.step_info.outputs.items()}
    times = dt * np.arange(len(states))
    q = states[:, 4:8]
    toe = q[:, 1] - q[:, 3] * np.cos(q[:, 2])
    push, rub, cone = outputs["impulse"][:, 1], outputs["friction_impulse"][:, 1], outputs["friction_limit"]
    return [
        Panel("Height", "m", times, {"body": q[:, 1], "foot": toe}),
        Panel("Position", "m", times, {"body": q[:, 0]}),
        Panel("Leg length", "m", times, {"leg": q[:, 3]}, leg),
        Panel("Pitch", "rad", times, {"body": q[:, 2]}),
        Panel(
            "Impulses of the motors per step",
            "N m s, N s",
            times[:-1],
            {"pitch": controls[:, 0], "leg": controls[:, 1]},
            kind="step",
        ),
        Panel(
            "Impulses at the foot",
            "N s",
            times[1:],
            {"ground": push, "friction": rub, "cone": cone[:, 1], "cone, other side": -cone[:, 1]},
            kind="step",
        ),
    ]
