"""The optimizer on small nonlinear problems: descent, honesty, tracing, messages."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from optdyn._results import RESULTS
from optdyn.dynamics import AbstractDynamics, DiscreteDynamics, StepInfo
from optdyn.trajopt import Equality, Inequality, ResidualCost, rollout


def integrator(x, u, t):
    return x + u


def zero(x):
    return jnp.zeros(())


INTEGRATOR = DiscreteDynamics(integrator, 1, 1)


def wells(x, u, t):
    return jnp.sum((u**2 - 1) ** 2) / 4 + 0.01 * jnp.sum(x**2)


WELLS = od.TrajectoryProblem(INTEGRATOR, 3, wells, zero)


def optimize(problem, x0, controls, **settings):
    settings = {"solver": od.ILQR(), "throw": False} | settings
    return od.optimize_trajectory(problem, jnp.asarray(x0), jnp.asarray(controls), **settings)


def test_descends_from_negative_curvature():
    plan = optimize(WELLS, [0.0], np.full((3, 1), 0.1))
    assert od.result_name(plan.result) == "successful"
    assert plan.stats.history.regularization[0] > 0  # Q_uu has no factor at the start
    np.testing.assert_allclose(np.abs(plan.controls), 1, atol=0.05)
    assert plan.cost < 0.1


def test_stationary_maximum_is_no_success():
    plan = optimize(WELLS, [0.0], np.zeros((3, 1)))
    assert od.result_name(plan.result) == "stalled"
    with pytest.raises(RuntimeError, match="No acceptable step was found"):
        optimize(WELLS, [0.0], np.zeros((3, 1)), throw=True)


class Swing(eqx.Module):
    """Pendulum by symplectic Euler; counts how often Python runs it."""

    calls: list = eqx.field(static=True, default_factory=list)

    def __call__(self, x, u, t):
        self.calls.append(t)
        v = x[1] + 0.1 * (u[0] - jnp.sin(x[0]))
        return jnp.stack([x[0] + 0.1 * v, v])


def test_record_of_the_iterations():
    problem = od.TrajectoryProblem(
        DiscreteDynamics(Swing(), 2, 1),
        12,
        lambda x, u, t: 0.05 * jnp.sum(u**2),
        lambda x: 10 * (1 + jnp.cos(x[0])) + x[1] ** 2,
    )
    records = []
    plan = optimize(problem, [0.3, 0.0], np.full((12, 1), 0.5), callback=records.append)
    assert od.result_name(plan.result) == "successful"
    jax.effects_barrier()
    count = int(plan.stats.inner_iterations)
    assert len(records) == count > 2
    assert [record.inner for record in records] == list(range(1, count + 1))
    history = plan.stats.history
    np.testing.assert_array_equal([record.cost for record in records], history.cost[:count])
    assert np.isnan(history.cost[count:]).all()
    assert np.all(np.diff([record.merit for record in records]) <= 0)
    assert isinstance(records[0].cost, float)
    # The states are those of the controls.
    again = rollout(problem.dynamics, plan.states[0], plan.controls)
    np.testing.assert_allclose(plan.states, again.states, atol=1e-12)
    assert plan.feedforward.shape == (12, 1)
    assert np.abs(plan.feedforward).max() < 1e-2


class Counted(eqx.Module):
    """A function that counts how often Python runs it."""

    fn: Callable = eqx.field(static=True)
    calls: list = eqx.field(static=True)

    def __call__(self, *args):
        self.calls.append(1)
        return self.fn(*args)


class Press(od.AbstractComplementarityProblem):
    """Implicit step of a mass against a wall: v - v_free - z = 0, gap after the step >= 0."""

    count_equations: list = eqx.field(static=True)
    count_slack: list = eqx.field(static=True)
    cone: od.cones.NonnegativeOrthant = od.cones.NonnegativeOrthant(1)

    def equations(self, w, z, theta):
        self.count_equations.append(1)
        return w - theta["v_free"] - z

    def slack(self, w, z, theta):
        self.count_slack.append(1)
        return theta["q"] + 0.1 * w


def test_user_functions_are_traced_once():
    counts = {
        name: [] for name in ("equations", "slack", "parameters", "next", "stage", "terminal", "row", "end")
    }

    def counted(name, fn):
        return Counted(fn, counts[name])

    dynamics = od.dynamics.ProgramDynamics(
        Press(count_equations=counts["equations"], count_slack=counts["slack"]),
        parameters=counted("parameters", lambda x, u, t: {"v_free": x[1:] + u, "q": x[:1]}),
        guess=lambda x, u, t: x[1:],
        next_state=counted("next", lambda x, u, t, v, z: jnp.concatenate([x[:1] + 0.1 * v, v])),
        state_dim=2,
        control_dim=1,
    )
    problem = od.TrajectoryProblem(
        dynamics,
        3,
        counted("stage", lambda x, u, t: jnp.sum(u**2) / 2),
        counted("terminal", lambda x: jnp.sum((x - 1.0) ** 2)),
        stage_constraint=Inequality(counted("row", lambda x, u, t: u - 3.0)),
        terminal_constraint=Equality(counted("end", lambda x: x[1:])),
    )
    solver = od.AugmentedLagrangian(od.ILQR(max_iterations=30), max_rounds=20)
    first = optimize(problem, [1.0, -2.0], np.zeros((3, 1)), solver=solver)
    assert od.result_name(first.result) == "successful"
    assert first.stats.lower_level.failed == 0
    assert first.stats.lower_level.solves > 6
    assert {name: len(calls) for name, calls in counts.items()} == dict.fromkeys(counts, 1)
    second = optimize(problem, [1.2, -1.0], np.full((3, 1), 0.1), solver=solver)
    assert {name: len(calls) for name, calls in counts.items()} == dict.fromkeys(counts, 1)
    assert float(second.cost) != float(first.cost)
    again = rollout(dynamics, second.states[0], second.controls)
    np.testing.assert_allclose(second.states, again.states, atol=1e-8)


def square_root(x, u, t):
    return jnp.sqrt(x) + u


def test_not_a_number_is_named():
    problem = od.TrajectoryProblem(DiscreteDynamics(square_root, 1, 1), 2, wells, zero)
    cases = (
        ([-1.0], np.zeros((2, 1)), "nonfinite"),
        ([np.nan], np.zeros((2, 1)), "nonfinite_input"),
        ([1.0], np.full((2, 1), np.inf), "nonfinite_input"),
    )
    for x0, controls, expected in cases:
        assert od.result_name(optimize(problem, x0, controls).result) == expected


class Fragile(AbstractDynamics):
    """An integrator whose lower level fails for controls above 1, while its numbers look fine."""

    state_dim: int = eqx.field(static=True, default=1)
    control_dim: int = eqx.field(static=True, default=1)

    def step(self, x, u, t):
        return x + u

    def advance(self, x, u, t, warm=None):
        result = RESULTS.where(u[0] > 1, RESULTS.singular, RESULTS.successful)
        return x + u, StepInfo(result, jnp.asarray(1), jnp.zeros((), x.dtype))


def test_failed_lower_level_is_never_accepted():
    problem = od.TrajectoryProblem(Fragile(), 2, lambda x, u, t: jnp.sum((u - 3) ** 2), zero)
    plan = optimize(problem, [0.0], np.zeros((2, 1)))
    assert np.all(np.asarray(plan.controls) <= 1)
    assert np.all(np.asarray(plan.step_info.result == RESULTS.successful))
    assert plan.stats.lower_level.failed > 0
    bad_start = optimize(problem, [0.0], np.full((2, 1), 2.0))
    assert od.result_name(bad_start.result) == "singular"


def test_gauss_newton_reaches_the_same_plan():
    cost = ResidualCost(lambda x, u, t: jnp.concatenate([jnp.sin(x) - 0.5, 0.5 * u]))
    problem = od.TrajectoryProblem(INTEGRATOR, 4, cost, ResidualCost(lambda x: 3 * (x - 0.4)))
    start = [0.0], np.full((4, 1), 0.05)
    exact = optimize(problem, *start, solver=od.ILQR(cost_tol=1e-12))
    gauss_newton = optimize(problem, *start, solver=od.ILQR(hessian="gauss_newton", cost_tol=1e-12))
    for plan in (exact, gauss_newton):
        assert od.result_name(plan.result) == "successful"
    np.testing.assert_allclose(gauss_newton.controls, exact.controls, atol=1e-5)
    states, controls = np.asarray(exact.states)[:, 0], np.asarray(exact.controls)[:, 0]
    cost = np.sum((np.sin(states[:-1]) - 0.5) ** 2 + 0.25 * controls**2) / 2 + 9 * (states[-1] - 0.4) ** 2 / 2
    assert float(exact.cost) == pytest.approx(cost)


def test_inequality_and_its_multiplier():
    problem = od.TrajectoryProblem(
        INTEGRATOR,
        3,
        lambda x, u, t: jnp.sum((u - 2) ** 2) / 2,
        zero,
        stage_constraint=[Inequality(lambda x, u, t: u - 1), Inequality(lambda x, u, t: x - 50)],
    )
    solver = od.AugmentedLagrangian(od.ILQR(cost_tol=1e-12))
    plan = optimize(problem, [0.0], np.zeros((3, 1)), solver=solver)
    assert od.result_name(plan.result) == "successful"
    np.testing.assert_allclose(plan.controls, 1, atol=1e-6)
    np.testing.assert_allclose(plan.stats.multipliers.dual.stage, [[1, 0]] * 3, atol=1e-5)


def test_constraints_that_cannot_hold():
    problem = od.TrajectoryProblem(
        INTEGRATOR, 3, wells, zero, terminal_constraint=Equality(lambda x: x - 5), control_bounds=(-1, 1)
    )
    plan = optimize(problem, [0.0], np.zeros((3, 1)), solver=od.AugmentedLagrangian(max_rounds=5))
    assert od.result_name(plan.result) != "successful"
    assert plan.constraint_violation > 0.1
