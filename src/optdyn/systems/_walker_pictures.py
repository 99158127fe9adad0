"""Drawings and charts of the walker."""

import numpy as np

from optdyn.systems._scenario import Force, Panel, Shape
from optdyn.systems._walker_model import LINK
from optdyn.trajopt import Plan

TORSO = 0.63  # m
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"


def _down(angles: np.ndarray) -> np.ndarray:
    return np.stack([np.sin(angles), -np.cos(angles)], axis=-1)


def draw(x) -> list[Shape]:
    """Seen from the side: torso, the leg that stands and the leg that swings."""
    q = np.asarray(x, dtype=float)[7:14]
    hip, down = q[:2], _down(q[2:])

    def leg(k, color, label):
        line = hip + LINK * np.vstack([np.zeros(2), down[k], down[k] + down[k + 1]])
        foot = Shape("disc", line[-1:], radius=0.02, color=color, width=1.0)
        return [Shape("polyline", line, color=color, width=4.0, label=label), foot]

    return [
        Shape("polyline", np.array([[-0.75, 0.0], [0.75, 0.0]]), color="#9AA0A6", width=2.0, label="ground"),
        *leg(3, ORANGE, "leg b"),
        Shape("polyline", np.stack([hip, hip - TORSO * down[0]]), color="#333333", width=6.0, label="torso"),
        *leg(1, BLUE, "leg a"),
        Shape("disc", hip[None], radius=0.025, color="#333333", width=1.0),
    ]


def forces(plan: Plan, dt: float) -> list[Force]:
    """What the ground does to the feet."""
    outputs = {name: np.asarray(value) for name, value in plan.step_info.outputs.items()}
    q = np.asarray(plan.states)[1:, 7:]
    arrows = []
    for i, (name, k) in enumerate((("foot a", 3), ("foot b", 5))):
        place = q[:, :2] + LINK * (_down(q[:, k]) + _down(q[:, k + 1]))
        impulse = np.stack([outputs["friction_impulse"][:, i], outputs["impulse"][:, i]], axis=1)
        arrows.append(Force(name, place, impulse / dt))
    return arrows


def panels(plan: Plan, dt: float, knee: float, limit: float) -> list[Panel]:
    """Charts of a plan."""
    states, controls = np.asarray(plan.states)[:, 7:], np.asarray(plan.controls)
    outputs = {name: np.asarray(value) for name, value in plan.step_info.outputs.items()}
    times = dt * np.arange(len(states))
    feet = [states[:, :2] + LINK * (_down(states[:, k]) + _down(states[:, k + 1])) for k in (3, 5)]
    press, rub, cone = outputs["impulse"], outputs["friction_impulse"], outputs["friction_limit"]

    def at_foot(k, name):
        series = {
            "ground": press[:, k],
            "friction": rub[:, k],
            "cone": cone[:, k],
            "cone, other side": -cone[:, k],
        }
        return Panel(f"Impulses at foot {name}", "N s", times[1:], series, kind="step")

    return [
        Panel("Height of the feet", "m", times, {"foot a": feet[0][:, 1], "foot b": feet[1][:, 1]}),
        Panel("Way", "m", times, {"hip": states[:, 0], "foot a": feet[0][:, 0], "foot b": feet[1][:, 0]}),
        Panel(
            "Bend of the knees",
            "rad",
            times,
            {"knee a": states[:, 3] - states[:, 4], "knee b": states[:, 5] - states[:, 6]},
            (knee,),
        ),
        Panel(
            "Torques",
            "N m",
            times[:-1],
            {name: controls[:, i] for i, name in enumerate(("hip a", "knee a", "hip b", "knee b"))},
            (-limit, limit),
            kind="step",
        ),
        at_foot(0, "a"),
        at_foot(1, "b"),
    ]
