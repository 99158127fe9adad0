"""Forces for arrows: their shapes, and that with weight and drive they change the momentum as they should."""

from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optdyn.dynamics import rotation_matrix
from optdyn.systems import _box3d, _box3d_pictures, _hopper, _planar_push, _rocket, available, load


def plan_of(states, controls, outputs) -> Any:
    return SimpleNamespace(states=states, controls=controls, step_info=SimpleNamespace(outputs=outputs))


@pytest.mark.parametrize("name", available())
def test_a_force_for_every_step(name):
    scenario = load(name)
    x = np.tile(np.asarray(scenario.first_state), (3, 1))
    u = np.zeros((2, scenario.dynamics.control_dim))
    advance = scenario.dynamics.advance
    outputs = eqx.filter_eval_shape(lambda x, u: advance(x, u, jnp.asarray(0))[1].outputs, x[0], u[0])
    plan = plan_of(x, u, {key: np.zeros((2, *one.shape)) for key, one in outputs.items()})
    for force in scenario.forces(plan) if scenario.forces else []:
        assert np.shape(force.points) == np.shape(force.values)
        assert np.shape(force.points) in ((2, 2), (2, 3))
        assert np.isfinite(force.points).all()
        assert len(force.color) == 7


def forces_of(scenario, plan):
    assert scenario.forces is not None
    return scenario.forces(plan)


def total_force(forces):
    return np.sum([force.values for force in forces], axis=0)


def simulated(scenario, controls):
    """A plan of the controls from the scenario's first state, and velocities [N + 1, nq] of its steps."""
    dynamics = scenario.dynamics

    def step(x, u):
        x_next, info = dynamics.advance(x, u, jnp.asarray(0))
        return x_next, (x_next, info.outputs)

    first = scenario.first_state
    _, (states, outputs) = jax.jit(lambda x, u: jax.lax.scan(step, x, u))(first, jnp.asarray(controls))
    states = np.concatenate([np.asarray(first)[None], np.asarray(states)])
    q = states.shape[1] // 2
    return plan_of(states, controls, outputs), (states[:, q:] - states[:, :q]) / scenario.dt


def test_pusher_and_table_accelerate_the_block():
    scenario = load("planar_push", "rotate")
    plan, v = simulated(scenario, np.tile([1.0, 0.2], (6, 1)))
    total = total_force(forces_of(scenario, plan))
    change = _planar_push.MASS * np.diff(v[:, :2], axis=0) / scenario.dt
    assert np.abs(change[:, 0]).min() > 0.4
    np.testing.assert_allclose(total, change, atol=1e-6)


def test_the_ground_carries_the_hopper():
    scenario = load("hopper")
    # Standing, without drive: what changes the momentum is weight and ground.
    plan, _ = simulated(scenario, np.zeros((6, 2)))
    q0, q1, q2 = plan.states[:-1, :4], plan.states[:-1, 4:], plan.states[1:, 4:]

    def momentum(qa, qb):
        middle, v = (qa + qb) / 2, (qb - qa) / scenario.dt
        foot = np.asarray(jax.vmap(_hopper._foot_velocity)(jnp.asarray(middle), jnp.asarray(v)))
        return _hopper.BODY_MASS * v[:, :2] + _hopper.FOOT_MASS * foot

    total = total_force(forces_of(scenario, plan))
    weight = np.array([0.0, -_hopper.GRAVITY * (_hopper.BODY_MASS + _hopper.FOOT_MASS)])
    change = (momentum(q1, q2) - momentum(q0, q1)) / scenario.dt
    assert total[:, 1].max() > 5
    # Only nearly: the foot's share of the momentum is taken at the middle of a step.
    np.testing.assert_allclose(total + weight, change, atol=0.3)


@pytest.mark.slow
def test_the_ground_carries_and_brakes_the_box():
    scenario = load("box3d", "slide")
    plan, v = simulated(scenario, np.tile([6.0, 3.0, 0.4], (4, 1)))
    forces = forces_of(scenario, plan)
    total = total_force(forces)
    pushed = np.column_stack([plan.controls[:, :2], np.full(4, -_box3d.MASS * _box3d.GRAVITY)])
    np.testing.assert_allclose(total + pushed, np.diff(v[:, :3], axis=0) / scenario.dt, atol=1e-6)
    assert np.all(total[:, :2] * v[1:, :2] < 0)
    for force in forces:
        np.testing.assert_allclose(force.points[:, 2], 0.0, atol=1e-3)


def test_a_turn_by_more_than_half_is_charted_without_a_jump():
    angles = np.linspace(0.0, 5.0, 21)
    q = np.stack([np.cos(angles / 2), 0 * angles, -np.sin(angles / 2), 0 * angles], axis=1)
    q[7:] *= -1  # the same attitudes
    vectors = _box3d_pictures.rotation_vectors(q)
    np.testing.assert_allclose(vectors, np.outer(-angles, [0, 1, 0]), atol=1e-12)


def test_the_box_in_space_is_the_box_of_the_drawing(rng):
    scenario = load("box3d", "tumble")
    assert scenario.solids is not None
    attitude = rng.normal(size=4)
    x = np.concatenate([np.zeros(7), [0.1, 0.2, 0.3], attitude / np.linalg.norm(attitude)])
    (box,) = [solid for solid in scenario.solids(x) if solid.label == "box"]
    turn = np.asarray(rotation_matrix(jnp.asarray(box.attitude)))
    corners = box.position + (np.array(box.size) / 2 * _box3d.SIGNS) @ turn.T
    drawn = np.concatenate([shape.points for shape in scenario.draw(x) if shape.label == "face"])
    assert rows(drawn) == rows(_box3d_pictures.project(corners))


def test_the_rocket_in_space_is_the_rocket_of_the_drawing():
    scenario = load("rocket")
    assert scenario.solids is not None
    x = np.asarray(scenario.first_state)
    parts = {solid.label: solid for solid in scenario.solids(x)}
    turn = np.asarray(rotation_matrix(jnp.asarray(parts["nose"].attitude)))
    np.testing.assert_allclose(turn, _rocket.rotation(jnp.asarray(x[3:6])), atol=1e-12)
    tip = parts["nose"].position + parts["nose"].size[1] / 2 * turn[:, 2]
    seen = np.array([(tip[0] + tip[1]) / np.sqrt(2), tip[2]])
    (hull,) = [shape for shape in scenario.draw(x) if shape.label == "hull"]
    np.testing.assert_allclose(seen, hull.points[3], atol=1e-12)


def rows(points):
    return {tuple(point) for point in np.round(points, 9) + 0.0}


def test_pictures_turn_the_box_as_the_dynamics_do(rng):
    for q in rng.normal(size=(5, 4)):
        q = q / np.linalg.norm(q)
        np.testing.assert_allclose(
            _box3d_pictures.rotation_matrix(q), rotation_matrix(jnp.asarray(q)), atol=1e-14
        )
