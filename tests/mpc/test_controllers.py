"""Controllers on small models: what one step does."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from optdyn.dynamics import DiscreteDynamics
from optdyn.mpc import DIALMPC, ILQRMPC, MPPI, GaussNewtonMPC
from optdyn.trajopt import ILQR, AugmentedLagrangian, ControlSpline, ResidualCost, SingleShooting

DT = 0.1
GOAL = np.array([1.0, 0.0])


def cart(mass=1.0):
    def step(x, u, t):
        v = x[1] + DT * u[0] / mass
        return jnp.stack([x[0] + DT * v, v])

    return DiscreteDynamics(step, 2, 1)


def task(dynamics=None, knots=None, **bounds):
    """Move a cart to the goal; linear-quadratic."""
    problem = od.TrajectoryProblem(
        cart() if dynamics is None else dynamics,
        12,
        ResidualCost(lambda x, u, t: jnp.concatenate([x - jnp.asarray(GOAL), 0.1 * u])),
        ResidualCost(lambda x: 5 * (x - jnp.asarray(GOAL))),
        **bounds,
    )
    return SingleShooting(problem, ControlSpline(knots))


@eqx.filter_jit
def one_step(controller, task, state, x):
    return controller.step(task, state, x)


def riccati():
    """Gain and offset of the first control, by one dense least-squares problem."""
    A, B = np.array([[1.0, DT], [0.0, 1.0]]), np.array([[DT**2], [DT]])
    rows, rhs = [], []
    powers = [np.linalg.matrix_power(A, t) for t in range(13)]
    x0 = np.array([0.2, -0.3])
    for t in range(13):
        response = np.zeros((2, 12))
        for s in range(t):
            response[:, s : s + 1] = powers[t - 1 - s] @ B
        weight = 5.0 if t == 12 else 1.0
        rows.append(weight * response)
        rhs.append(weight * (GOAL - powers[t] @ x0))
    rows.append(0.1 * np.eye(12))
    rhs.append(np.zeros(12))
    return x0, np.linalg.lstsq(np.concatenate(rows), np.concatenate(rhs), rcond=None)[0]


@pytest.mark.parametrize("controller", [GaussNewtonMPC(first_solves=1), ILQRMPC(first_solves=1)])
def test_with_derivatives_one_solve_is_optimal(controller):
    x0, plan = riccati()
    state = controller.init(task())
    u, state, report = one_step(controller, task(), state, jnp.asarray(x0))
    np.testing.assert_allclose(u, plan[:1], atol=1e-8)
    np.testing.assert_allclose(report.controls[:, 0], plan, atol=1e-8)
    # The state holds the plan one stage later.
    np.testing.assert_allclose(state.controls[:, 0], [*plan[1:], plan[-1]], atol=1e-8)
    assert int(state.steps) == 1


def test_dial_schedule_shrinks_both_ways():
    controller = DIALMPC(1.0, iterations=4, iteration_factor=0.5, knot_factor=2.0)
    schedule = controller.schedule(5)
    assert np.all(np.diff(schedule, axis=0) < 0)  # with the iterations
    assert np.all(np.diff(schedule, axis=1) > 0)  # least noise where the plan is applied first
    assert schedule[0, -1] == 1
    assert schedule[2, 1] == pytest.approx(np.exp(-2 / (0.5 * 4) - 3 / (2.0 * 4)))
    assert controller.schedule(1).shape == (4, 1)


@pytest.fixture(scope="module")
def bounded():
    return task(knots=4, control_bounds=(-2.0, 2.0))


@pytest.mark.parametrize("controller", [DIALMPC(2.0), MPPI(0.7, 0.1, iterations=4)])
def test_sampling_improves_a_plan_within_its_bounds(bounded, controller):
    state = controller.init(bounded)
    before = None
    for _ in range(3):
        state = eqx.tree_at(lambda s: s.steps, state, state.steps * 0)
        _, state, report = one_step(controller, bounded, state, jnp.zeros(2))
        before = float(report.merit) if before is None else before
    _, _, best = one_step(GaussNewtonMPC(), bounded, GaussNewtonMPC().init(bounded), jnp.zeros(2))
    assert float(best.merit) <= float(report.merit) < 1.2 * float(best.merit)
    assert np.abs(np.asarray(report.controls)).max() <= 2.0
    assert report.result == od.RESULTS.successful


def test_mppi_weights_by_hand(bounded):
    """One iteration: the mean over its own samples with weights exp(-C / temperature)."""
    temperature = 0.3
    controller = MPPI(0.5, temperature, num_samples=8, first_solves=1)
    key = jax.random.key(3)
    _, _, report = one_step(controller, bounded, controller.init(bounded, key=key), jnp.zeros(2))
    used = jax.random.split(jax.random.fold_in(jax.random.fold_in(key, 0), 0), 1)[0]
    noise = np.array(jax.random.normal(used, (8, 4, 1)))
    noise[0] = 0
    samples = np.clip(0.5 * noise, -2, 2)
    basis = ControlSpline(4).basis(12)
    costs = []
    for knots in samples:
        x, total = np.zeros(2), 0.0
        for u in (basis @ knots)[:, 0]:
            total += (np.sum((x - GOAL) ** 2) + (0.1 * u) ** 2) / 2
            v = x[1] + DT * u
            x = np.array([x[0] + DT * v, v])
        costs.append(total + 25 * np.sum((x - GOAL) ** 2) / 2)
    weights = np.exp(-(np.array(costs) - min(costs)) / temperature)
    mean = np.tensordot(weights / weights.sum(), samples, 1)
    np.testing.assert_allclose(report.controls, basis @ mean, atol=1e-10)


@pytest.mark.parametrize("controller", [DIALMPC(1.0), MPPI(1.0, 0.1)])
@pytest.mark.parametrize("limit", [0.05, -1.0])
def test_samples_that_fail_have_no_weight(controller, limit):
    """Numbers end beyond a position: for some samples, or from the start for all."""

    def step(x, u, t):
        x_next = jnp.stack([x[0] + DT * x[1], x[1] + DT * u[0]])
        return jnp.where(x[0] > limit, jnp.nan, x_next)

    broken = task(DiscreteDynamics(step, 2, 1), knots=3)
    state = controller.init(broken, jnp.full((12, 1), -0.1))
    _, _, report = one_step(controller, broken, state, jnp.zeros(2))
    assert np.all(np.isfinite(report.controls))
    if limit < 0:
        assert report.result == od.RESULTS.nonfinite
        np.testing.assert_allclose(report.controls, -0.1)
    else:
        assert report.result == od.RESULTS.successful


def test_the_key_decides_what_is_sampled(bounded):
    controller = DIALMPC(1.0, num_samples=8, first_solves=1)

    def plan(key):
        return one_step(controller, bounded, controller.init(bounded, key=key), jnp.zeros(2))[2].controls

    first, again, other = plan(jax.random.key(1)), plan(jax.random.key(1)), plan(jax.random.key(2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


def test_ilqr_with_bounds(bounded):
    controller = ILQRMPC(AugmentedLagrangian(ILQR(max_iterations=10), max_rounds=6), first_solves=1)
    u, _, _ = one_step(controller, bounded, controller.init(bounded), jnp.zeros(2))
    assert float(u[0]) == pytest.approx(2.0, abs=1e-3)
    assert float(u[0]) <= 2.0


def test_messages(bounded):
    with pytest.raises(ValueError, match="ILQR takes no constraints or bounds"):
        ILQRMPC().init(bounded)
    with pytest.raises(TypeError, match="task must be a SingleShooting"):
        GaussNewtonMPC().init(bounded.problem)
    with pytest.raises(ValueError, match="controls must have shape"):
        GaussNewtonMPC().init(bounded, jnp.zeros((3, 1)))
    with pytest.raises(ValueError, match="num_samples"):
        DIALMPC(1.0, num_samples=1)
    with pytest.raises(ValueError, match="iterations must be at least 1"):
        MPPI(1.0, 1.0, iterations=0)
