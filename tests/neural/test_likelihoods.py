"""Likelihoods against closed forms and numerical integrals; scales."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from optdyn import neural


@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_one_dimension_is_the_known_density(scale):
    x = np.linspace(-5, 5, 21)
    density: Any
    for likelihood, density in (
        (neural.Gaussian([scale]), stats.norm(scale=scale)),
        (neural.Cauchy([scale]), stats.cauchy(scale=scale)),
        (neural.Cauchy([scale], joint=False), stats.cauchy(scale=scale)),
    ):
        found = jax.vmap(likelihood)(jnp.asarray(x)[:, None])
        np.testing.assert_allclose(found, -density.logpdf(x), rtol=1e-12)


def test_joint_density_is_the_multivariate_one():
    scale, x = np.asarray([0.5, 1.0, 2.0]), np.asarray([0.2, -3.0, 1.0])
    multivariate_t: Any = stats.multivariate_t
    known = multivariate_t(loc=np.zeros(3), shape=np.diag(scale**2), df=1)
    assert float(neural.Cauchy(scale)(jnp.asarray(x))) == pytest.approx(-known.logpdf(x), rel=1e-12)


def test_gradients():
    """Gaussian: e; Cauchy: (n + 1) e / (1 + |e|^2), which has its largest size (n + 1) / 2 at |e| = 1."""
    e = jnp.asarray([0.6, 0.8])
    np.testing.assert_allclose(jax.grad(neural.Gaussian(jnp.ones(2)))(e), e, rtol=1e-12)
    np.testing.assert_allclose(jax.grad(neural.Cauchy(jnp.ones(2)))(e), 1.5 * e, rtol=1e-12)
    far = jax.grad(neural.Cauchy(jnp.ones(2)))(1e3 * e)
    np.testing.assert_allclose(far, 3e-3 * e, rtol=1e-5)


def test_learned_scale_is_found():
    """The scale of the highest likelihood is the mean square of normal errors; a fixed one has no
    gradient.
    """
    errors = jnp.asarray(np.random.default_rng(0).normal(scale=0.4, size=(4000, 1)))
    best = jnp.sqrt(jnp.mean(errors**2, axis=0))

    def mean(likelihood):
        return jnp.mean(jax.vmap(likelihood)(errors))

    learned = jax.grad(mean)(neural.Gaussian(best, learned=True))
    np.testing.assert_allclose(learned.log_scale, 0, atol=1e-12)
    assert float(jax.grad(mean)(neural.Gaussian(2 * best, learned=True)).log_scale[0]) > 0.1
    assert float(jax.grad(mean)(neural.Gaussian(2 * best)).log_scale[0]) == 0


def test_total_probability_is_one():
    """The joint density in polar coordinates of e / s, in which it depends on the radius alone."""
    scale = np.asarray([0.7, 1.3])
    likelihood = neural.Cauchy(scale)
    cost = jax.jit(lambda e: likelihood(e))

    def ring(radius):
        density = np.exp(-float(cost(jnp.asarray(scale * radius * np.asarray([0.6, 0.8])))))
        return 2 * np.pi * radius * density * scale.prod()

    assert integrate.quad(ring, 0, np.inf)[0] == pytest.approx(1, rel=1e-7)


def test_median_absolute_deviation():
    data = np.stack([np.arange(101.0), 10 * np.arange(101.0), np.zeros(101)], axis=1)
    np.testing.assert_allclose(neural.median_absolute_deviation(data), [25, 250, 1e-5])
    np.testing.assert_allclose(neural.median_absolute_deviation(data, [[0, 1]]), [250, 250, 1e-5])
    np.testing.assert_allclose(neural.Cauchy.of(data).scale, [25, 250, 1e-5])
    with pytest.raises(ValueError, match="outside"):
        neural.median_absolute_deviation(data, [[3]])


def test_scales_must_be_positive():
    with pytest.raises(ValueError, match="positive"):
        neural.Cauchy([1.0, 0.0])
