"""Walker: the laws on random steps, derivatives, the reference step, plans."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from helpers.contact import check_planar_contact
from helpers.differences import check_step_derivatives
from helpers.plans import check_panels, check_pictures, solve
from optdyn.systems import _walker_model as walker
from optdyn.systems import load
from optdyn.systems._walker_gait import Gait, feedforward, posture
from reference import walker as reference

H, KAPPA = walker.STEP, walker.CENTRAL_PATH
T = jnp.asarray(0)
DYNAMICS = walker.dynamics(smoothing=None)
STANDING = posture((0.0, 0.7), (-0.15, 1e-4), (0.2, 1e-4))


def check_laws(x, u, x_next, outputs):
    def balance(i, impulse, friction):
        return reference.balance(x[i], u[i], x_next[i], impulse, friction, H)

    check_planar_contact(reference, x_next, outputs, balance, h=H, kappa=KAPPA)


def random_states(rng, count):
    """Standing on both feet or on one, and flying, with moving links."""
    rows = []
    for i in range(count):
        feet = [(rng.uniform(-0.3, 0.0), 1e-4), (rng.uniform(0.0, 0.3), 1e-4 if i % 2 else 0.05)]
        q = posture((rng.uniform(-0.1, 0.1), rng.uniform(0.6, 0.72)), *feet, torso=rng.uniform(-0.3, 0.3))
        q[1] += 0.2 * (i % 5 == 0)
        v = rng.uniform(-1, 1, 7) * (0.3 + (i % 3 == 0))
        rows.append(np.concatenate([q - H * v, q]))
    return np.array(rows), rng.uniform(-40, 40, (count, 4))


def test_laws_hold_on_random_steps(rng):
    x, u = random_states(rng, 1000)
    advance: Any = jax.jit(jax.vmap(DYNAMICS.advance, (0, 0, None)))
    x_next, info = advance(jnp.asarray(x), jnp.asarray(u), T)
    assert np.all(np.asarray(info.result == od.RESULTS.successful))
    assert np.max(info.steps) <= 40
    check_laws(x, u, np.asarray(x_next), info.outputs)
    standing = np.asarray(info.outputs["impulse"])[:, 0] > 1.0
    assert 200 < standing.sum() < 950


def test_flight_without_torques_loses_energy_to_the_joints_only(rng):
    """Momentum of the centre changes by gravity alone; damping takes energy."""
    x, _ = random_states(rng, 1)
    x[:, [1, 8]] += 5.0
    step: Any = eqx.filter_jit(DYNAMICS.advance)
    masses = np.array([link[0] for link in reference.LINKS])
    x, energies, climbs = jnp.asarray(x[0]), [], []
    for _ in range(10):
        before = np.asarray(x)
        v = (before[7:] - before[:7]) / H
        energies.append(reference.energy((before[7:] + before[:7]) / 2, v))
        places = [
            [reference.position(q, chain)[1] for *_, chain in reference.LINKS]
            for q in (before[:7], before[7:])
        ]
        climbs.append(masses @ (np.array(places[1]) - places[0]) / H)
        x, _ = step(x, jnp.zeros(4), T)
    assert np.all(np.diff(energies) < 0.05)
    assert energies[-1] < energies[0]
    fall = -masses.sum() * reference.GRAVITY * H
    np.testing.assert_allclose(np.diff(climbs), fall, rtol=0.05)


# Velocity and torques; standing under load, sliding, one foot off the ground, flying.
MODES = {
    "stick": (STANDING, np.zeros(7), [5.0, 15.0, 5.0, 15.0]),
    "slip": (STANDING, np.array([1.5, -0.1, 0, 0, 0, 0, 0]), [0.0, 5.0, 0.0, 5.0]),
    "one foot": (posture((0.0, 0.7), (0.0, 1e-4), (0.2, 0.1)), np.zeros(7), [0.0, 30.0, 5.0, 0.0]),
    "free": (
        STANDING + np.array([0, 0.3, 0, 0, 0, 0, 0]),
        np.array([0.5, 0.2, 0.1, 1, -1, 0.5, 0]),
        [1.0] * 4,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_derivatives_against_differences(mode):
    q, v, u = MODES[mode]
    check_step_derivatives(DYNAMICS, T, q, v, u, H, steps=(1e-6, 1e-3))


def test_the_reference_step_is_a_step():
    gait = Gait()
    rows = gait.configurations()
    feet = np.array([[reference.position(q, foot) for foot in reference.FEET] for q in rows])
    np.testing.assert_allclose(feet[:, 0], 0, atol=1e-12)
    np.testing.assert_allclose(feet[[0, -1], 1], [[-gait.stride, 0], [gait.stride, 0]], atol=1e-12)
    np.testing.assert_allclose(feet[:, 1, 1].max(), gait.lift, rtol=1e-6)
    speed = np.diff(rows[:, 0]) / H
    assert np.all(speed > 0)
    # The hip has no jump in its speed, and begins and ends at rest.
    assert np.abs(np.diff(speed)).max() < 0.1
    assert max(speed[0], speed[-1]) < 0.05
    assert min(reference.gaps(q)[2:].min() for q in rows) > 0


def test_feedforward_holds_a_posture_that_stands():
    torques = feedforward(np.tile(STANDING, (4, 1)), np.zeros(3, bool))
    assert torques.shape == (3, 4)
    x = jnp.asarray(np.concatenate([STANDING, STANDING]))
    x_next, info = eqx.filter_jit(DYNAMICS.advance)(x, jnp.asarray(torques[0]), T)
    assert info.result == od.RESULTS.successful
    # The feet are 1e-4 m above the ground: the contact is soft there and pushes a little more or less.
    np.testing.assert_allclose(x_next[7:], STANDING, atol=2e-3)


@pytest.mark.slow
def test_the_step_for_ten_seeds():
    iterations = []
    for seed in range(10):
        scenario = load("walker", "step", seed=seed)
        plan = solve(scenario)
        assert od.result_name(plan.result) == "successful", seed
        assert plan.constraint_violation <= 1e-3, seed
        assert scenario.goal_error(plan) <= 1e-3, seed
        assert plan.stats.lower_level.failed == 0, seed
        states, controls = np.asarray(plan.states), np.asarray(plan.controls)
        check_laws(states[:-1], controls, states[1:], plan.step_info.outputs)
        lift = max(reference.position(x[7:], reference.FEET[1])[1] for x in states)
        assert lift > 0.02, seed
        iterations.append(int(plan.stats.inner_iterations))
    check_panels(scenario, plan)
    check_pictures(scenario, plan)
    assert np.median(iterations) <= 20
