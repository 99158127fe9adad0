"""Laws of networks: bounds that hold, budgets, gradients of the layer constants, folding."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optdyn import neural

SIZES = (3, 16, 12, 8, 2)
PAIRS = 10_000


def smooth(key, **options):
    return neural.SmoothNeuralSurrogate(SIZES, **{"budget": 8.0, "activation": "tanh", **options}, key=key)


def clipped(network, factor):
    """The same network with every layer constant multiplied by `factor`, so that rows are clipped."""
    if isinstance(network, neural.SmoothNeuralSurrogate):
        return eqx.tree_at(lambda n: n.theta, network, network.theta + np.log(factor))
    return eqx.tree_at(lambda n: n.raw, network, network.raw * factor)


@pytest.mark.parametrize("activation", ["tanh", "softplus", "mish", "elu", "sine", "silu", "gelu", "relu"])
def test_certified_bound_holds(activation, key):
    network = clipped(smooth(key, activation=activation), 0.4)

    @jax.jit
    def quotients(network, a, b):
        frozen = network.freeze()
        change = jax.vmap(frozen)(a) - jax.vmap(frozen)(b)
        return jnp.max(jnp.abs(change), axis=1) / jnp.max(jnp.abs(a - b), axis=1)

    @jax.jit
    def row_sums(network, a):
        return jnp.max(jnp.sum(jnp.abs(jax.vmap(jax.jacrev(network.freeze()))(a)), axis=2), axis=1)

    a = 2 * jax.random.normal(key, (PAIRS, 3))
    b = a + jnp.exp(
        jax.random.uniform(jax.random.key(1), (PAIRS, 1), minval=-8, maxval=2)
    ) * jax.random.normal(jax.random.key(2), (PAIRS, 3))
    bound = float(network.certified_bound())
    assert float(quotients(network, a, b).max()) <= bound * (1 + 1e-9)
    steepest = float(row_sums(network, a).max())
    assert 0.01 * bound < steepest <= bound * (1 + 1e-12)
    if neural.activation(activation).slope == 1:
        assert bound <= float(network.sensitivity()) * (1 + 1e-12)


def test_the_true_slope_of_mish_is_needed():
    """A net whose sensitivity is 1, and whose slope is not."""
    network = neural.FrozenNetwork([jnp.ones((1, 1))] * 2, [jnp.zeros(1)] * 2, "mish")
    slope = float(jax.jacrev(network)(jnp.asarray([1.491]))[0, 0])
    assert float(network.sensitivity()) < slope <= float(network.certified_bound())


@pytest.mark.parametrize("name", ["tanh", "softplus", "mish", "silu", "gelu", "elu", "sine"])
def test_constants_of_activations(name):
    """Suprema found on a fine grid; the table rounds them upwards by at most 1e-5."""
    entry = neural.activation(name)
    # Far out for the slope of softplus, just below zero for the curvature of elu.
    x = jnp.concatenate([jnp.linspace(-8, 8, 400_001), jnp.asarray([40.0, -1e-7])])
    first = jax.jit(jax.vmap(jax.grad(entry.fn)))(x)
    second = jax.jit(jax.vmap(jax.grad(jax.grad(entry.fn))))(x)
    for found, listed in ((first, entry.slope), (second, entry.curvature)):
        assert listed - 2e-5 <= float(jnp.abs(found).max()) <= listed + 1e-12


@pytest.mark.parametrize("activation", ["tanh", "softplus", "mish"])
def test_certified_curvature_holds(activation, key):
    """|D^2 f[u, v]| <= d |u| |v| for every sign pattern, which is where a bilinear form is largest."""
    network = clipped(smooth(key, activation=activation), 0.5)
    signs = jnp.asarray(list(itertools.product([-1.0, 1.0], repeat=3)))

    @jax.jit
    def largest(network, x):
        H = jax.vmap(jax.hessian(network.freeze()))(x)
        return jnp.abs(jnp.einsum("bnij,ui,vj->bnuv", H, signs, signs)).max()

    found = float(largest(network, 2 * jax.random.normal(key, (500, 3))))
    assert 0 < found <= float(network.certified_curvature()) * (1 + 1e-9)
    constants = neural.activation(activation)
    if constants.slope == 1:
        assert float(network.certified_curvature()) <= float(network.curvature()) * (1 + 1e-9)


def test_recursion_of_the_second_order(key):
    """With s1 = 1: d_L = s2 g sum_{k<L} prod_{l<=k} c_l; the objective's j has the sum to L and no s2."""
    c = np.asarray([2.0, 0.5, 3.0, 1.5])
    prefix = np.cumprod(c)
    rows = [jnp.full((1, 1), value) for value in c]
    network = neural.FrozenNetwork(rows, [jnp.zeros(1)] * 4, "softplus")
    np.testing.assert_allclose(network.certified_bound(), prefix[-1], rtol=1e-12)
    np.testing.assert_allclose(
        network.certified_curvature(), 0.25 * prefix[-1] * prefix[:-1].sum(), rtol=1e-12
    )
    np.testing.assert_allclose(network.curvature(), prefix[-1] * prefix.sum(), rtol=1e-12)
    assert neural.curvature_budget(16.0, 2) == pytest.approx(16 * (4 + 16))


