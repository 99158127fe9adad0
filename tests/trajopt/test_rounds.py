"""Regularization, rounds that end early, and what a success claims."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from optdyn._results import RESULTS
from optdyn.dynamics import AbstractDynamics, Linearization, StepInfo
from optdyn.trajopt import Continuation, Equality
from optdyn.trajopt._regularization import Regularization, RegularizationRule

RULE = RegularizationRule(factor=3.0, minimum=1e-6, short_step=0.05, long_step=0.5)


def test_regularization_grows_and_falls():
    now = Regularization(jnp.asarray(0.0), jnp.asarray(1.0))
    values = []
    for accepted, length in [(False, 0.0)] * 3 + [(True, 0.25)] + [(True, 0.01)] + [(True, 1.0)] * 6:
        now = RULE.after_search(now, jnp.asarray(accepted), jnp.asarray(length))
        values.append(float(now.value))
    # 1e-6, then times 3^2 and 3^3; kept; times 3^4; a change of direction starts at 1/3, then 1/9, ...
    expected = [1e-6, 9e-6, 243e-6, 243e-6, 19683e-6, 6561e-6, 729e-6, 27e-6, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(values, expected, rtol=1e-12)


class Smoothed(AbstractDynamics):
    """An integrator whose derivative by the control is 1 - smoothing."""

    state_dim: int = eqx.field(static=True, default=1)
    control_dim: int = eqx.field(static=True, default=1)

    def step(self, x, u, t):
        return x + u

    def sensitivities(self, x, u, t, warm=None, smoothing=None):
        one = jnp.ones((1, 1), x.dtype)
        info = StepInfo(RESULTS.successful, jnp.asarray(0), jnp.zeros((), x.dtype))
        return Linearization(one, one * (1 - (0.0 if smoothing is None else smoothing)), info)


def drive(**settings):
    problem = od.TrajectoryProblem(
        Smoothed(),
        4,
        lambda x, u, t: jnp.sum(u**2) / 2 + jnp.sum(x**4) / 4,
        lambda x: jnp.zeros(()),
        terminal_constraint=Equality(lambda x: x - 1),
    )
    solver = od.AugmentedLagrangian(
        od.ILQR(max_iterations=12, cost_tol=1e-10),
        constraint_tol=1e-4,
        initial_penalty=100.0,
        smoothing=Continuation(start=0.4, end=0.1, factor=0.5),
        **settings,
    )
    return od.optimize_trajectory(problem, jnp.zeros(1), jnp.zeros((4, 1)), solver=solver, throw=False)


def test_success_only_at_the_last_smoothing():
    plan = drive()
    assert od.result_name(plan.result) == "successful"
    assert plan.stats.outer_iterations >= 3  # 0.4, 0.2, 0.1
    assert plan.constraint_violation <= 1e-4
    np.testing.assert_allclose(plan.states[-1], 1, atol=1e-4)


def test_rounds_that_end_early_lead_to_the_same_plan():
    thorough, early = drive(), drive(early_cost_tol=0.1)
    assert od.result_name(early.result) == "successful"
    np.testing.assert_allclose(early.controls, thorough.controls, atol=1e-3)
    assert float(early.cost) == pytest.approx(float(thorough.cost), rel=1e-3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_regularization": 0.0}, "min_regularization must be positive"),
        ({"regularization_factor": 1.0}, "regularization_factor must be above 1"),
        ({"short_step": 0.6}, "short_step <= long_step"),
    ],
)
def test_settings_of_the_regularization(settings, message):
    with pytest.raises(ValueError, match=message):
        od.ILQR(**settings)
