"""Splines of controls, relaxed barriers, and messages of single shooting."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import optdyn as od
from optdyn.dynamics import DiscreteDynamics
from optdyn.trajopt import (
    ControlSpline,
    Equality,
    GaussNewton,
    OptimistixSolver,
    RelaxedBarrier,
    ResidualCost,
    SingleShooting,
    optimize_shooting,
)


@pytest.mark.parametrize("knots", [1, 2, 3, 6, 11])
@pytest.mark.parametrize("horizon", [1, 2, 9, 10])
def test_splines_agree_with_scipy(rng, knots, horizon):
    values = rng.normal(size=(knots, 2))
    at, places = np.linspace(0, 1, horizon), np.linspace(0, 1, knots)
    linear = ControlSpline(knots).basis(horizon) @ values
    expected = [np.interp(at, places, values[:, i]) for i in range(2)] if knots > 1 else values * np.ones(2)
    np.testing.assert_allclose(linear.T if knots > 1 else linear[:1], expected, atol=1e-12)
    if knots >= 3:
        cubic = ControlSpline(knots, "cubic").basis(horizon) @ values
        natural = CubicSpline(places, values, bc_type="natural")(at)
        np.testing.assert_allclose(cubic, natural, atol=1e-12)


@pytest.mark.parametrize("kind", ["linear", "cubic"])
def test_knots_of_a_linear_spline_come_back(rng, kind):
    """Stages 0, 4, 8, .. are knots."""
    spline, values = ControlSpline(4, kind), rng.normal(size=(4, 1))
    np.testing.assert_allclose(spline.resampling(13) @ spline.basis(13) @ values, values, atol=1e-12)


def test_shift_repeats_the_last():
    shifted = ControlSpline(3).shift(jnp.asarray([[1.0], [2.0], [3.0]]))
    np.testing.assert_array_equal(shifted, [[2.0], [3.0], [3.0]])


def test_barrier_is_smooth_where_its_branches_meet():
    barrier = RelaxedBarrier(weight=0.7, relaxation=0.3)
    derivatives = [
        barrier.value,
        jax.vmap(jax.grad(barrier.value)),
        jax.vmap(jax.grad(jax.grad(barrier.value))),
    ]
    either_side = jnp.asarray([-0.3 - 1e-9, -0.3 + 1e-9])
    for fn in derivatives:
        left, right = fn(either_side)
        np.testing.assert_allclose(left, right, rtol=1e-6)
    c = jnp.linspace(-2.0, 2.0, 41)
    np.testing.assert_allclose(barrier.slope(c), derivatives[1](c), rtol=1e-12)
    np.testing.assert_allclose(barrier.curvature(c), derivatives[2](c), rtol=1e-12)
    np.testing.assert_allclose(barrier.value(jnp.asarray([-1.5])), -0.7 * np.log(1.5))
    assert np.all(barrier.curvature(c) > 0)


def problem(**more):
    dynamics = DiscreteDynamics(lambda x, u, t: x + u, 1, 1)
    settings = {
        "stage_cost": ResidualCost(lambda x, u, t: u),
        "terminal_cost": ResidualCost(lambda x: x),
        **more,
    }
    return od.TrajectoryProblem(dynamics, 3, **settings)


def test_messages():
    with pytest.raises(ValueError, match="takes no Equality"):
        SingleShooting(problem(terminal_constraint=Equality(lambda x: x)))
    with pytest.raises(ValueError, match="no shared parameters"):
        SingleShooting(problem(initial_state=lambda p: p))
    with pytest.raises(TypeError, match="must be a TrajectoryProblem"):
        SingleShooting(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="num_knots must be at least 1"):
        ControlSpline(0)
    with pytest.raises(ValueError, match="relaxation must be positive"):
        RelaxedBarrier(relaxation=0.0)
    with pytest.raises(ValueError, match="num_steps"):
        GaussNewton(num_steps=1)
    x0, controls = jnp.zeros(1), jnp.zeros((3, 1))
    plain = SingleShooting(problem(stage_cost=lambda x, u, t: jnp.sum(u)))
    with pytest.raises(ValueError, match="stage_cost must be a ResidualCost"):
        optimize_shooting(plain, x0, controls)
    vector = SingleShooting(problem(stage_cost=ResidualCost(lambda x, u, t: u[0])))
    with pytest.raises(ValueError, match="a residual must be a vector"):
        optimize_shooting(vector, x0, controls)
    bounded = SingleShooting(problem(control_bounds=(-1, 1)))
    with pytest.raises(ValueError, match="takes no control bounds"):
        optimize_shooting(bounded, x0, controls, solver=OptimistixSolver(None))
    with pytest.raises(TypeError, match="solver must be"):
        optimize_shooting(bounded, x0, controls, solver=od.ILQR())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="controls must have shape"):
        optimize_shooting(bounded, x0, jnp.zeros((2, 1)))