def test_gradients_of_the_constants(key):
    """Above the budget: equal for exponential constants, g / c_ub each; unequal for softplus ones."""
    first = smooth(key)
    gradient = jax.jit(jax.grad(lambda n: n.penalty()))(first)
    np.testing.assert_allclose(gradient.theta, float(first.sensitivity()) / 8, rtol=1e-9)
    assert all(float(jnp.abs(W).max()) == 0 for W in gradient.weights)
    baseline = neural.LipschitzMLP(SIZES, budget=8.0, activation="tanh", key=key)
    slopes = np.asarray(jax.jit(jax.grad(lambda n: n.penalty()))(baseline).raw)
    assert slopes.max() > 1.5 * slopes.min() > 0
    assert np.argmax(slopes) == np.argmin(baseline.raw)


@pytest.mark.parametrize("order", [1, 2, "both"])
def test_penalty(order, key):
    network = smooth(key, order=order)
    g, j = float(network.sensitivity()), float(network.curvature())
    parts = {1: g / 8 - 1, 2: j / neural.curvature_budget(8.0, 4) - 1}
    expected = sum(parts.values()) if order == "both" else parts[order]
    assert float(network.penalty()) == pytest.approx(expected, rel=1e-9)
    quiet = clipped(network, 1e-3)
    value, gradient = jax.jit(jax.value_and_grad(lambda n: n.penalty()))(quiet)
    assert float(value) == 0
    assert float(jnp.abs(gradient.theta).max()) == 0


def test_penalty_of_enormous_bounds_is_finite(key):
    network = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), smooth(key, order="both"))
    network = eqx.tree_at(lambda n: n.theta, network, jnp.full(4, 100.0, jnp.float32))
    value, gradient = jax.jit(jax.value_and_grad(lambda n: n.penalty()))(network)
    assert np.isfinite(value)
    assert np.all(np.isfinite(gradient.theta))
    assert float(gradient.theta.min()) > 0


@pytest.mark.parametrize("kind", ["smooth", "lipschitz", "free"])
def test_frozen_is_the_same_function(kind, key):
    makers = {
        "smooth": lambda: clipped(smooth(key, activation="mish"), 0.3),
        "lipschitz": lambda: clipped(neural.LipschitzMLP(SIZES, budget=8.0, key=key), 0.3),
        "free": lambda: neural.MLP(SIZES, key=key),
    }
    network = makers[kind]()
    x = jax.random.normal(key, (50, 3))
    both = jax.jit(lambda n, x: (jax.vmap(n)(x), jax.vmap(n.freeze())(x)))
    plain, frozen = both(network, x)
    np.testing.assert_allclose(plain, frozen, rtol=0, atol=1e-6)
    if kind != "free":
        clip = [neural.row_sum_norm(W) for W in network.effective_weights()]
        np.testing.assert_array_less(np.log(clip), np.asarray(network.log_constants()) + 1e-12)


def test_nothing_is_clipped_at_the_start(key):
    network = smooth(key)
    for W, V in zip(network.weights, network.effective_weights(), strict=True):
        np.testing.assert_allclose(W, V, rtol=1e-14)


def test_derivatives_at_ties_and_zero_rows():
    W = jnp.asarray([[0.0, 0.0], [1.0, -1.0], [3.0, 0.0]])
    for bound in (2.0, 1e-3, 5.0):
        derivatives = jax.jit(jax.jacrev(neural.clip_rows, argnums=(0, 1)))(W, jnp.asarray(bound))
        assert all(np.all(np.isfinite(d)) for d in derivatives)
    np.testing.assert_allclose(neural.clip_rows(W, jnp.asarray(2.0)), [[0, 0], [1, -1], [2, 0]], rtol=1e-15)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(neural.clip_rows(W, jnp.asarray(1.0)), W)


def test_bad_arguments(key):
    with pytest.raises(ValueError, match="sizes must be"):
        neural.MLP((3,), key=key)
    with pytest.raises(ValueError, match="unknown activation 'swash'"):
        neural.MLP((3, 1), activation="swash", key=key)
    with pytest.raises(ValueError, match="budget must be a positive"):
        smooth(key, budget=0.0)
    with pytest.raises(ValueError, match="order must be"):
        smooth(key, order=3)
    with pytest.raises(ValueError, match="layer 2"):
        neural.FrozenNetwork([jnp.ones((2, 2)), jnp.ones((1, 3))], [jnp.ones(2), jnp.ones(1)], "tanh")
    with pytest.raises(ValueError, match="norm must be"):
        smooth(key).certified_bound("spectral")  # type: ignore[arg-type]
