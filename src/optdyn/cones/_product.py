"""Cartesian products of cones. The only file that slices cone vectors."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from optdyn._typing import Array, PyTree
from optdyn.cones._base import AbstractCone, same_rank
from optdyn.cones._orthant import NonnegativeOrthant
from optdyn.cones._second_order import SecondOrderCone


class _Group(eqx.Module):
    """`count` equal cones, evaluated in one batched call; `index` are their entries in the product."""

    cone: AbstractCone
    count: int = eqx.field(static=True)
    index: tuple[int, ...] = eqx.field(static=True)

    def take(self, a: Array) -> Array:
        start, stop = self.index[0], self.index[-1] + 1
        if stop - start == len(self.index):
            part = a[..., start:stop]
        else:
            part = a[..., np.asarray(self.index)]
        if self.count == 1:
            return part
        return part.reshape(*a.shape[:-1], self.count, self.cone.dim)


class ProductCone(AbstractCone):
    """`K_1 x ... x K_k` with the entries of the blocks one after the other.

    Nested products are flattened, empty blocks dropped, all orthants joined to one and equal second-order
    cones batched; the order of the entries stays the user's.
    """

    dim: int = eqx.field(static=True)
    groups: tuple[_Group, ...]
    inverse: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, *cones: AbstractCone):
        blocks: dict[tuple[str, int], list[int]] = {}
        start = 0
        for cone in _flatten(cones):
            key = ("orthant", 0) if isinstance(cone, NonnegativeOrthant) else ("second_order", cone.dim)
            if cone.dim:
                blocks.setdefault(key, []).extend(range(start, start + cone.dim))
            start += cone.dim
        groups, order = [], []
        for (kind, dim), index in blocks.items():
            if kind == "orthant":
                groups.append(_Group(NonnegativeOrthant(len(index)), 1, tuple(index)))
            else:
                groups.append(_Group(SecondOrderCone(dim), len(index) // dim, tuple(index)))
            order.extend(index)
        self.dim = start
        self.groups = tuple(groups)
        self.inverse = tuple(int(i) for i in np.argsort(np.asarray(order, dtype=int)))

    @property
    def degree(self) -> int:
        return sum(group.count * group.cone.degree for group in self.groups)

    def _map(self, fn: Callable[..., Array], *arrays: Array) -> Array:
        """Apply `fn(group, *parts)` per group and put the parts back in the user's order."""
        if not self.groups:
            return jnp.zeros(jnp.broadcast_shapes(*(a.shape for a in same_rank(*arrays))), arrays[0].dtype)
        parts = []
        for position, group in enumerate(self.groups):
            out = fn(position, group, *(group.take(a) for a in arrays))
            if group.count > 1:
                out = out.reshape(*out.shape[:-2], -1)
            parts.append(out)
        if len(parts) == 1:
            return parts[0]
        joined = jnp.concatenate(parts, axis=-1)
        if self.inverse == tuple(range(self.dim)):
            return joined
        return joined[..., np.asarray(self.inverse)]

    def _min(self, fn: Callable[..., Array], *arrays: Array) -> Array:
        shape = jnp.broadcast_shapes(*(a.shape[:-1] for a in arrays))
        out = jnp.full(shape, jnp.inf, arrays[0].dtype)
        for group in self.groups:
            value = fn(group.cone, *(group.take(a) for a in arrays))
            out = jnp.minimum(out, value if group.count == 1 else jnp.min(value, axis=-1))
        return out

    def identity(self, dtype) -> Array:
        def unit(_, group, part):
            return jnp.broadcast_to(group.cone.identity(dtype), part.shape)

        return self._map(unit, jnp.zeros(self.dim, dtype))

    def product(self, a: Array, b: Array) -> Array:
        return self._map(lambda _, g, x, y: g.cone.product(x, y), a, b)

    def divide(self, a: Array, b: Array) -> Array:
        return self._map(lambda _, g, x, y: g.cone.divide(x, y), a, b)

    def min_eigenvalue(self, a: Array) -> Array:
        return self._min(lambda cone, x: cone.min_eigenvalue(x), a)

    def max_step(self, a: Array, direction: Array) -> Array:
        return self._min(lambda cone, x, d: cone.max_step(x, d), a, direction)

    def scaling(self, s: Array, z: Array) -> PyTree:
        return tuple(g.cone.scaling(g.take(s), g.take(z)) for g in self.groups)

    def scale(self, scaling: PyTree, a: Array) -> Array:
        return self._map(lambda i, g, x: g.cone.scale(scaling[i], x), a)

    def unscale(self, scaling: PyTree, a: Array) -> Array:
        return self._map(lambda i, g, x: g.cone.unscale(scaling[i], x), a)

    def scale_twice(self, scaling: PyTree, a: Array) -> Array:
        return self._map(lambda i, g, x: g.cone.scale_twice(scaling[i], x), a)

    def unscale_twice(self, scaling: PyTree, a: Array) -> Array:
        return self._map(lambda i, g, x: g.cone.unscale_twice(scaling[i], x), a)


def _flatten(cones: Sequence[AbstractCone]) -> list[AbstractCone]:
    flat = []
    for cone in cones:
        if isinstance(cone, ProductCone):
            flat.extend(_blocks(cone))
        else:
            flat.append(cone)
    return flat


def _blocks(product: ProductCone) -> list[AbstractCone]:
    """The blocks of a product in the order of their entries (orthants come back as half lines)."""
    owner: dict[int, AbstractCone] = {}
    for group in product.groups:
        size = 1 if isinstance(group.cone, NonnegativeOrthant) else group.cone.dim
        block = NonnegativeOrthant(1) if isinstance(group.cone, NonnegativeOrthant) else group.cone
        for first in range(0, len(group.index), size):
            owner[group.index[first]] = block
    return [owner[start] for start in sorted(owner)]
