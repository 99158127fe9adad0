"""Linear-quadratic problems: one iteration gives what one dense KKT system gives."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from optdyn.dynamics import DiscreteDynamics
from optdyn.trajopt import Equality
from reference import lqr

optimize: Any = od.optimize_trajectory  # NumPy arrays are welcome too


class LinearDynamics(eqx.Module):
    data: lqr.Data

    def __call__(self, x, u, t):
        return self.data.A[t] @ x + self.data.B[t] @ u + self.data.c[t]


class StageCost(eqx.Module):
    data: lqr.Data

    def __call__(self, x, u, t):
        v = jnp.concatenate([x, u])
        return v @ (self.data.H[t] @ v) / 2 + self.data.g[t] @ v


class TerminalCost(eqx.Module):
    data: lqr.Data

    def __call__(self, x):
        return x @ (self.data.P @ x) / 2 + self.data.p @ x


def problem(data, **constraints):
    horizon, nx, nu = data.B.shape
    data = jax.tree.map(jnp.asarray, data)
    dynamics = DiscreteDynamics(LinearDynamics(data), nx, nu)
    return od.TrajectoryProblem(dynamics, horizon, StageCost(data), TerminalCost(data), **constraints)


def check_against_dense(plan, data, x0, atol=1e-8):
    answer = lqr.solve(data, x0)
    np.testing.assert_allclose(plan.controls, answer.controls, atol=atol)
    np.testing.assert_allclose(plan.states, answer.states, atol=atol)
    assert float(plan.cost) == pytest.approx(answer.cost, abs=atol)
    np.testing.assert_allclose(plan.gains[0], answer.gain, atol=atol)
    np.testing.assert_allclose(plan.value_hessian, answer.value_hessian, atol=atol)


# Cross terms, affine and time-varying data in all of them.
@pytest.mark.parametrize(("nx", "nu", "horizon"), [(3, 2, 7), (2, 3, 1), (2, 1, 5)])
def test_one_iteration_solves_it(rng, nx, nu, horizon):
    data, x0 = lqr.random_data(rng, nx, nu, horizon), rng.normal(size=nx)
    start = rng.normal(size=(horizon, nu))
    plan = optimize(problem(data), x0, start, solver=od.ILQR())
    assert plan.stats.inner_iterations == 1
    assert plan.stats.outer_iterations == 1
    assert plan.constraint_violation == 0
    check_against_dense(plan, data, x0)


def test_without_controls_there_is_nothing_to_do(rng):
    data, x0 = lqr.random_data(rng, 2, 0, 4), rng.normal(size=2)
    plan = optimize(problem(data), x0, np.zeros((4, 0)), solver=od.ILQR())
    assert plan.stats.inner_iterations == 0
    check_against_dense(plan, data, x0)


def test_terminal_equality(rng):
    data, x0, goal = lqr.random_data(rng, 3, 2, 7), rng.normal(size=3), rng.normal(size=3)
    constrained = problem(data, terminal_constraint=Equality(lambda x: x - goal))
    plan = optimize(constrained, x0, np.zeros((7, 2)))
    answer = lqr.solve(data, x0, terminal=goal)
    assert plan.constraint_violation <= 1e-6
    np.testing.assert_allclose(plan.controls, answer.controls, atol=1e-4)
    assert float(plan.cost) == pytest.approx(answer.cost, rel=1e-5)


def test_batch_of_initial_states(rng):
    data, starts = lqr.random_data(rng, 2, 1, 5), rng.normal(size=(4, 2))
    task, controls = problem(data), jnp.zeros((5, 1))

    @eqx.filter_jit
    def solve_all(starts):
        def solve(x0):
            return optimize(task, x0, controls, solver=od.ILQR(), throw=False)

        return jax.vmap(solve)(starts)

    plans = solve_all(jnp.asarray(starts))
    assert np.all(np.asarray(plans.result == od.RESULTS.successful))
    for x0, found in zip(starts, np.asarray(plans.controls), strict=True):
        np.testing.assert_allclose(found, lqr.solve(data, x0).controls, atol=1e-8)


def test_control_bounds():
    """Double integrator, bounds active at first; the answer is checked by its optimality conditions."""
    A, B = np.array([[1.0, 0.2], [0.0, 1.0]]), np.array([[0.02], [0.2]])
    N, limit = 10, 1.0
    data = lqr.Data(
        A=np.tile(A, (N, 1, 1)),
        B=np.tile(B, (N, 1, 1)),
        c=np.zeros((N, 2)),
        H=np.tile(np.diag([1.0, 0.1, 0.1]), (N, 1, 1)),
        g=np.zeros((N, 3)),
        P=10 * np.eye(2),
        p=np.zeros(2),
    )
    x0 = np.array([1.5, 0.0])
    plan = optimize(problem(data, control_bounds=(-limit, np.inf)), x0, np.zeros((N, 1)))
    controls = np.asarray(plan.controls)
    assert controls.min() >= -limit - 1e-6
    assert controls.min() < -limit + 1e-3  # and they matter
    # Gradient of the cost by the controls, backwards in time.
    states, p, gradient = np.asarray(plan.states), 10 * np.asarray(plan.states[-1]), np.zeros(N)
    for t in reversed(range(N)):
        gradient[t] = 0.1 * controls[t, 0] + B[:, 0] @ p
        p = np.diag([1.0, 0.1]) @ states[t] + A.T @ p
    active = controls[:, 0] < -limit + 1e-5
    assert active.any()
    assert not active.all()
    assert np.all(gradient[active] >= -1e-4)
    np.testing.assert_allclose(gradient[~active], 0, atol=1e-3)
