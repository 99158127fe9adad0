"""Levenberg-Marquardt regularization of the control Hessian."""

import equinox as eqx
import jax.numpy as jnp

from optdyn._tree import tree_where
from optdyn._typing import Array, Bool, Float


class Regularization(eqx.Module):
    """The term added to the diagonal of Q_uu, and the factor of its last change.

    Raising it repeatedly does so by a growing factor, and lowering it as well (Tassa, Erez and Todorov,
    'Synthesis and stabilization of complex behaviors through online trajectory optimization', 2012,
    section II.F): a few iterations reach any order of magnitude, and one change of direction starts small.
    """

    value: Float[Array, ""]
    growth: Float[Array, ""]


class RegularizationRule(eqx.Module):
    """When the term changes, by which factor, and its range (zero below `minimum`)."""

    factor: float = eqx.field(static=True)
    minimum: float = eqx.field(static=True)
    short_step: float = eqx.field(static=True)
    long_step: float = eqx.field(static=True)

    def raised(self, now: Regularization) -> Regularization:
        """More: the model was indefinite, or was trusted too far."""
        growth = jnp.maximum(self.factor, now.growth * self.factor)
        return Regularization(jnp.maximum(self.minimum, now.value * growth), growth)

    def lowered(self, now: Regularization) -> Regularization:
        """Less: the model predicts well."""
        growth = jnp.minimum(1 / self.factor, now.growth / self.factor)
        value = now.value * growth
        return Regularization(jnp.where(value < self.minimum, 0, value), growth)

    def after_search(
        self, now: Regularization, accepted: Bool[Array, ""], step_length: Float[Array, ""]
    ) -> Regularization:
        """Raised after a failed search or a short step, lowered after a long one."""
        bad = ~accepted | (step_length < self.short_step)
        good = accepted & (step_length >= self.long_step)
        return tree_where(bad, self.raised(now), tree_where(good, self.lowered(now), now))
