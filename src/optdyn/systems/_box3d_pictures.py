"""Drawings and charts of the box on a plane."""

import numpy as np

from optdyn.systems._scenario import Force, Panel, Shape, Solid
from optdyn.trajopt import Plan

# Seen from the front, a little from the right and from above, without perspective.
_AZIMUTH, _ELEVATION = np.deg2rad(20.0), np.deg2rad(30.0)
_RIGHT = np.array([np.cos(_AZIMUTH), np.sin(_AZIMUTH), 0.0])
_TOWARDS = np.array(
    [
        np.sin(_AZIMUTH) * np.cos(_ELEVATION),
        -np.cos(_AZIMUTH) * np.cos(_ELEVATION),
        np.sin(_ELEVATION),
    ]
)
_VIEW = np.stack([_RIGHT, np.cross(_TOWARDS, _RIGHT)])
# Corners of each face in order around it, as signs; opposite faces have related colours.
_FACES = {
    "#0072B2": [(1, -1, -1), (1, 1, -1), (1, 1, 1), (1, -1, 1)],
    "#56B4E9": [(-1, -1, -1), (-1, 1, -1), (-1, 1, 1), (-1, -1, 1)],
    "#D55E00": [(-1, 1, -1), (1, 1, -1), (1, 1, 1), (-1, 1, 1)],
    "#E69F00": [(-1, -1, -1), (1, -1, -1), (1, -1, 1), (-1, -1, 1)],
    "#009E73": [(-1, -1, 1), (1, -1, 1), (1, 1, 1), (-1, 1, 1)],
    "#CC79A7": [(-1, -1, -1), (1, -1, -1), (1, 1, -1), (-1, 1, -1)],
}


def project(points: np.ndarray) -> np.ndarray:
    """Points of space [k, 3] as they are seen [k, 2], in m."""
    return points @ _VIEW.T


def seen_extent(low: np.ndarray, high: np.ndarray) -> tuple[float, float, float, float]:
    """Frame of a drawing that holds the region between two corners of space."""
    corners = np.array(
        [[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])]
    )
    seen = project(corners)
    left, below = seen.min(axis=0)
    right, above = seen.max(axis=0)
    return float(left), float(right), float(below), float(above)


