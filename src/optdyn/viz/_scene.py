"""A trajectory as bodies in space: meshes that are made once, and where they are at each instant."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from optdyn.viz import _meshes
from optdyn.viz._bodies import Body, Part, Scene, by_name, make_body, unit_vector
from optdyn.viz._flat_scene import flat_scene
from optdyn.viz._meshes import Mesh


def record_scene(scenario: Any, states: np.ndarray) -> Scene:
    """Bodies of the states [T, nx]."""
    if scenario.solids is not None:
        return _solid_scene([list(scenario.solids(x)) for x in states])
    return flat_scene([list(scenario.draw(x)) for x in states], scenario.extent, scenario.plane)


def _solid_scene(frames: Sequence[Sequence[Any]]) -> Scene:
    bodies = []
    for name, solids in by_name(frames, lambda solid: solid.label or solid.kind).items():
        first = next(solid for solid in solids if solid is not None)
        meshes = _solid_meshes(first)
        colors = first.colors if len(first.colors) == len(meshes) else first.colors[:1] * len(meshes)
        parts = (Part(mesh, color, first.opacity) for mesh, color in zip(meshes, colors, strict=True))
        positions = np.array([np.full(3, np.nan) if one is None else one.position for one in solids])
        attitudes = np.array([np.full(4, np.nan) if one is None else one.attitude for one in solids])
        bodies.append(make_body(name, tuple(parts), positions, attitudes))
    shown = [body.positions[body.visible] for body in bodies if body.visible.any()]
    reach = max(float(np.max(np.abs(part.mesh.vertices))) for body in _moving(bodies) for part in body.parts)
    moving = np.concatenate([body.positions[body.visible] for body in _moving(bodies)] or shown)
    low, high = moving.min(axis=0) - reach, moving.max(axis=0) + reach
    return Scene(tuple(bodies), low, high, unit_vector([0.5, -1.0, 0.55]), np.zeros(3))


def _moving(bodies: Sequence[Body]) -> list[Body]:
    """The bodies that do not stand still; all of them if all do."""
    return [body for body in bodies if np.ptp(body.positions, axis=0).max() > 0] or list(bodies)


def _solid_meshes(solid: Any) -> list[Mesh]:
    if solid.kind == "box":
        return _meshes.box(solid.size)
    make = {"sphere": _meshes.sphere, "cylinder": _meshes.cylinder, "cone": _meshes.cone}.get(solid.kind)
    if make is None:
        raise ValueError(f"unknown kind of solid {solid.kind!r}; known are box, sphere, cylinder and cone")
    return [make(*solid.size)]
