"""Box in space: the laws on random steps, free flight, derivatives, plans."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import optdyn as od
from helpers.differences import central, relative_error
from helpers.plans import check_panels, check_pictures, solve
from optdyn.dynamics import StateSpace
from optdyn.systems import _box3d as box
from optdyn.systems import available, load
from reference import box3d as reference

H, KAPPA = box.STEP, box.CENTRAL_PATH
T = jnp.asarray(0)
DYNAMICS = box.dynamics(smoothing=None)
SPACE = DYNAMICS.state_space
CONFIGURATIONS = StateSpace((3,), "cayley")  # velocities of the discrete mechanics are in this chart
advance: Any = jax.jit(jax.vmap(DYNAMICS.advance, (0, 0, None)))


def state(q, v, spin):
    """State with configuration q, and velocity v and rotation rate (of the body) before it."""
    before = np.concatenate([q[:3] - H * v, np.zeros(4)])
    turn = reference.rotation(q) * Rotation.from_rotvec(-H * np.asarray(spin))
    before[3:] = turn.as_quat(scalar_first=True)
    return np.concatenate([before, q])


def random_states(rng, count):
    """Lying flat, standing on an edge or a corner near the plane, and flying."""
    rows = []
    for i in range(count):
        turn = [
            Rotation.identity(),
            Rotation.from_rotvec([rng.uniform(-0.8, 0.8), 0, 0]),
            Rotation.random(rng=rng),
        ]
        attitude = turn[i % 3] * Rotation.from_rotvec([0, 0, rng.uniform(-np.pi, np.pi)])
        lowest = attitude.apply(reference.CORNERS)[:, 2].min()
        lift = 10.0 ** rng.uniform(-4, -2) if i % 4 else 0.3
        q = np.array([*rng.uniform(-1, 1, 2), lift - lowest, *attitude.as_quat(scalar_first=True)])
        rows.append(state(q, rng.uniform(-1, 1, 3), rng.uniform(-2, 2, 3)))
    return np.array(rows), rng.uniform(-3, 3, (count, 6)) * np.array([1, 1, 1, 0.2, 0.2, 0.2])


def check_laws(x, force, x_next, outputs):
    """Gaps, cones, dissipation and momentum of steps, recomputed in NumPy."""
    impulse, friction = np.asarray(outputs["impulse"]), np.asarray(outputs["friction_impulse"])
    limit = np.asarray(outputs["friction_limit"])
    corners = impulse.shape[1]
    np.testing.assert_allclose(limit, reference.FRICTION * impulse, atol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(x_next[:, 10:14], axis=1), 1, atol=1e-10)
    for i in range(len(x)):
        q = x_next[i, 7:]
        gap = reference.gaps(q)[:corners]
        assert gap.min() >= -1e-6
        assert np.abs(gap * impulse[i] - KAPPA).max() <= 1e-6
        rows = reference.linear_balance(x[i], force[i], x_next[i], impulse[i], friction[i], H)
        assert np.abs(rows).max() <= 1e-8
        pairs = friction[i].reshape(-1, 2)
        assert np.all(np.linalg.norm(pairs, axis=1) <= limit[i])


def test_laws_hold_on_random_steps(rng):
    x, u = random_states(rng, 1000)
    x_next, info = advance(jnp.asarray(x), jnp.asarray(u), T)
    assert np.all(np.asarray(info.result == od.RESULTS.successful))
    check_laws(x, u[:, :3], np.asarray(x_next), info.outputs)
    touching = np.asarray(info.outputs["impulse"]).sum(axis=1) > 0.05
    assert 150 < touching.sum() < 970


def test_friction_opposes_the_slip_and_dissipates(rng):
    x, u = random_states(rng, 300)
    x_next, info = advance(jnp.asarray(x), jnp.asarray(u), T)
    velocity = jax.vmap(CONFIGURATIONS.difference)(x_next[:, 7:], x_next[:, :7]) / H
    slip = jax.vmap(box.Box(jnp.asarray(reference.CORNERS), jnp.eye(6)).slip)(x_next[:, 7:], velocity)
    friction = np.asarray(info.outputs["friction_impulse"]).reshape(300, 8, 2)
    slip = np.asarray(slip).reshape(300, 8, 2)
    power = np.sum(friction * slip, axis=2)
    assert power.max() <= 1e-9
    lost = -power - np.asarray(info.outputs["friction_limit"]) * np.linalg.norm(slip, axis=2)
    assert lost.min() >= -KAPPA - 1e-9


def test_free_flight_keeps_momentum_and_spin(rng):
    q = np.array([0.0, 0.0, 1e4, *Rotation.random(rng=rng).as_quat(scalar_first=True)])
    x = state(q, np.array([0.3, -0.2, 1.0]), [2.0, 5.0, -3.0])
    step: Any = eqx.filter_jit(DYNAMICS.advance)
    problem: Any = DYNAMICS.problem
    momenta = []
    for _ in range(12):
        in_body = problem.mechanics.momentum_after(jnp.asarray(x[:7]), jnp.asarray(x[7:]))[3:]
        momenta.append(reference.rotation(x[7:]).apply(np.array(in_body)))
        x = np.array(step(jnp.asarray(x), jnp.zeros(6), T)[0])
    np.testing.assert_allclose(momenta, np.tile(momenta[0], (12, 1)), atol=1e-8)
    # The momentum of the continuous motion, up to terms of second order in the turn per step.
    spin = reference.rotation(x[7:]).apply(reference.INERTIA * np.array([2.0, 5.0, -3.0]))
    np.testing.assert_allclose(np.linalg.norm(momenta[0]), np.linalg.norm(spin), rtol=0.05)


# Position and attitude, velocity, spin, wrench: resting, sliding, on an edge, flying.
MODES = {
    "stick": ([0, 0, 0.1001], [0, 0, 0], [0, 0, 0], [0, 0, 0], [1.0, 0.5, 0, 0, 0, 0.05]),
    "slip": ([0, 0, 0.1001], [0, 0, 0], [1.5, 0.5, -0.1], [0, 0, 1.0], [2.0, 0, 0, 0, 0, 0.1]),
    "edge": ([0, 0, 0.1420], [0.7, 0, 0], [0, 0.2, -0.1], [0.5, 0, 0], [0, 1.0, 0, 0.1, 0, 0]),
    "free": ([0, 0, 1.0], [0.3, 0.2, 0.1], [0.5, 0.3, 0.2], [1, 2, -1], [1.0, 0, 1, 0.1, 0, 0.1]),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_derivatives_against_differences(mode):
    place, turn, v, spin, u = (np.array(part, dtype=float) for part in MODES[mode])
    q = np.array([*place, *Rotation.from_rotvec(turn).as_quat(scalar_first=True)])
    x, u = jnp.asarray(state(q, v, spin)), jnp.asarray(u)
    local = eqx.filter_jit(DYNAMICS.sensitivities)(x, u, T)
    step: Any = eqx.filter_jit(lambda d: DYNAMICS.step(SPACE.retract(x, d[:12]), u + d[12:], T))
    here = step(jnp.zeros(18))
    wanted = central(lambda d: SPACE.difference(step(jnp.asarray(d)), here), np.zeros(18), 1e-5)
    assert relative_error(np.concatenate([local.A, local.B], axis=1), wanted) <= 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("variant", available()["box3d"])
def test_every_task_for_ten_seeds(variant):
    for seed in range(10):
        scenario = load("box3d", variant, seed=seed)
        plan = solve(scenario)
        label = f"{variant}, seed {seed}"
        assert od.result_name(plan.result) == "successful", label
        assert plan.constraint_violation <= 1e-3, label
        assert scenario.goal_error(plan) <= 1e-3, label
        assert np.all(np.asarray(plan.step_info.result == od.RESULTS.successful)), label
        states, controls = np.asarray(plan.states), np.asarray(plan.controls)
        force = np.zeros((len(controls), 3))
        force[:, : 2 if variant == "slide" else 3] = controls[:, : 2 if variant == "slide" else 3]
        check_laws(states[:-1], force, states[1:], plan.step_info.outputs)
    check_panels(scenario, plan)
    check_pictures(scenario, plan)