def draw(x, half: np.ndarray, goal: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[Shape]:
    """Ground, outline of the goal, and the faces of the box, the far ones first."""
    q = np.asarray(x, dtype=float)[7:]
    turn = rotation_matrix(q[3:])
    ground = np.array([[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]])
    shapes = [
        Shape("polygon", project(_at_height(ground, 0.0)), color="#E8EAED", width=1.0, label="ground"),
        Shape("polyline", project(_footprint(goal, half)), color="#009E73", width=2.0, label="goal"),
    ]
    faces = []
    for color, signs in _FACES.items():
        corners = q[:3] + (np.array(signs) * half) @ turn.T
        faces.append((corners.mean(axis=0) @ _TOWARDS, color, corners))
    for _, color, corners in sorted(faces, key=lambda face: face[0]):
        shapes.append(Shape("polygon", project(corners), color=color, width=1.0, label="face"))
    shapes.append(Shape("disc", project(q[None, :3]), radius=0.008, color="#222222", width=1.0, label="tip"))
    return shapes


def solids(x, half: np.ndarray, goal: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[Solid]:
    """The same in space: ground, a ghost of the box at its goal, and the box."""
    q = np.asarray(x, dtype=float)[7:]
    size = (float(high[0] - low[0]), float(high[1] - low[1]), 0.02)
    below = np.array([(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, -0.01])
    edges = tuple(float(edge) for edge in 2 * half)
    ghost = 0.98 * np.array(edges)  # so that it does not flicker where the box covers it
    return [
        Solid("box", size, below, colors=("#E8EAED",), label="ground"),
        Solid("box", tuple(ghost), goal[:3], goal[3:], ("#009E73",), opacity=0.3, label="goal"),
        Solid("box", edges, q[:3], q[3:], tuple(_FACES), label="box"),
    ]


def forces(plan: Plan, dt: float, half: np.ndarray, signs: np.ndarray) -> list[Force]:
    """What the ground does to each corner; `signs` [n, 3] of the corners that may touch."""
    outputs = {name: np.asarray(value) for name, value in plan.step_info.outputs.items()}
    q = np.asarray(plan.states)[1:, 7:]
    turns = np.array([rotation_matrix(attitude) for attitude in q[:, 3:]])
    friction = outputs["friction_impulse"].reshape(len(q), -1, 2)
    arrows = []
    for i, corner in enumerate(signs[: friction.shape[1]] * half):
        impulse = np.column_stack([friction[:, i], outputs["impulse"][:, i]])
        arrows.append(Force(f"corner {i + 1}", q[:, :3] + turns @ corner, impulse / dt))
    return arrows


def panels(plan: Plan, dt: float, names: tuple[str, ...], limits: np.ndarray) -> list[Panel]:
    """Charts of a plan; `names` of the controls, forces first."""
    states, controls = np.asarray(plan.states), np.asarray(plan.controls)
    outputs = {name: np.asarray(value) for name, value in plan.step_info.outputs.items()}
    times = dt * np.arange(len(states))
    attitude = rotation_vectors(states[:, 10:14])
    friction = np.linalg.norm(outputs["friction_impulse"].reshape(len(controls), -1, 2), axis=2)
    charts = [
        Panel("Centre", "m", times, dict(zip("xyz", states[:, 7:10].T, strict=True))),
        Panel("Attitude (rotation vector)", "rad", times, dict(zip("xyz", attitude.T, strict=True))),
    ]
    for kind, unit in (("force", "N"), ("torque", "N m")):
        columns = [i for i, name in enumerate(names) if name.startswith(kind)]
        series = {names[i].removeprefix(kind + " "): controls[:, i] for i in columns}
        bound = float(limits[columns[0]])
        charts.append(Panel(kind.capitalize(), unit, times[:-1], series, (-bound, bound), kind="step"))
    charts.append(
        Panel(
            "Impulses per step, all corners",
            "N s",
            times[1:],
            {
                "ground": outputs["impulse"].sum(axis=1),
                "friction": friction.sum(axis=1),
                "largest friction": outputs["friction_limit"].sum(axis=1),
            },
            kind="step",
        )
    )
    return charts


def rotation_matrix(q: np.ndarray) -> np.ndarray:
    """Body to world, of a unit quaternion (w, x, y, z); in NumPy, because it draws one state at a time."""
    w, v = q[0], q[1:]
    S = np.cross(np.eye(3), v)
    return np.eye(3) + 2 * w * S + 2 * S @ S


def rotation_vectors(attitudes: np.ndarray) -> np.ndarray:
    """Rotation vectors [N, 3] in rad of unit quaternions [N, 4]: first at most half a turn, then no jumps."""
    near = np.sign(np.sum(attitudes[1:] * attitudes[:-1], axis=1))
    first = 1.0 if attitudes[0, 0] >= 0 else -1.0
    q = attitudes * np.cumprod([first, *near])[:, None]
    sine = np.linalg.norm(q[:, 1:], axis=1, keepdims=True)
    turn = 2 * np.arctan2(sine, q[:, :1])
    return np.where(sine < 1e-9, 2 * q[:, 1:], turn / np.maximum(sine, 1e-9) * q[:, 1:])


def _at_height(points: np.ndarray, z: float) -> np.ndarray:
    return np.concatenate([points, np.full((len(points), 1), z)], axis=1)


def _footprint(goal: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Outline on the ground of the box at its goal [5, 3]."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    corners = goal[:3] + (signs * half) @ rotation_matrix(goal[3:]).T
    low = corners[corners[:, 2] < goal[2]][:, :2]
    center = low.mean(axis=0)
    around = low[np.argsort(np.arctan2(*(low - center).T[::-1]))]
    return _at_height(np.concatenate([around, around[:1]]), 0.0)
