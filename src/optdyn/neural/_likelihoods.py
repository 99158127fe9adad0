"""Negative log-likelihoods of prediction errors."""

import abc
import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._typing import Array, Float
from optdyn.neural._normalization import median_absolute_deviation


class AbstractLikelihood(eqx.Module):
    """`nll = likelihood(error)` for one error [n], in the units of the scale [n]."""

    log_scale: eqx.AbstractVar[Float[Array, " n"]]
    learned: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def of_squares(self, squares: Float[Array, " n"]) -> Float[Array, ""]:
        """From the squares of the scaled errors, without the logarithm of the scale."""

    def __call__(self, error: Float[Array, " n"], weight: float | Array = 1.0) -> Float[Array, ""]:
        """Minus the logarithm of the density; `weight` multiplies the squares of the scaled errors."""
        log_scale = self.log_scale if self.learned else jax.lax.stop_gradient(self.log_scale)
        return self.of_squares(weight * (error * jnp.exp(-log_scale)) ** 2) + jnp.sum(log_scale)

    @property
    def scale(self) -> Float[Array, " n"]:
        """The scale, in units of the errors."""
        return jnp.exp(self.log_scale)


class Gaussian(AbstractLikelihood):
    """Independent normal errors with standard deviation `scale`.

    Arguments:
        scale: [n], positive.
        learned: whether the scale takes part in training.

    Raises:
        ValueError: for a scale that is not positive.
    """

    log_scale: Float[Array, " n"]
    learned: bool = eqx.field(static=True)

    def __init__(self, scale, *, learned: bool = False):
        self.log_scale, self.learned = _log_scale(scale), learned

    def of_squares(self, squares):
        return 0.5 * jnp.sum(squares) + 0.5 * squares.size * math.log(2 * math.pi)


class Cauchy(AbstractLikelihood):
    """Heavy tails: the pull of an error e falls like 1 / e beyond the scale.

    Joint: (n + 1) / 2 log(1 + sum_i (e_i / s_i)^2), one multivariate distribution, in which one outlying
    entry excuses the whole error. Otherwise sum_i log(1 + (e_i / s_i)^2), n independent ones.

    Arguments:
        scale: [n], positive.
        joint: one multivariate distribution instead of n independent ones.
        learned: whether the scale takes part in training.

    Raises:
        ValueError: for a scale that is not positive.
    """

    log_scale: Float[Array, " n"]
    joint: bool = eqx.field(static=True)
    learned: bool = eqx.field(static=True)

    def __init__(self, scale, *, joint: bool = True, learned: bool = False):
        self.log_scale, self.joint, self.learned = _log_scale(scale), joint, learned

    @classmethod
    def of(cls, data, *, groups: Sequence[Sequence[int]] = (), joint: bool = True, learned: bool = False):
        """With `median_absolute_deviation` of data [.., n] for its scale."""
        return cls(median_absolute_deviation(data, groups), joint=joint, learned=learned)

    def of_squares(self, squares):
        n = squares.size
        if not self.joint:
            return jnp.sum(jnp.log1p(squares)) + n * math.log(math.pi)
        power = 0.5 * (n + 1)
        return power * jnp.log1p(jnp.sum(squares)) + power * math.log(math.pi) - math.lgamma(power)


def _log_scale(scale) -> Array:
    scale = jnp.asarray(scale, jnp.result_type(float))
    if scale.ndim != 1 or not bool(jnp.all((scale > 0) & jnp.isfinite(scale))):
        raise ValueError(f"scale must be a vector of positive numbers, got {scale}")
    return jnp.log(scale)
