"""The nonnegative orthant."""

import equinox as eqx
import jax.numpy as jnp

from optdyn._typing import Array
from optdyn.cones._base import AbstractCone, same_rank


class NonnegativeOrthant(AbstractCone):
    """`{a : a_i >= 0}`; the Jordan product is elementwise, e is the vector of ones."""

    dim: int = eqx.field(static=True)

    def __check_init__(self):
        if self.dim < 0:
            raise ValueError(f"a cone has a dimension >= 0, got {self.dim}")

    @property
    def degree(self) -> int:
        return self.dim

    def identity(self, dtype) -> Array:
        return jnp.ones(self.dim, dtype)

    def product(self, a: Array, b: Array) -> Array:
        a, b = same_rank(a, b)
        return a * b

    def divide(self, a: Array, b: Array) -> Array:
        a, b = same_rank(a, b)
        return b / a

    def min_eigenvalue(self, a: Array) -> Array:
        return jnp.min(a, axis=-1, initial=jnp.inf)

    def max_step(self, a: Array, direction: Array) -> Array:
        a, direction = same_rank(a, direction)
        blocking = direction < 0
        ratio = -a / jnp.where(blocking, direction, -1)
        return jnp.min(jnp.where(blocking, ratio, jnp.inf), axis=-1, initial=jnp.inf)

    def scaling(self, s: Array, z: Array) -> Array:
        return jnp.sqrt(s / z)

    def scale(self, scaling: Array, a: Array) -> Array:
        scaling, a = same_rank(scaling, a)
        return scaling * a

    def unscale(self, scaling: Array, a: Array) -> Array:
        scaling, a = same_rank(scaling, a)
        return a / scaling

    def scale_twice(self, scaling: Array, a: Array) -> Array:
        return self.scale(scaling * scaling, a)

    def unscale_twice(self, scaling: Array, a: Array) -> Array:
        return self.unscale(scaling * scaling, a)
