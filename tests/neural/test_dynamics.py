"""Networks as dynamics: by hand, histories, and a plan through one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from optdyn import neural


def linear(A, B, dt=1.0):
    """Dynamics x + (A, B) (x, u), written as a network of one layer."""
    network = neural.FrozenNetwork([jnp.concatenate([A, B], axis=1)], [jnp.zeros(len(A))], "tanh")
    return neural.NeuralDynamics(network, neural.Normalization.none(*B.shape), residual_scale=dt)


def test_one_step_by_hand(key):
    scales = neural.Normalization(
        jnp.asarray([1.0, -1.0]), jnp.asarray([2.0, 0.5]), jnp.asarray([0.5]), jnp.asarray([4.0])
    )
    network = neural.MLP((3, 5, 2), activation="tanh", key=key)
    dynamics = neural.NeuralDynamics(network, scales, residual_scale=0.1)
    x, u = np.asarray([0.3, 0.7]), np.asarray([1.5])
    z = np.concatenate([(x - [1.0, -1.0]) / [2.0, 0.5], (u - 0.5) / 4.0])
    W, V = (np.asarray(w) for w in network.weights)
    expected = x + 0.1 * np.asarray([2.0, 0.5]) * (V @ np.tanh(W @ z))
    step = jax.jit(lambda d: d.step(jnp.asarray(x), jnp.asarray(u), jnp.asarray(0)))
    np.testing.assert_allclose(step(dynamics), expected, rtol=1e-12)
    np.testing.assert_allclose(step(dynamics.freeze()), expected, rtol=1e-12)


def test_histories(key):
    """A step drops the oldest state and control, and appends the prediction."""
    H, n, m = 3, 2, 1
    network = neural.MLP((H * (n + m), 4, n), key=key)
    dynamics = neural.NeuralDynamics(network, neural.Normalization.none(n, m), window=H)
    states, controls = jnp.arange(10.0).reshape(5, 2), 100 + jnp.arange(4.0).reshape(4, 1)
    x = dynamics.history(states, controls, 3)
    np.testing.assert_allclose(x, [2, 3, 4, 5, 6, 7, 101, 102])
    assert x.size == dynamics.state_dim
    np.testing.assert_allclose(dynamics.latest(x), [6, 7])
    after = dynamics.step(x, controls[3], jnp.asarray(0))
    np.testing.assert_allclose(after[:4], [4, 5, 6, 7])
    np.testing.assert_allclose(after[6:], [102, 103])
    np.testing.assert_allclose(dynamics.latest(after), after[4:6])
    moved = dynamics.step(x.at[0].add(1.0), controls[3], jnp.asarray(0))
    assert float(jnp.abs(dynamics.latest(moved) - dynamics.latest(after)).max()) > 1e-6


def test_plans_go_through_a_network():
    """A double integrator as a network: the plan is that of the equations."""
    A, B = jnp.asarray([[0.0, 0.1], [0.0, 0.0]]), jnp.asarray([[0.0], [0.1]])
    explicit = od.dynamics.DiscreteDynamics(lambda x, u, t: x + A @ x + B @ u, 2, 1)

    def solve(dynamics):
        problem = od.TrajectoryProblem(
            dynamics, 10, lambda x, u, t: 0.01 * jnp.sum(u**2), lambda x: 10 * jnp.sum((x - 1) ** 2)
        )
        return od.optimize_trajectory(problem, jnp.zeros(2), jnp.zeros((10, 1)), solver=od.ILQR())

    np.testing.assert_allclose(solve(linear(A, B)).controls, solve(explicit).controls, atol=1e-8)


def test_trains_by_gradient(key):
    """Every array of the network has a gradient."""
    network = neural.SmoothNeuralSurrogate((3, 5, 2), budget=2.0, key=key)
    dynamics = neural.NeuralDynamics(network, neural.Normalization.none(2, 1))
    gradient = eqx.filter_jit(
        eqx.filter_grad(lambda d: jnp.sum(d.step(jnp.ones(2), jnp.ones(1), jnp.asarray(0)) ** 2))
    )(dynamics)
    assert all(float(jnp.abs(W).max()) > 0 for W in gradient.network.weights)


def test_a_network_that_does_not_fit(key):
    with pytest.raises(ValueError, match="need 3 to 2"):
        neural.NeuralDynamics(neural.MLP((2, 2), key=key), neural.Normalization.none(2, 1))


def test_normalization_of_samples():
    states = np.random.default_rng(0).normal(size=(50, 20, 2)) * [1.0, 3.0] + [5.0, 0.0]
    controls = np.random.default_rng(1).uniform(-1, 1, size=(50, 20, 1))
    found = neural.Normalization.of(states, controls, scale="deviation")
    np.testing.assert_allclose(found.state_scale, states.reshape(-1, 2).std(axis=0))
    robust = neural.Normalization.of(states, controls)
    np.testing.assert_allclose(robust.state_scale, [0.6745, 3 * 0.6745], rtol=0.1)
    with pytest.raises(ValueError, match="'deviation' or 'mad'"):
        neural.Normalization.of(states, controls, scale="range")  # type: ignore[arg-type]
