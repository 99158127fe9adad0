"""Sliding block: a step that is a program, with the soft threshold as closed form."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from optdyn.dynamics import ProgramDynamics
from optdyn.systems import _sliding_block as sliding_block

FRICTION = 0.3
THRESHOLD = FRICTION * sliding_block.GRAVITY * sliding_block.STEP  # m/s
KAPPA = 1e-8
DYNAMICS = sliding_block.dynamics(FRICTION, central_path=KAPPA, smoothing=KAPPA)
T = jnp.asarray(0)
advance = eqx.filter_jit(jax.vmap(lambda x, u: DYNAMICS.advance(x, u, T)))
gradient = eqx.filter_jit(jax.vmap(jax.grad(lambda x, u: DYNAMICS.step(x, u, T)[1])))
FREE_VELOCITIES = THRESHOLD * np.array([-3.0, -1.5, -0.5, 0.0, 0.3, 0.7, 1.3, 2.0, 10.0])


def states():
    zeros = np.zeros_like(FREE_VELOCITIES)
    return np.stack([zeros, FREE_VELOCITIES], axis=1), zeros[:, None]


def test_velocity_is_the_soft_threshold():
    x_next, info = advance(*states())
    v = np.sign(FREE_VELOCITIES) * np.maximum(np.abs(FREE_VELOCITIES) - THRESHOLD, 0)
    np.testing.assert_allclose(x_next[:, 1], v, atol=1e-5)
    np.testing.assert_allclose(x_next[:, 0], sliding_block.STEP * v, atol=1e-6)
    assert np.all(np.asarray(info.result == od.RESULTS.successful))


def test_derivative_is_that_of_the_soft_threshold():
    expected = (np.abs(FREE_VELOCITIES) > THRESHOLD).astype(float)
    np.testing.assert_allclose(gradient(*states())[:, 1], expected, atol=1e-4)


def test_friction_stays_in_its_cone_and_dissipates():
    x_next, info = advance(*states())
    impulse = np.asarray(info.outputs["friction_impulse"])
    assert np.all(np.abs(impulse) <= THRESHOLD + 1e-9)
    assert np.all(impulse * np.asarray(x_next[:, 1]) <= 1e-9)


def test_force_acts_through_the_step():
    x, u = np.zeros((9, 2)), np.linspace(2.0, 10.0, 9)[:, None]  # nine, as above: one compilation
    x_next, _ = advance(x, u)
    free = sliding_block.STEP * u[:, 0] / sliding_block.MASS
    np.testing.assert_allclose(x_next[:, 1], np.maximum(free - THRESHOLD, 0), atol=1e-5)


def dynamics(next_state, state_dim=2):
    return ProgramDynamics(
        DYNAMICS.problem,
        parameters=DYNAMICS.parameters,
        guess=DYNAMICS.guess,
        next_state=next_state,
        state_dim=state_dim,
        control_dim=1,
    )


def test_wrong_next_state_is_named():
    with pytest.raises(ValueError, match=r"next state of shape \(1,\), expected \(2,\)"):
        jax.eval_shape(dynamics(lambda x, u, t, w, z: jnp.stack([w[0]])).step, jnp.zeros(2), jnp.zeros(1), T)


def test_wrong_dimensions_are_named():
    with pytest.raises(ValueError, match="state_dim must be >= 1"):
        dynamics(DYNAMICS.next_state, state_dim=0)
