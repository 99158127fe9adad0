"""Randomized smoothing: exact on linear maps, close on smooth ones, between the modes at a corner."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from optdyn.dynamics import DiscreteDynamics, GradientBundle, StateSpace
from optdyn.systems import _sliding_block as block
from optdyn.systems import load

T = jnp.asarray(0)
A, B = np.array([[1.0, 0.1], [-0.3, 0.9]]), np.array([[0.0], [0.1]])
LINEAR = DiscreteDynamics(lambda x, u, t: jnp.asarray(A) @ x + jnp.asarray(B) @ u, 2, 1)
PENDULUM = DiscreteDynamics(lambda x, u, t: x + 0.1 * jnp.stack([x[1], u[0] - jnp.sin(x[0])]), 2, 1)


@pytest.mark.parametrize("directions", ["gaussian", "coordinate"])
def test_exact_on_a_linear_map(directions, rng):
    bundle = GradientBundle(LINEAR, samples=5, spread=0.3, directions=directions)
    x_next, A_found, B_found = eqx.filter_jit(bundle.linearize)(
        jnp.asarray([0.3, -1.0]), jnp.asarray([0.4]), T
    )
    np.testing.assert_allclose(x_next, A @ [0.3, -1.0] + B @ [0.4], atol=1e-14)
    np.testing.assert_allclose(A_found, A, atol=1e-12)
    np.testing.assert_allclose(B_found, B, atol=1e-12)


@pytest.mark.parametrize("spread", [1e-3, 1e-4])
def test_error_on_a_smooth_map_is_of_the_order_of_the_spread(spread):
    x, u = jnp.asarray([0.8, 0.2]), jnp.asarray([0.1])
    exact = PENDULUM.sensitivities(x, u, T)
    found = eqx.filter_jit(GradientBundle(PENDULUM, samples=40, spread=spread).sensitivities)(x, u, T)
    np.testing.assert_allclose(found.A, exact.A, atol=0.2 * spread)
    np.testing.assert_allclose(found.B, exact.B, atol=0.2 * spread)


def test_smooths_the_corner_of_a_program():
    """A block at the edge of sticking: one side does not answer to a push, the other one does."""
    dynamics = load("sliding_block", "friction_0.3").dynamics
    edge = 0.3 * block.GRAVITY * block.MASS
    bundle = GradientBundle(dynamics, samples=60, spread=0.05)
    local = eqx.filter_jit(bundle.sensitivities)(jnp.zeros(2), jnp.asarray([edge]), T)
    assert local.info.result == od.RESULTS.successful
    assert 0.3 < local.A[1, 1] < 0.7
    assert local.solves == 61


def test_tangents_of_quaternions():
    """A map that turns by a fixed attitude: its derivative in the frame of the body is the identity."""
    space = StateSpace((0,))
    still = DiscreteDynamics(lambda x, u, t: x * jnp.asarray([1.0, 1.0, 1.0, 1.0]), 4, 1, space)
    x = jnp.asarray([0.5, 0.5, 0.5, 0.5])
    local = eqx.filter_jit(GradientBundle(still, samples=8, spread=1e-3).sensitivities)(x, jnp.zeros(1), T)
    np.testing.assert_allclose(local.A, np.eye(3), atol=1e-6)
    np.testing.assert_allclose(local.B, 0, atol=1e-6)


def test_plans_with_a_bundle():
    scenario = load("sliding_block", "friction_0.3")
    problem = od.TrajectoryProblem(
        GradientBundle(scenario.dynamics, samples=20, spread=0.1),
        scenario.problem.horizon,
        scenario.problem.stage_cost,
        scenario.problem.terminal_cost,
        terminal_constraint=scenario.problem.terminal_constraint,
        control_bounds=scenario.problem.control_bounds,
    )
    plan = od.optimize_trajectory(
        problem, scenario.x0, scenario.controls, solver=scenario.solver, throw=False
    )
    assert od.result_name(plan.result) == "successful"
    assert plan.constraint_violation <= 1e-4
    # Every knot of every linearization counts 21 solves.
    assert plan.stats.lower_level.solves > 21 * 40 * plan.stats.inner_iterations


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"samples": 2}, "samples must be at least 3"),
        ({"spread": 0.0}, "spread must be a positive number, got 0"),
        ({"directions": "sphere"}, "directions must be 'gaussian' or 'coordinate'"),
    ],
)
def test_messages(settings, message):
    with pytest.raises(ValueError, match=message):
        GradientBundle(LINEAR, **settings)
