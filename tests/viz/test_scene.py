"""Drawings as bodies in space: closed meshes, the right places, one mesh for what keeps its form."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from helpers.fake_scenario import FakeScenario, FakeSlider, fake_plan
from optdyn.systems import Shape, Solid
from optdyn.viz import _meshes
from optdyn.viz._flat_scene import to_space
from optdyn.viz._scene import record_scene
from optdyn.viz._turns import multiply, rotate

ARROW = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [1.0, 0.5], [0.0, 2.0]])  # with a notch


def volume(meshes):
    """By the divergence theorem: right only if the mesh is closed and all faces look outwards."""
    return sum(np.linalg.det(mesh.vertices[mesh.faces]).sum() / 6 for mesh in meshes)


def is_closed(mesh):
    edges = [tuple(face[[i, (i + 1) % 3]]) for face in mesh.faces for i in range(3)]
    return len(set(edges)) == len(edges) and {(b, a) for a, b in edges} == set(edges)


@pytest.mark.parametrize("outline", [ARROW, ARROW[::-1]], ids=["counterclockwise", "clockwise"])
def test_a_prism_with_a_notch(outline):
    prism = _meshes.prism(outline, -1.0, 2.0)
    assert is_closed(prism)
    assert volume([prism]) == pytest.approx(3 * 2.5)


@pytest.mark.parametrize(
    ("mesh", "expected"),
    [
        (_meshes.sphere(0.5), np.pi / 6),
        (_meshes.cylinder(0.5, 2.0), np.pi / 2),
        (_meshes.cone(0.5, 2.0), np.pi / 6),
        (_meshes.prism(_meshes.stadium(2.0, 0.5), 0.0, 1.0), 1.0 + np.pi / 16),
    ],
)
def test_round_bodies(mesh, expected):
    assert is_closed(mesh)
    assert volume([mesh]) == pytest.approx(expected, rel=0.02)


def test_the_faces_of_a_box_have_their_order():
    faces = _meshes.box((2.0, 4.0, 6.0))
    assert volume(faces) == pytest.approx(48)
    centers = [face.vertices.mean(axis=0) for face in faces]
    np.testing.assert_allclose(centers, np.diag([1, 2, 3])[[0, 0, 1, 1, 2, 2]] * np.tile([[1], [-1]], (3, 1)))


def test_turns(rng):
    p, q = (a / np.linalg.norm(a) for a in rng.normal(size=(2, 4)))
    v = rng.normal(size=(5, 3))
    np.testing.assert_allclose(rotate(multiply(p, q), v), rotate(p, rotate(q, v)), atol=1e-14)


def world(body, frame):
    """Vertices of the first part of a body in the world."""
    part = body.parts[0]
    vertices = part.mesh.vertices if part.forms is None else part.forms[frame]
    return body.positions[frame] + rotate(body.attitudes[frame], vertices)


def scene_of(scenario, failed=False):
    plan = fake_plan(scenario, failed=failed)
    return record_scene(scenario, plan.states), plan


def named(scene):
    return {body.name: body for body in scene.bodies}


def test_bodies_are_where_the_drawing_has_them():
    scenario = FakeScenario()
    scene, plan = scene_of(scenario)
    bodies = named(scene)
    assert list(bodies) == ["polygon", "upper link", "lower link", "disc"]
    assert all(body.parts[0].forms is None for body in scene.bodies)  # rigid: made once
    for frame in (0, 17, 80):
        _, upper, lower, elbow = scenario.draw(plan.states[frame])
        np.testing.assert_allclose(bodies["disc"].positions[frame][[0, 2]], elbow.points[0], atol=1e-12)
        for name, shape in (("upper link", upper), ("lower link", lower)):
            body = bodies[name]
            np.testing.assert_allclose(body.positions[frame][[0, 2]], shape.points.mean(axis=0), atol=1e-12)
            along = rotate(body.attitudes[frame], np.array([1.0, 0.0, 0.0]))[[0, 2]]
            np.testing.assert_allclose(along, shape.points[1] - shape.points[0], atol=1e-12)


def test_later_shapes_cover_earlier_ones():
    scene, _ = scene_of(FakeScenario())
    fronts = [world(body, 0)[:, 1].min() for body in scene.bodies]
    assert fronts == sorted(fronts, reverse=True)
    assert scene.front[1] <= min(fronts)
    assert scene.towards[1] < 0


def test_shapes_that_come_and_go_are_hidden_meanwhile():
    scenario = FakeSlider()
    scene, plan = scene_of(scenario)
    body = named(scene)["polyline 2"]
    np.testing.assert_array_equal(body.visible, plan.states[:, 2] > 0)
    assert np.isfinite(body.positions).all()


def test_states_that_are_not_numbers_are_hidden():
    scene, _ = scene_of(FakeScenario(), failed=True)
    for body in scene.bodies:
        assert np.isfinite(body.positions).all()
        expected = np.arange(81) < 40 if body.name != "polygon" else np.full(81, True)
        np.testing.assert_array_equal(body.visible, expected)


@dataclass(frozen=True)
class Telescope(FakeScenario):
    """A line and a triangle that change their form, over a floor."""

    plane: str = "above"
    extent: tuple[float, float, float, float] = (0.0, 2.0, 0.0, 2.0)

    def draw(self, x):
        s = float(x)
        return [
            Shape("polyline", np.array([[0.0, 0.0], [2.0, 0.0]]), label="floor"),
            Shape("polyline", np.array([[0.0, 0.0], [s, 0.0]]), label="rod"),
            Shape("polygon", np.array([[0.0, 0.0], [1.0, 0.0], [0.0, s]]), label="sail"),
        ]


def test_what_changes_its_form_has_a_form_for_every_state():
    bodies = named(record_scene(Telescope(), np.array([0.5, 1.0, 2.0])))
    for frame, s in enumerate((0.5, 1.0, 2.0)):
        rod, sail = world(bodies["rod"], frame), world(bodies["sail"], frame)
        half_width = np.ptp(rod[:, 1]) / 2
        assert rod[:, 0].max() == pytest.approx(s + half_width)
        assert sail[:, 1].max() == pytest.approx(s)
        assert sail[:, 2].min() == pytest.approx(0)  # seen from above, bodies stand on the table
    assert np.ptp(world(bodies["floor"], 0)[:, 2]) < np.ptp(world(bodies["rod"], 0)[:, 2])
    assert world(bodies["table"], 0)[:, 2].max() == 0


def test_a_line_that_lies_still_is_a_floor_from_the_side_only():
    bodies = named(record_scene(FakeSlider(), fake_plan(FakeSlider()).states))
    assert np.ptp(world(bodies["polyline"], 0)[:, 1]) == pytest.approx(2 * 0.3 * 5.0)
    assert np.ptp(world(bodies["polygon"], 0)[:, 1]) < 1.0


def test_the_planes_of_drawings():
    vectors = np.array([[1.0, 2.0]])
    np.testing.assert_allclose(to_space(vectors, "side"), [[1.0, 0.0, 2.0]], atol=1e-15)
    np.testing.assert_allclose(to_space(vectors, "above"), [[1.0, 2.0, 0.0]])
    np.testing.assert_array_equal(to_space(np.ones((4, 3)), "side"), np.ones((4, 3)))


@dataclass(frozen=True)
class Falling(FakeScenario):
    """Solids of every kind."""

    kinds: Any = field(
        default_factory=lambda: {"box": (1, 1, 1), "sphere": (1,), "cylinder": (1, 2), "cone": (1, 2)}
    )

    def solids(self, x) -> list[Solid]:  # pyright: ignore[reportIncompatibleVariableOverride]
        z = np.array([0.0, 0.0, float(x)])
        bodies = [Solid(kind, size, z) for kind, size in self.kinds.items()]
        return [*bodies, Solid("box", (9.0, 9.0, 0.1), np.zeros(3), colors=("#112233",) * 6, label="ground")]


def test_solids():
    scene = record_scene(Falling(), np.array([3.0, 2.0, np.nan]))
    bodies = named(scene)
    assert list(bodies) == ["box", "sphere", "cylinder", "cone", "ground"]
    assert len(bodies["box"].parts) == len(bodies["ground"].parts) == 6
    np.testing.assert_array_equal(bodies["cone"].positions[:, 2], [3.0, 2.0, 2.0])
    np.testing.assert_array_equal(bodies["cone"].visible, [True, True, False])
    assert scene.high[2] >= 3.0
    assert scene.size < 9  # the ground is not what the camera looks for


def test_unknown_kinds_are_named():
    with pytest.raises(ValueError, match="known are box, sphere, cylinder and cone"):
        record_scene(Falling(kinds={"torus": (1, 2)}), np.array([0.0, 1.0]))

    class Star(Telescope):
        def draw(self, x):
            return [Shape("star", np.zeros((1, 2)))]  # pyright: ignore[reportArgumentType]

    with pytest.raises(ValueError, match="known are polyline, disc and polygon"):
        record_scene(Star(), np.array([0.0, 1.0]))
