"""Generalized Gauss-Newton: what it gives on linear-quadratic problems, its derivatives, its honesty."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from optdyn.dynamics import RK4, ContinuousDynamics, DiscreteDynamics
from optdyn.systems import _cartpole as cartpole
from optdyn.systems import _sliding_block as block
from optdyn.trajopt import (
    ControlSpline,
    GaussNewton,
    Inequality,
    RelaxedBarrier,
    ResidualCost,
    SingleShooting,
    optimize_shooting,
)
from optdyn.trajopt._shooting import trace_shooting
from reference import lqr

optimize: Any = optimize_shooting  # NumPy arrays are welcome too


def quadratic_problem(data, **constraints):
    """The linear-quadratic problem of `data`, its costs as residuals."""

    def roots(H, g):
        L = np.linalg.cholesky(H)
        return jnp.asarray(np.swapaxes(L, -1, -2)), jnp.asarray(np.linalg.solve(L, g[..., None])[..., 0])

    horizon, nx, nu = data.B.shape
    (F, f), (G, h) = roots(data.H, data.g), roots(data.P, data.p)
    A, B, c = (jnp.asarray(a) for a in (data.A, data.B, data.c))
    return od.TrajectoryProblem(
        DiscreteDynamics(lambda x, u, t: A[t] @ x + B[t] @ u + c[t], nx, nu),
        horizon,
        ResidualCost(lambda x, u, t: F[t] @ jnp.concatenate([x, u]) + f[t]),
        ResidualCost(lambda x: G @ x + h),
        **constraints,
    )


def pendulum(horizon=12, **constraints):
    """Swing a damped pendulum towards upright; a loss that is no square on the way."""

    def field(x, u, t):
        return jnp.stack([x[1], u[0] - 9.81 * jnp.sin(x[0]) - 0.1 * x[1]])

    def pseudo_huber(r):
        return jnp.sum(jnp.sqrt(1 + r * r) - 1)

    return od.TrajectoryProblem(
        ContinuousDynamics(field, RK4(), 0.1, 2, 1),
        horizon,
        ResidualCost(lambda x, u, t: jnp.stack([jnp.cos(x[0]) + 1, 0.1 * x[1], 0.1 * u[0]]), pseudo_huber),
        ResidualCost(lambda x: 2 * (x - jnp.asarray([np.pi, 0.0]))),
        **constraints,
    )


@pytest.mark.parametrize(("nx", "nu", "horizon"), [(3, 2, 7), (2, 1, 1)])
def test_one_step_gives_the_riccati_solution(rng, nx, nu, horizon):
    data, x0 = lqr.random_data(rng, nx, nu, horizon), rng.normal(size=nx)
    shooting = SingleShooting(quadratic_problem(data))
    start = rng.normal(size=(horizon, nu))
    plan = optimize(shooting, x0, start, solver=GaussNewton(max_iterations=1), throw=False)
    answer = lqr.solve(data, x0)
    np.testing.assert_allclose(plan.controls, answer.controls, atol=1e-8)
    np.testing.assert_allclose(plan.states, answer.states, atol=1e-8)
    assert float(plan.stats.step_lengths[0]) == 1
    # With room for a second one it sees that there is nothing left to do.
    plan = optimize(shooting, x0, start)
    assert int(plan.stats.iterations) == 2
    np.testing.assert_allclose(plan.controls, answer.controls, atol=1e-8)


def slow_start(x, u, t):
    return jnp.stack([x[1] - 2.0, -u[0] - 3.0])


def contact_problem():
    """A block on a rough floor, with a barrier on its speed."""
    return od.TrajectoryProblem(
        block.dynamics(0.2),
        6,
        ResidualCost(lambda x, u, t: 0.1 * u),
        ResidualCost(lambda x: 3 * (x - jnp.asarray([0.1, 0.0]))),
        stage_constraint=Inequality(slow_start),
    )


@pytest.mark.parametrize(
    ("which", "kind"), [("rollout", "linear"), ("linearize", "cubic"), ("contact", "cubic")]
)
def test_gradient_of_the_model_is_that_of_the_merit(rng, kind, which):
    """Convex loss, barrier on both of its branches, controls cut at a bound; to rounding."""
    if which == "contact":
        problem, derivatives = contact_problem(), "auto"
    else:
        problem, derivatives = pendulum(stage_constraint=Inequality(slow_start)), which
    problem = replace(problem, control_bounds=(-1.5, 1.5))
    barrier = RelaxedBarrier(weight=0.3, relaxation=0.5)
    spline = ControlSpline(5, kind)
    shooting = SingleShooting(problem, spline, barrier, derivatives)
    knots = jnp.asarray(1.5 * np.sign(rng.normal(size=(5, 1))) * np.array([[1], [1], [0.3], [1], [0.5]]))

    @jax.jit
    def both(knots):
        traced = trace_shooting(shooting, jnp.asarray([0.2, 2.2]))
        trajectory = traced.simulate(knots)
        model = traced.model(trajectory, knots)
        return model, jax.grad(traced.value)(knots).ravel(), traced.merit(trajectory)[0], traced.value(knots)

    model, gradient, merit, value = both(knots)
    assert np.abs(gradient).max() > 1e-2
    np.testing.assert_allclose(model.gradient, gradient, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(merit, value, rtol=1e-12)
    assert np.linalg.eigvalsh(model.hessian).min() >= -1e-9


def test_both_ways_to_differentiate_agree():
    problem = pendulum()

    @jax.jit
    def models(knots):
        found = []
        for how in ("rollout", "linearize"):
            traced = trace_shooting(
                SingleShooting(problem, ControlSpline(4), derivatives=how), jnp.asarray([0.1, 0.0])
            )
            found.append(traced.model(traced.simulate(knots), knots))
        return found

    through, linear = models(jnp.asarray([[1.0], [-2.0], [0.5], [3.0]]))
    np.testing.assert_allclose(linear.hessian, through.hessian, rtol=1e-10, atol=1e-12)


def test_the_hessian_uses_the_curvature_of_the_loss():
    """On linear dynamics with linear residuals the model is exact: all of the Hessian of the merit."""
    dynamics = DiscreteDynamics(lambda x, u, t: x + u, 1, 1)
    cost = ResidualCost(lambda x, u, t: jnp.concatenate([x, u]), lambda r: jnp.sum(jnp.cosh(r)))
    terminal = ResidualCost(lambda x: 2 * x, lambda r: jnp.sum(jnp.exp(r)))
    limit = Inequality(lambda x, u, t: x - 0.5)
    problem = od.TrajectoryProblem(dynamics, 3, cost, terminal, stage_constraint=limit)

    @jax.jit
    def both(knots):
        traced = trace_shooting(SingleShooting(problem, barrier=RelaxedBarrier(0.1, 0.2)), jnp.ones(1) * 0.2)
        exact = jax.hessian(lambda p: traced.value(p.reshape(3, 1)))(knots.ravel())
        return traced.model(traced.simulate(knots), knots).hessian, exact

    found, exact = both(jnp.asarray([[0.2], [0.3], [-0.4]]))
    np.testing.assert_allclose(found, exact, rtol=1e-10)


@pytest.fixture(scope="module")
def swing():
    """Bounded torque, a limit on the speed, from hanging at rest."""
    fast = Inequality(lambda x, u, t: jnp.stack([x[1] - 5.0, -x[1] - 5.0]))
    problem = pendulum(20, control_bounds=(-7.0, 7.0), stage_constraint=fast)
    return SingleShooting(problem, ControlSpline(8))


def test_monotone_and_within_bounds(swing):
    plan = optimize(swing, np.zeros(2), np.ones((20, 1)))
    merits = np.asarray(plan.stats.merits)[: int(plan.stats.iterations)]
    assert np.all(np.diff(merits) <= 0)
    assert merits[-1] == pytest.approx(float(plan.merit), rel=1e-12)
    knots = np.asarray(plan.knots)
    assert np.abs(knots).max() == 7.0  # at a bound, and not an ulp beyond
    assert np.abs(np.asarray(plan.controls)).max() <= 7.0
    assert float(plan.constraint_violation) < 0.05
    # Stationary: free knots have no gradient, the others are pushed outwards.
    traced = trace_shooting(swing, jnp.zeros(2))
    gradient = np.asarray(jax.jit(jax.grad(traced.value))(plan.knots))
    held = np.abs(knots) == 7.0
    assert np.all(gradient[held] * knots[held] < 0)
    assert np.abs(gradient[~held]).max() < 1e-2


def test_batch_of_environments(swing):
    starts = jnp.asarray([[0.0, 0.0], [0.4, 0.0], [-0.3, 1.0]])

    @eqx.filter_jit
    def solve_all(starts):
        return jax.vmap(lambda x0: optimize(swing, x0, jnp.ones((20, 1)), throw=False))(starts)

    plans = solve_all(starts)
    for i in (0, 2):
        one = optimize(swing, starts[i], np.ones((20, 1)), throw=False)
        np.testing.assert_allclose(plans.controls[i], one.controls, atol=1e-5)
        assert bool((plans.result == one.result)[i])


def test_useless_knots_do_not_matter():
    """Two controls of which one does nothing: the Hessian is singular, the damped step is not."""
    dynamics = DiscreteDynamics(lambda x, u, t: x + u[:1], 1, 2)
    zero = ResidualCost(lambda x, u, t: 0.1 * u[:1])
    problem = od.TrajectoryProblem(dynamics, 3, zero, ResidualCost(lambda x: x - 1))
    plan = optimize(SingleShooting(problem), np.zeros(1), np.full((3, 2), 0.2))
    assert plan.result == od.RESULTS.successful
    np.testing.assert_allclose(plan.controls[:, 1], 0.2)
    np.testing.assert_allclose(plan.controls[:, 0], 1 / 3.01, rtol=1e-4)


def nan_beyond(limit):
    def step(x, u, t):
        return jnp.where(x > limit, jnp.nan, x + u)

    return od.TrajectoryProblem(
        DiscreteDynamics(step, 1, 1),
        4,
        ResidualCost(lambda x, u, t: 0.1 * u),
        ResidualCost(lambda x: x - 0.5),
    )


def test_random_candidates_where_the_derivative_is_no_number():
    """The square root has no derivative at the start; the candidates leave it and the rest is Newton."""

    def step(x, u, t):
        return x + jnp.sqrt(jnp.abs(u))

    problem = od.TrajectoryProblem(
        DiscreteDynamics(step, 1, 1),
        2,
        ResidualCost(lambda x, u, t: 0.1 * u),
        ResidualCost(lambda x: x - 0.5),
    )
    plan = optimize(SingleShooting(problem), np.zeros(1), np.zeros((2, 1)), throw=False)
    assert int(plan.stats.fallbacks) >= 1
    merits = np.asarray(plan.stats.merits)[: int(plan.stats.iterations)]
    assert np.all(np.diff(merits) <= 0)
    assert float(plan.cost) < 1e-2
    assert np.all(np.isfinite(plan.controls))


def test_dynamics_without_numbers_are_reported():
    problem = nan_beyond(-1.0)  # everywhere
    plan = optimize(SingleShooting(problem), np.zeros(1), np.zeros((4, 1)), throw=False)
    assert plan.result == od.RESULTS.nonfinite
    with pytest.raises(RuntimeError, match="NaN or infinity"):
        optimize(SingleShooting(problem), np.zeros(1), np.zeros((4, 1)))
    plan = optimize(SingleShooting(nan_beyond(9.0)), np.full(1, np.nan), np.zeros((4, 1)), throw=False)
    assert plan.result == od.RESULTS.nonfinite_input


def test_leaves_a_region_without_numbers():
    """The first rollout fails; a random candidate does not."""
    plan = optimize(
        SingleShooting(nan_beyond(1.0)),
        np.zeros(1),
        np.full((4, 1), 0.4),
        solver=GaussNewton(fallback_spread=0.5),
    )
    assert int(plan.stats.fallbacks) >= 1
    np.testing.assert_allclose(plan.states[-1], 0.5, atol=0.01)


def test_sliding_block_through_its_program():
    problem = od.TrajectoryProblem(
        block.dynamics(0.2, smoothing=1e-4),
        block.HORIZON,
        ResidualCost(lambda x, u, t: np.sqrt(0.05) * 0.1 * u),
        ResidualCost(lambda x: 10 * (x - jnp.asarray([1.0, 0.0]))),
        control_bounds=(-20.0, 20.0),
    )
    shooting = SingleShooting(problem, ControlSpline(8))
    plan = optimize(shooting, np.zeros(2), np.full((40, 1), 3.0), solver=GaussNewton(cost_tol=1e-6))
    np.testing.assert_allclose(plan.states[-1], [1.0, 0.0], atol=1e-3)
    merits = np.asarray(plan.stats.merits)[: int(plan.stats.iterations)]
    assert np.all(np.diff(merits) <= 0)
    assert np.all(np.abs(plan.step_info.outputs["friction_impulse"]) <= 0.2 * 9.81 * 0.05 + 1e-6)


def test_cart_pole_with_friction_through_its_program():
    friction = 0.1
    problem = od.TrajectoryProblem(
        cartpole.dynamics(friction, smoothing=0.1 * friction),
        cartpole.HORIZON,
        ResidualCost(lambda x, u, t: np.sqrt(2.0) * u),
        ResidualCost(lambda x: 30 * (x - jnp.asarray(cartpole.GOAL))),
    )
    controls = 1e-3 * np.random.default_rng(0).normal(size=(cartpole.HORIZON, 1))
    controls[0] -= 1.5
    plan = optimize(SingleShooting(problem), np.zeros(4), controls, solver=GaussNewton(cost_tol=1e-3))
    assert plan.result == od.RESULTS.successful
    np.testing.assert_allclose(plan.states[-1], cartpole.GOAL, atol=0.1)
    assert float(plan.cost) < 8
