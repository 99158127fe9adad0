"""Explicit and implicit integrators, and the base class."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import optdyn as od
from helpers.differences import central, relative_error
from optdyn.dynamics import RK4, ContinuousDynamics, DiscreteDynamics, Euler, ImplicitMidpoint, Midpoint

X, U, T = jnp.asarray([1.0, -0.4]), jnp.asarray([0.3]), jnp.asarray(2)


def pendulum(x, u, t):
    return jnp.stack([x[1], -jnp.sin(x[0]) + u[0]])


def oscillator(x, u, t):
    return jnp.stack([x[1], -x[0]])


@eqx.filter_jit
def final_state(dynamics, x, u, steps):
    return jax.lax.fori_loop(0, steps, lambda t, x: dynamics.step(x, u, t), x)


@pytest.mark.parametrize(
    ("integrator", "order"), [(Euler(), 1), (Midpoint(), 2), (RK4(), 4), (ImplicitMidpoint(), 2)]
)
def test_order_of_the_error(integrator, order):
    def field(_, x):
        return [x[1], -np.sin(x[0]) + 0.3]

    exact = solve_ivp(field, (0, 1), np.asarray(X), "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    errors = []
    for steps in (20, 40):
        dynamics = ContinuousDynamics(pendulum, integrator, 1 / steps, 2, 1)
        errors.append(np.abs(final_state(dynamics, X, U, steps) - exact).max())
    assert 2**order * 0.85 < errors[0] / errors[1] < 2**order * 1.15


def test_implicit_midpoint_keeps_quadratic_energy():
    dynamics = ContinuousDynamics(oscillator, ImplicitMidpoint(), 0.1, 2, 1)
    end = final_state(dynamics, X, U, 2000)
    assert float(np.sum(end**2)) == pytest.approx(1.16, rel=1e-10)


def test_implicit_midpoint_reports_a_failed_solve():
    def stiff(x, u, t):
        return jnp.exp(50 * x)

    dynamics = ContinuousDynamics(stiff, ImplicitMidpoint(max_steps=2), 1.0, 2, 1)
    _, info = eqx.filter_jit(dynamics.advance)(X, U, T)
    assert od.result_name(info.result) == "max_steps_reached"


@pytest.mark.parametrize("integrator", [Midpoint(), ImplicitMidpoint()])
def test_linearization_of_continuous_dynamics(integrator):
    check_linearization(ContinuousDynamics(pendulum, integrator, 0.1, 2, 1))


def test_linearization_of_discrete_dynamics():
    def fn(x, u, t):
        return jnp.stack([x[0] * x[1] + t * u[0], jnp.sin(x[0]) * u[0]])

    check_linearization(DiscreteDynamics(fn, 2, 1))


def check_linearization(dynamics):
    x_next, A, B = eqx.filter_jit(dynamics.linearize)(X, U, T)
    step = eqx.filter_jit(dynamics.step)
    np.testing.assert_allclose(x_next, step(X, U, T), rtol=1e-14)
    assert relative_error(A, central(lambda x: step(x, U, T), np.asarray(X), 1e-3)) < 1e-8
    assert relative_error(B, central(lambda u: step(X, u, T), np.asarray(U), 1e-3)) < 1e-8


def test_explicit_dynamics_solve_nothing():
    _, info = DiscreteDynamics(lambda x, u, t: 2 * x, 2, 1).advance(X, U, T)
    assert od.result_name(info.result) == "successful"
    assert info.steps == 0
    assert info.warm is None


@pytest.mark.parametrize("dt", [0.0, -0.1, float("nan")])
def test_step_length_must_be_positive(dt):
    with pytest.raises(ValueError, match="dt must be positive"):
        ContinuousDynamics(pendulum, RK4(), dt, 2, 1)


@pytest.mark.parametrize("dims", [(0, 1), (2, -1)])
def test_dimensions_must_make_sense(dims):
    with pytest.raises(ValueError, match="state_dim must be >= 1"):
        DiscreteDynamics(pendulum, *dims)


def test_next_state_of_another_shape_is_named():
    with pytest.raises(ValueError, match=r"next state of shape \(3,\), expected \(2,\)"):
        DiscreteDynamics(lambda x, u, t: jnp.zeros(3), 2, 1).step(X, U, T)
