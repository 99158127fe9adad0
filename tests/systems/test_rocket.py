"""Rocket: the thrust projection, the step and its derivatives, the published landing, plans."""

import itertools
import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from helpers.differences import central, relative_error
from helpers.plans import check_panels, check_pictures, solve
from optdyn.systems import _rocket as rocket
from optdyn.systems import load
from reference import rocket as reference

DATA = json.loads((Path(__file__).parent.parent / "data" / "rocket_reference.json").read_text())
T = jnp.asarray(0)
SHARP = 1e-8
DYNAMICS = rocket.dynamics(smoothing=None)
advance: Any = eqx.filter_jit(DYNAMICS.advance)
sensitivities: Any = eqx.filter_jit(DYNAMICS.sensitivities)


@eqx.filter_jit
def project(request, central_path=SHARP):
    solver = od.InteriorPoint(central_path=central_path)
    return od.solve(rocket.ThrustProjection(), request, solver=solver, adjoint=od.ImplicitAdjoint(None))


@pytest.mark.parametrize(
    ("request_", "thrust"),
    [
        ([0.0, 0.0, 5.0], [0.0, 0.0, 5.0]),  # inside
        ([3.0, 0.0, 1.0], [2.0, 0.0, 2.0]),  # onto the cone
        ([0.0, 0.0, 20.0], [0.0, 0.0, 12.5]),  # onto the cap
        ([100.0, 0.0, -1.0], [12.5, 0.0, 12.5]),  # onto the rim
        ([0.3, 0.1, -2.0], [0.0, 0.0, 0.0]),  # onto the tip
        ([-4.0, 3.0, 2.0], [-2.8, 2.1, 3.5]),  # onto the cone, in no special direction
    ],
)
def test_projection_of_a_request(request_, thrust):
    solution = project(jnp.asarray(request_))
    np.testing.assert_allclose(solution.primal, thrust, atol=1e-6)
    np.testing.assert_allclose(reference.project(np.array(request_)), thrust, atol=1e-12)
    assert solution.stats.steps <= 15


def test_projection_agrees_with_the_closed_form_everywhere(rng):
    requests = rng.uniform(-20, 20, (300, 3))
    found = jax.jit(jax.vmap(lambda u: project(u).primal))(jnp.asarray(requests))
    want = np.array([reference.project(u) for u in requests])
    assert np.abs(found - want).max() <= 1e-4  # the square root of the central path where the rim is met
    assert np.median(np.abs(found - want)) <= 1e-6


slope_of_projection: Any = jax.jit(jax.jacrev(lambda u: project(u).primal))


@pytest.mark.parametrize(
    "request_", [[0.4, -0.2, 5.0], [3.0, 0.5, 1.0], [0.3, 0.4, 20.0], [30.0, 10.0, 5.0], [0.3, 0.1, -2.0]]
)
def test_derivative_of_the_projection_in_closed_form(request_):
    found = slope_of_projection(jnp.asarray(request_))
    want = central(reference.project, np.array(request_), 1e-4)
    np.testing.assert_allclose(found, want, atol=1e-5)


# (state, request): inside, on the cone, on the cap.
X = np.concatenate([[0.3, -0.2, 5.0], [0.1, -0.2, 0.05], [0.2, 0.1, -1.0], [0.3, -0.4, 0.2]])
REQUESTS = {"inside": [0.4, -0.2, 8.0], "cone": [3.0, 0.5, 1.0], "cap": [0.3, 0.4, 14.0]}


@pytest.mark.parametrize("mode", REQUESTS)
def test_step_and_its_derivatives(mode):
    u = jnp.asarray(REQUESTS[mode])
    local = sensitivities(jnp.asarray(X), u, T)
    x_next, info = advance(jnp.asarray(X), u, T)
    thrust = np.asarray(info.outputs["thrust"])
    assert od.result_name(info.result) == "successful"
    assert reference.limits(thrust) <= 0
    assert np.abs(reference.midpoint_residual(X, thrust, np.asarray(x_next), rocket.STEP)).max() <= 1e-8
    assert relative_error(local.A, central(lambda x: advance(jnp.asarray(x), u, T)[0], X, 1e-4)) <= 1e-5
    difference_B = central(lambda u: advance(jnp.asarray(X), jnp.asarray(u), T)[0], np.asarray(u), 1e-3)
    assert relative_error(local.B, difference_B) <= 1e-5


def test_thousand_random_steps_stay_within_the_engine(rng):
    scale = np.repeat([3.0, 0.3, 3.0, 1.0], 3)
    x, u = scale * rng.uniform(-1, 1, (1000, 12)), rng.uniform(-20, 20, (1000, 3))
    x_next, info = jax.jit(jax.vmap(DYNAMICS.advance, (0, 0, None)))(jnp.asarray(x), jnp.asarray(u), T)
    thrust = np.asarray(info.outputs["thrust"])
    assert np.all(np.asarray(info.result == od.RESULTS.successful))
    assert max(reference.limits(f) for f in thrust) <= 0
    rows = [
        reference.midpoint_residual(*step, rocket.STEP)
        for step in zip(x, thrust, np.asarray(x_next), strict=True)
    ]
    assert np.abs(rows).max() <= 1e-8


def test_published_landing():
    """Its states obey the midpoint rule; the saved thrust is the projection of the one that they flew."""
    states, saved = np.array(DATA["states"]), np.array(DATA["controls"])
    flown = np.array([reference.thrust_of(*pair, rocket.STEP) for pair in itertools.pairwise(states)])
    rows = [
        reference.midpoint_residual(*step, rocket.STEP)
        for step in zip(states[:-1], flown, states[1:], strict=True)
    ]
    assert np.abs(rows).max() <= 1e-7
    nearest = jax.jit(jax.vmap(lambda u: project(u, 1e-5).primal))(jnp.asarray(flown))
    assert np.abs(nearest - saved).max() <= 1e-4
    assert flown[:, 2].max() > rocket.MAX_THRUST


def check_plan(scenario, plan):
    assert od.result_name(plan.result) == "successful"
    assert plan.constraint_violation <= 5e-3
    assert scenario.goal_error(plan) <= 5e-3
    assert np.all(np.asarray(plan.step_info.result == od.RESULTS.successful))
    states, controls = np.asarray(plan.states), np.asarray(plan.controls)
    thrust = controls
    if scenario.variant == "projection":
        thrust = np.asarray(plan.step_info.outputs["thrust"])
        assert max(reference.limits(f) for f in thrust) <= 0
    rows = [
        reference.midpoint_residual(*step, rocket.STEP)
        for step in zip(states[:-1], thrust, states[1:], strict=True)
    ]
    assert np.abs(rows).max() <= 1e-8
    assert states[:, 2].min() >= 1 - 5e-3


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "cost"), [("projection", 20912.0), ("nominal", 20912.0)])
def test_lands_for_ten_seeds(variant, cost):
    plans = []
    for seed in range(10):
        scenario = load("rocket", variant, seed=seed)
        plans.append(solve(scenario))
        check_plan(scenario, plans[-1])
        assert plans[-1].cost <= cost
    check_panels(scenario, plans[-1])
    check_pictures(scenario, plans[-1])
    assert np.median([int(plan.stats.inner_iterations) for plan in plans]) <= 398
