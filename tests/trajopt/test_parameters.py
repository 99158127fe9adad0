"""Shared parameters: free first states, periodic motions, linked stages, against dense solutions."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from optdyn.dynamics import DiscreteDynamics, GradientBundle
from optdyn.trajopt import Equality, Inequality
from optdyn.trajopt._parameters import WithParameters

N = 5
A = np.array([[1.0, 0.2], [-0.1, 0.9]])
B = np.array([[0.0], [0.3]])


def move(x, u, t):
    return jnp.asarray(A) @ x + jnp.asarray(B) @ u


DYNAMICS = DiscreteDynamics(move, state_dim=2, control_dim=1)
SOLVER = od.AugmentedLagrangian(od.ILQR(cost_tol=1e-14), constraint_tol=1e-9, max_rounds=50)


def stage_cost(x, u, t, p):
    return jnp.sum((x - 1) ** 2) / 2 + 0.3 * jnp.sum(u**2) / 2


def terminal_cost(x, p):
    return jnp.sum((x + 1) ** 2)


def states_of(first, controls):
    """States as affine functions of the unknowns y = (p, controls): the matrix and constant of each."""
    matrix, constant = first
    found = [(matrix, constant)]
    for t in range(N):
        columns = np.zeros((2, matrix.shape[1]))
        columns[:, controls + t : controls + t + 1] = B
        matrix, constant = A @ matrix + columns, A @ constant
        found.append((matrix, constant))
    return found


def dense(first, own_gradient, own_hessian, equalities):
    """Minimizer over y = (p, controls) of the quadratic problem, by one KKT system."""
    size = first[0].shape[1]
    num = size - N
    H, g = np.zeros((size, size)), np.zeros(size)
    H[:num, :num], g[:num] = own_hessian, own_gradient
    H[num:, num:] += 0.3 * np.eye(N)
    states = states_of(first, num)
    for matrix, constant in states[:-1]:
        H += matrix.T @ matrix
        g += matrix.T @ (constant - 1)
    matrix, constant = states[-1]
    H += 2 * matrix.T @ matrix
    g += 2 * matrix.T @ (constant + 1)
    rows = [row for row, _ in equalities(states)]
    sides = [-c for _, c in equalities(states)]
    C = np.concatenate(rows) if rows else np.zeros((0, size))
    d = np.concatenate(sides) if rows else np.zeros(0)
    kkt = np.block([[H, C.T], [C, np.zeros((len(d), len(d)))]])
    return np.linalg.solve(kkt, np.concatenate([-g, d]))[:size]


FREE = (np.eye(2, 2 + N), np.zeros(2))


def solve(p0, solver: od.AugmentedLagrangian | od.ILQR = SOLVER, **kwargs):
    problem = od.TrajectoryProblem(DYNAMICS, N, stage_cost, terminal_cost, **kwargs)
    return od.optimize_trajectory(problem, jnp.asarray(p0), jnp.zeros((N, 1)), solver=solver)


def test_the_solves_of_a_linearization_are_those_of_the_dynamics():
    bundle = WithParameters(GradientBundle(DYNAMICS, samples=6), 2)
    local = eqx.filter_jit(bundle.sensitivities)(jnp.ones(4), jnp.ones(1), jnp.asarray(0))
    assert local.solves == 7
    np.testing.assert_allclose(local.A[2:], np.eye(4)[2:], atol=1e-12)


def test_a_free_first_state_takes_one_iteration():
    plan = solve([3.0, -2.0], od.ILQR(), initial_state=lambda p: p)
    y = dense(FREE, np.zeros(2), np.zeros((2, 2)), lambda states: [])
    assert int(plan.stats.inner_iterations) == 1
    np.testing.assert_allclose(plan.parameters, y[:2], atol=1e-10)
    np.testing.assert_allclose(plan.states[0], y[:2], atol=1e-10)
    np.testing.assert_allclose(plan.controls[:, 0], y[2:], atol=1e-10)
    # x_0 is optimal, so the cost does not change with it; states and gains are those of x alone.
    np.testing.assert_allclose(plan.value_gradient, 0, atol=1e-9)
    assert plan.states.shape == (N + 1, 2)
    assert plan.gains.shape == (N, 1, 2)


def test_cost_and_constraint_of_the_parameters():
    plan = solve(
        [0.0, 0.0, 0.0],
        initial_state=lambda p: p[:2] + p[2:],
        parameter_cost=lambda p: jnp.sum((p - 2) ** 2) / 2,
        parameter_constraint=Equality(lambda p: p[:1] - 3 * p[2:]),
    )
    first = (np.concatenate([np.eye(2), np.ones((2, 1)), np.zeros((2, N))], axis=1), np.zeros(2))
    row = np.concatenate([[1.0, 0.0, -3.0], np.zeros(N)])[None]
    y = dense(first, np.full(3, -2.0), np.eye(3), lambda states: [(row, np.zeros(1))])
    np.testing.assert_allclose(plan.parameters, y[:3], atol=1e-7)
    np.testing.assert_allclose(plan.controls[:, 0], y[3:], atol=1e-7)


def test_a_periodic_motion():
    plan = solve([0.5, 0.5], initial_state=lambda p: p, terminal_constraint=Equality(lambda x, p: x - p))

    def closes(states):
        (first, a), (last, b) = states[0], states[-1]
        return [(last - first, b - a)]

    y = dense(FREE, np.zeros(2), np.zeros((2, 2)), closes)
    np.testing.assert_allclose(plan.states[-1], plan.states[0], atol=1e-8)
    np.testing.assert_allclose(plan.parameters, y[:2], atol=1e-7)
    np.testing.assert_allclose(plan.controls[:, 0], y[2:], atol=1e-7)


def test_stages_linked_through_a_parameter():
    """The second state at two times is a number that is free."""

    def linked(x, u, t, p):
        return jnp.where((t == 1) | (t == 4), x[1:] - p, 0.0)

    plan = solve([0.0], initial_state=lambda p: jnp.asarray([1.0, 2.0]), stage_constraint=Equality(linked))
    first = (np.zeros((2, 1 + N)), np.array([1.0, 2.0]))

    def equal(states):
        (one, a), (four, b) = states[1], states[4]
        return [((one - four)[1:], (a - b)[1:])]

    y = dense(first, np.zeros(1), np.zeros((1, 1)) + 1e-12, equal)
    np.testing.assert_allclose(plan.states[1, 1], plan.states[4, 1], atol=1e-8)
    np.testing.assert_allclose(plan.parameters, plan.states[1, 1:], atol=1e-8)
    np.testing.assert_allclose(plan.controls[:, 0], y[1:], atol=1e-6)


def test_an_inequality_that_holds_the_parameters_back():
    plan = solve(
        [0.0, 0.0],
        initial_state=lambda p: p,
        parameter_constraint=Inequality(lambda p: jnp.abs(p[:1]) - 0.1),
    )
    assert float(plan.parameters[0]) == pytest.approx(0.1, abs=1e-8)


@pytest.mark.parametrize(
    ("kwargs", "guess", "message"),
    [
        (
            {"initial_state": lambda p: p[:1]},
            [0.0, 0.0],
            r"initial_state must return shape \(2,\), got \(1,\)",
        ),
        ({"initial_state": lambda p: p}, 0.0, r"guess of the parameters must be a vector, got shape \(\)"),
        ({"parameter_cost": lambda p: 0.0}, [0.0, 0.0], "there are no parameters: give initial_state"),
    ],
)
def test_bad_input_is_named(kwargs, guess, message):
    with pytest.raises(ValueError, match=message):
        solve(guess, **kwargs)
