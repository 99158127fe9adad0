"""The second-order (Lorentz, ice-cream) cone."""

import equinox as eqx
import jax.numpy as jnp

from optdyn._typing import Array, Float
from optdyn.cones._base import AbstractCone, same_rank


def _dot(a: Array, b: Array) -> Array:
    return jnp.sum(a * b, axis=-1)


def _join(head: Array, tail: Array) -> Array:
    return jnp.concatenate([head[..., None], tail], axis=-1)


def _norm(a: Array) -> Array:
    """Euclidean norm whose derivative at 0 is 0 instead of NaN."""
    squared = _dot(a, a)
    positive = squared > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squared, 1)), 0)


def _determinant(a: Array) -> Array:
    """`a0^2 - |a1|^2`, factored so that it is positive whenever `min_eigenvalue` is."""
    norm = _norm(a[..., 1:])
    return (a[..., 0] - norm) * (a[..., 0] + norm)


class _Scaling(eqx.Module):
    """W = eta [[w0, w1'], [w1, I + w1 w1' / (1 + w0)]] with w0^2 - |w1|^2 = 1."""

    eta: Float[Array, "*b"]
    w: Float[Array, "*b dim"]


class SecondOrderCone(AbstractCone):
    """`{(a0, a1) : |a1| <= a0}` in R^dim; `a o b = (a'b, a0 b1 + b0 a1)` and e = (1, 0, ..., 0).

    Dimension 1 is the half line, dimension 2 the quadrant turned by 45 degrees.
    """

    dim: int = eqx.field(static=True)

    def __check_init__(self):
        if self.dim < 0:
            raise ValueError(f"a cone has a dimension >= 0, got {self.dim}")

    @property
    def degree(self) -> int:
        return min(self.dim, 1)

    def identity(self, dtype) -> Array:
        return jnp.zeros(self.dim, dtype).at[:1].set(1)

    def product(self, a: Array, b: Array) -> Array:
        a, b = same_rank(a, b)
        if self.dim == 0:
            return a * b
        return _join(_dot(a, b), a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:])

    def divide(self, a: Array, b: Array) -> Array:
        a, b = same_rank(a, b)
        if self.dim == 0:
            return a * b
        a0, a1, b0, b1 = a[..., 0], a[..., 1:], b[..., 0], b[..., 1:]
        x0 = (a0 * b0 - _dot(a1, b1)) / _determinant(a)
        return _join(x0, (b1 - x0[..., None] * a1) / a0[..., None])

    def min_eigenvalue(self, a: Array) -> Array:
        if self.dim == 0:
            return jnp.full(a.shape[:-1], jnp.inf, a.dtype)
        return a[..., 0] - _norm(a[..., 1:])

    def max_step(self, a: Array, direction: Array) -> Array:
        a, direction = same_rank(a, direction)
        if self.dim == 0:
            return jnp.full(jnp.broadcast_shapes(a.shape, direction.shape)[:-1], jnp.inf, a.dtype)
        # With a scaled to the identity by the automorphism that maps a to e, the step to the boundary is
        # the inverse of the most negative eigenvalue of the scaled direction (CVXOPT report, section 8).
        root = jnp.sqrt(_determinant(a))
        a_unit = a / root[..., None]
        rho0 = a_unit[..., 0] * direction[..., 0] - _dot(a_unit[..., 1:], direction[..., 1:])
        factor = (rho0 + direction[..., 0]) / (a_unit[..., 0] + 1)
        rho1 = direction[..., 1:] - factor[..., None] * a_unit[..., 1:]
        most_negative = (rho0 - _norm(rho1)) / root
        blocking = most_negative < 0
        return jnp.where(blocking, -1 / jnp.where(blocking, most_negative, -1), jnp.inf)

    def scaling(self, s: Array, z: Array) -> _Scaling:
        if self.dim == 0:
            return _Scaling(eta=s.sum(-1), w=s)
        det_s, det_z = _determinant(s), _determinant(z)
        s_unit = s / jnp.sqrt(det_s)[..., None]
        z_unit = z / jnp.sqrt(det_z)[..., None]
        gamma = jnp.sqrt((1 + _dot(s_unit, z_unit)) / 2)
        w = _join(s_unit[..., 0] + z_unit[..., 0], s_unit[..., 1:] - z_unit[..., 1:]) / (2 * gamma[..., None])
        # w0^2 - |w1|^2 = 1 only up to rounding, which matters close to the boundary: restore it exactly.
        w = _join(jnp.sqrt(1 + _dot(w[..., 1:], w[..., 1:])), w[..., 1:])
        return _Scaling(eta=jnp.sqrt(jnp.sqrt(det_s / det_z)), w=w)

    def scale(self, scaling: _Scaling, a: Array) -> Array:
        if self.dim == 0:
            return a
        eta, w, a = same_rank(scaling.eta[..., None], scaling.w, a)
        return eta * _apply(w, a)

    def unscale(self, scaling: _Scaling, a: Array) -> Array:
        if self.dim == 0:
            return a
        eta, reflected, a = same_rank(scaling.eta[..., None], _reflect(scaling.w), a)
        return _apply(reflected, a) / eta

    def scale_twice(self, scaling: _Scaling, a: Array) -> Array:
        if self.dim == 0:
            return a
        eta, w, a = same_rank(scaling.eta[..., None], scaling.w, a)
        return eta**2 * _apply_twice(w, a)

    def unscale_twice(self, scaling: _Scaling, a: Array) -> Array:
        if self.dim == 0:
            return a
        eta, reflected, a = same_rank(scaling.eta[..., None], _reflect(scaling.w), a)
        return _apply_twice(reflected, a) / eta**2


def _reflect(a: Array) -> Array:
    return jnp.concatenate([a[..., :1], -a[..., 1:]], axis=-1)


def _apply_twice(w: Array, a: Array) -> Array:
    """`(2 w w' - diag(1, -1, ..., -1)) a`, the square of what `_apply` applies."""
    return 2 * w * jnp.sum(w * a, axis=-1, keepdims=True) - _reflect(a)


def _apply(w: Array, a: Array) -> Array:
    """`[[w0, w1'], [w1, I + w1 w1' / (1 + w0)]] a`."""
    inner = _dot(w[..., 1:], a[..., 1:])
    factor = a[..., 0] + inner / (1 + w[..., 0])
    return _join(w[..., 0] * a[..., 0] + inner, a[..., 1:] + factor[..., None] * w[..., 1:])
