"""Inequalities as a cost that is finite on both sides."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from optdyn._typing import Array, Float


class RelaxedBarrier(eqx.Module):
    """`weight phi(c)` for an inequality `c <= 0`: a logarithm inside, a parabola near and beyond zero.

        phi(c) = -log(-c)                                       for c < -relaxation
        phi(c) = ((c + 2 d)^2 / d^2 - 1) / 2 - log(d)           otherwise, d = relaxation

    It is twice continuously differentiable and convex (Feller and Ebenbauer, 'Relaxed logarithmic barrier
    function based model predictive control of linear systems', 2017). A solution may violate a constraint;
    how far falls with `relaxation`.

    Arguments:
        weight: factor of the cost, in its unit.
        relaxation: distance to the constraint at which the parabola begins, in the unit of `c`.
    """

    weight: Float[Array, ""] | float = 1e-3
    relaxation: Float[Array, ""] | float = 1e-2

    def __check_init__(self):
        for name in ("weight", "relaxation"):
            value = getattr(self, name)
            if isinstance(value, int | float | np.floating) and not value > 0:
                raise ValueError(f"{name} must be positive, got {value}")

    def value(self, c: Float[Array, "*b"]) -> Float[Array, "*b"]:
        """`weight phi(c)`; derivatives of all orders are finite."""
        weight, d, inside, depth, over = self._parts(c)
        return weight * jnp.where(inside, -jnp.log(depth), (over**2 - 1) / 2 - jnp.log(d))

    def slope(self, c: Float[Array, "*b"]) -> Float[Array, "*b"]:
        """First derivative by c."""
        weight, d, inside, depth, over = self._parts(c)
        return weight * jnp.where(inside, 1 / depth, over / d)

    def curvature(self, c: Float[Array, "*b"]) -> Float[Array, "*b"]:
        """Second derivative by c, positive."""
        weight, d, inside, depth, _ = self._parts(c)
        return weight * jnp.where(inside, 1 / depth**2, 1 / d**2)

    def _parts(self, c: Array):
        weight, d = jnp.asarray(self.weight).astype(c.dtype), jnp.asarray(self.relaxation).astype(c.dtype)
        inside = c < -d
        # Both branches are evaluated: the logarithm must not see what is not its own.
        return weight, d, inside, jnp.where(inside, -c, 1), (jnp.where(inside, -d, c) + 2 * d) / d
