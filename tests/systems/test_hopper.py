"""Hopper: the laws on random steps, derivatives, gaits with a free first state."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from helpers.contact import check_planar_contact
from helpers.differences import check_step_derivatives
from helpers.plans import check_panels, check_pictures, solve
from optdyn.systems import _hopper as hopper
from optdyn.systems import available, load
from reference import hopper as reference

H, KAPPA = hopper.STEP, hopper.CENTRAL_PATH
T = jnp.asarray(1)
DYNAMICS = {paper: hopper.dynamics(paper, smoothing=None) for paper in (False, True)}


def check_laws(x, u, x_next, outputs, paper):
    def balance(i, impulse, friction):
        return reference.balance(x[i], u[i], x_next[i], impulse, friction, H, paper)

    check_planar_contact(reference, x_next, outputs, balance, h=H, kappa=KAPPA)


def random_states(rng, count):
    """Standing, falling and flying, with the leg between its limits."""
    pitch, leg = rng.uniform(-0.5, 0.5, count), rng.uniform(0.3, 0.95, count)
    lift = np.where(np.arange(count) % 2 == 0, 10.0 ** rng.uniform(-4, -2, count), 0.3)
    height = np.maximum(reference.FOOT_RADIUS + leg * np.cos(pitch) + lift, 0.12)
    q = np.stack([rng.uniform(-1, 1, count), height, pitch, leg], axis=1)
    v = rng.uniform(-1, 1, (count, 4))
    return np.concatenate([q - H * v, q], axis=1), rng.uniform(-0.5, 0.5, (count, 2))


@pytest.mark.parametrize(
    "paper", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["variational", "published"]
)
def test_laws_hold_on_random_steps(paper, rng):
    x, u = random_states(rng, 1000)
    advance: Any = jax.jit(jax.vmap(DYNAMICS[paper].advance, (0, 0, None)))
    x_next, info = advance(jnp.asarray(x), jnp.asarray(u), T)
    assert np.all(np.asarray(info.result == od.RESULTS.successful))
    check_laws(x, u, np.asarray(x_next), info.outputs, paper)
    stance = np.asarray(info.outputs["impulse"])[:, 1] > 0.05
    assert 100 < stance.sum() < 900


# Posture, velocity, control: standing under load, sliding foot, flight.
MODES = {
    "stick": ([0.0, 0.551, 0.05, 0.5], [0.0, 0.0, 0.0, 0.0], [0.01, 0.5]),
    "slip": ([0.0, 0.5501, 0.0, 0.5], [1.5, -0.2, 0.0, 0.0], [0.0, 0.3]),
    "free": ([0.0, 0.9, 0.2, 0.5], [0.5, 0.3, 0.2, -0.1], [0.1, 0.1]),
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_derivatives_against_differences(mode):
    q, v, u = MODES[mode]
    check_step_derivatives(DYNAMICS[False], T, q, v, u, H)


# Largest cost (5 percent above the best known) and median number of inner iterations over ten seeds.
BOUNDS = {
    "gait_1": (3.683, 26),
    "gait_2": (20.79, 30),
    "gait_3": (2.877, 26),
    "gait_1_paper": (3.683, 26),
    "gait_2_paper": (20.79, 27),
    "gait_3_paper": (2.877, 23),
}


@pytest.mark.slow
@pytest.mark.parametrize("variant", available()["hopper"])
def test_every_gait_for_ten_seeds(variant):
    cost, iterations = BOUNDS[variant]
    plans = []
    for seed in range(10):
        scenario = load("hopper", variant, seed=seed)
        plan = solve(scenario)
        plans.append(plan)
        label = f"{variant}, seed {seed}"
        assert od.result_name(plan.result) == "successful", label
        assert plan.constraint_violation <= 5e-3, label
        assert scenario.goal_error(plan) <= 5e-3, label
        assert plan.cost <= cost, label
        assert np.all(np.asarray(plan.step_info.result == od.RESULTS.successful)), label
        states, controls = np.asarray(plan.states), np.asarray(plan.controls)
        check_laws(states[:-1], controls, states[1:], plan.step_info.outputs, variant.endswith("_paper"))
        np.testing.assert_array_equal(states[0], [*hopper.START, *plan.parameters])
    check_panels(scenario, plans[-1])
    check_pictures(scenario, plans[-1])
    assert np.median([int(plan.stats.inner_iterations) for plan in plans]) <= iterations
