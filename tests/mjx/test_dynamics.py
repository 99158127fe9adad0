"""Derivatives of whole steps: both modes against each other and against differences of MJX's own step."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn.mjx as om
from helpers import mjx_models
from optdyn import RESULTS

# Step of the central differences. The impedance of a contact is a cubic of its depth in mm, so that 1e-6 m
# leaves a truncation error of 2e-7 on the sphere.
STEP = 2e-7


def finger_start(dynamics):
    x = dynamics.state(mjx_models.FINGER_QPOS, mjx_models.FINGER_QVEL)
    return x, jnp.asarray(mjx_models.FINGER_CONTROL)


def sphere_start(dynamics):
    # The penetration is off the knee of the impedance at 1 mm, where the second derivative jumps.
    x = dynamics.state([0, 0, 0.0994, 1, 0, 0, 0], [0.4, 0.1, -0.1, 0.3, 0.2, 0.1])
    return dynamics.state_space.retract(x, jnp.zeros(12).at[3:6].set(jnp.array([0.1, 0.2, -0.1]))), jnp.zeros(
        0
    )


CASES = {
    "finger-elliptic-implicitfast": (mjx_models.finger("elliptic", "implicitfast"), finger_start),
    "sphere-pyramidal-Euler": (mjx_models.sphere("pyramidal", "Euler"), sphere_start),
    "sphere-elliptic-RK4": (mjx_models.sphere("elliptic", "RK4"), sphere_start),
    "finger-pyramidal-Euler": (mjx_models.finger("pyramidal", "Euler"), finger_start),
}
QUICK = ("finger-elliptic-implicitfast", "sphere-pyramidal-Euler")


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in CASES],
)
def derivatives(request):
    """All derivatives of two substeps at a state in contact."""
    xml, start = CASES[request.param]
    dynamics = om.MJXDynamics(xml, substeps=2)
    x, u = start(dynamics)
    space, n = dynamics.state_space, dynamics.state_space.tangent_dim(x.size)
    plain = om.MJXDynamics(xml, substeps=2, solve=om.ContactSolve("mjx"))
    weights = jnp.asarray(np.random.default_rng(1).normal(size=n))

    def move(dynamics, v, base):
        return space.difference(dynamics.step(space.retract(x, v[:n]), u + v[n:], jnp.asarray(0)), base)

    @eqx.filter_jit
    def differences(dynamics, base, size):
        shifts = size * jnp.concatenate([jnp.eye(n + u.size), -jnp.eye(n + u.size)])
        ends = jax.lax.map(lambda v: move(dynamics, v, base), shifts)
        up, down = jnp.split(ends, 2)
        return (up - down).T / (2 * size)

    @eqx.filter_jit
    def reverse(dynamics, base):
        return jax.grad(lambda v: weights @ move(dynamics, v, base))(jnp.zeros(n + u.size))

    @eqx.filter_jit
    def forward(dynamics):
        x_next, info = dynamics.advance(x, u, jnp.asarray(0))
        return x_next, info, dynamics.sensitivities(x, u, jnp.asarray(0))

    x_next, info, local = forward(dynamics)
    return (
        dynamics,
        x,
        u,
        x_next,
        info,
        local,
        reverse(dynamics, x_next),
        differences(plain, x_next, jnp.asarray(STEP)),
        weights,
    )


def test_forward_mode_equals_central_differences(derivatives):
    _, _, _, _, _, local, _, differences, _ = derivatives
    jacobian = np.concatenate([local.A, local.B], axis=1)
    np.testing.assert_allclose(jacobian, differences, rtol=0, atol=1e-7 * np.max(np.abs(differences)))


def test_reverse_mode_equals_forward_mode(derivatives):
    _, _, _, _, _, local, gradient, _, weights = derivatives
    want = weights @ np.concatenate([local.A, local.B], axis=1)
    np.testing.assert_allclose(gradient, want, rtol=0, atol=1e-10 * np.max(np.abs(want)))


def test_contact_is_solved_and_says_so(derivatives):
    _, _, _, _, info, local, _, _, _ = derivatives
    assert info.result == RESULTS.successful
    assert info.residual < 1e-9
    assert local.info.residual < 1e-9


def test_value_is_that_of_the_c_engine(derivatives):
    dynamics, x, u, x_next, *_ = derivatives
    np.testing.assert_allclose(x_next, om.replay(dynamics, x, u[None])[1], rtol=0, atol=1e-7)


def test_replay_refuses_what_does_not_fit(derivatives):
    dynamics, x, u, *_ = derivatives
    with pytest.raises(ValueError, match="x0 must have shape"):
        om.replay(dynamics, x[1:], u[None])
    with pytest.raises(ValueError, match="controls must have shape"):
        om.replay(dynamics, x, u)
