"""The same single-shooting problem in the hands of other optimizers."""

import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest

import optdyn as od
from optdyn.dynamics import RK4, ContinuousDynamics
from optdyn.trajopt import (
    ControlSpline,
    JaxoptSolver,
    OptaxSolver,
    OptimistixSolver,
    ResidualCost,
    SingleShooting,
    optimize_shooting,
)

X0, START = jnp.zeros(2), jnp.full((12, 1), 0.5)


def shooting(**bounds):
    """Swing a pendulum; derivatives come from the linearization of each stage, as those of programs do."""

    def field(x, u, t):
        return jnp.stack([x[1], u[0] - jnp.sin(x[0])])

    problem = od.TrajectoryProblem(
        ContinuousDynamics(field, RK4(), 0.1, 2, 1),
        12,
        ResidualCost(lambda x, u, t: 0.1 * u),
        ResidualCost(lambda x: 3 * (x - jnp.asarray([0.4, 0.8]))),
        **bounds,
    )
    return SingleShooting(problem, ControlSpline(4), derivatives="linearize")


@pytest.fixture(scope="module")
def free():
    return optimize_shooting(shooting(), X0, START)


@pytest.mark.parametrize("method", [optx.BFGS, optx.LevenbergMarquardt])
def test_optimistix(free, method):
    solver = OptimistixSolver(method(rtol=1e-7, atol=1e-7))
    plan = optimize_shooting(shooting(), X0, START, solver=solver)
    assert float(plan.cost) == pytest.approx(float(free.cost), rel=1e-4)
    np.testing.assert_allclose(plan.knots, free.knots, atol=2e-2)


def test_jaxopt_without_bounds(free):
    plan = optimize_shooting(shooting(), X0, START, solver=JaxoptSolver("LBFGS", tol=1e-3))
    assert float(plan.cost) == pytest.approx(float(free.cost), rel=1e-4)


def test_projected_gradient_keeps_bounds():
    bounded = shooting(control_bounds=(-0.5, 0.5))
    newton = optimize_shooting(bounded, X0, START)
    plan = optimize_shooting(bounded, X0, START, solver=JaxoptSolver("ProjectedGradient", tol=1e-3))
    assert float(np.abs(np.asarray(plan.knots)).max()) == 0.5
    np.testing.assert_allclose(plan.knots, newton.knots, atol=1e-2)
    assert float(plan.cost) == pytest.approx(float(newton.cost), rel=1e-4)


def test_optax(free):
    optax = pytest.importorskip("optax")
    solver = OptaxSolver(optax.adam(5e-2), steps=1500, gradient_tol=1e-2)
    plan = optimize_shooting(shooting(), X0, START, solver=solver)
    assert float(plan.cost) == pytest.approx(float(free.cost), rel=1e-3)
    # Too few steps are not called a solution.
    few = optimize_shooting(shooting(), X0, START, solver=OptaxSolver(optax.adam(5e-2), 3), throw=False)
    assert few.result == od.RESULTS.max_steps_reached
