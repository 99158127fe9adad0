"""Where states live: vectors with unit quaternions in them, their tangents, and the way there and back."""

import equinox as eqx
import jax.numpy as jnp

from optdyn._typing import Array, Float

# Below this squared angle (rad^2) the series are exact to double precision and the formulas divide by zero.
_SMALL = 1e-3


class StateSpace(eqx.Module):
    """A vector, Euclidean but for the unit quaternions in it.

    A tangent has three coordinates for each quaternion (a rotation vector in the frame of the body, in rad)
    where the state has four, in the same order; all other coordinates are those of the state.

    Arguments:
        quaternions: indices in the state where unit quaternions (w, x, y, z) start, in ascending order.

    Raises:
        ValueError: for indices that are negative, out of order, or closer than four.
    """

    quaternions: tuple[int, ...] = eqx.field(static=True, default=(), converter=tuple)

    def __check_init__(self):
        starts = (-4, *self.quaternions)
        if any(b - a < 4 for a, b in zip(starts, self.quaternions, strict=False)):
            raise ValueError(f"quaternions must start at least four apart, from 0 on, got {self.quaternions}")

    def tangent_dim(self, state_dim: int) -> int:
        """Number of coordinates of a tangent."""
        return state_dim - len(self.quaternions)

    def retract(self, x: Float[Array, " nx"], d: Float[Array, " ndx"]) -> Float[Array, " nx"]:
        """The state reached from `x` along the tangent `d`: x + d, and q * exp(d / 2) for quaternions."""
        if not self.quaternions:
            return x + d
        parts, done = [], 0
        for i, start in enumerate(self.quaternions):
            parts.append(x[done:start] + d[done - i : start - i])
            parts.append(quaternion_product(x[start : start + 4], rotation_exp(d[start - i : start - i + 3])))
            done = start + 4
        parts.append(x[done:] + d[done - len(self.quaternions) :])
        return jnp.concatenate(parts)

    def difference(self, x: Float[Array, " nx"], reference: Float[Array, " nx"]) -> Float[Array, " ndx"]:
        """The tangent d with `retract(reference, d) = x`, rotations at most half a turn."""
        if not self.quaternions:
            return x - reference
        parts, done = [], 0
        for start in self.quaternions:
            parts.append(x[done:start] - reference[done:start])
            there, here = x[start : start + 4], reference[start : start + 4]
            parts.append(rotation_log(quaternion_product(conjugate(here), there)))
            done = start + 4
        parts.append(x[done:] - reference[done:])
        return jnp.concatenate(parts)


def conjugate(q: Float[Array, " 4"]) -> Float[Array, " 4"]:
    """The inverse of a unit quaternion."""
    return jnp.concatenate([q[:1], -q[1:]])


def quaternion_product(p: Float[Array, " 4"], q: Float[Array, " 4"]) -> Float[Array, " 4"]:
    """Hamilton's product, scalar part first: the rotation q, then p."""
    scalar = p[0] * q[0] - jnp.sum(p[1:] * q[1:])
    return jnp.concatenate([scalar[None], p[0] * q[1:] + q[0] * p[1:] + _cross(p[1:], q[1:])])


def rotation_exp(d: Float[Array, " 3"]) -> Float[Array, " 4"]:
    """Unit quaternion of a rotation vector in rad; smooth at zero."""
    square = jnp.sum(d * d)
    small = square < _SMALL
    angle = jnp.sqrt(jnp.where(small, 1, square))
    scalar = jnp.where(small, 1 - square / 8 + square**2 / 384 - square**3 / 46080, jnp.cos(angle / 2))
    series = 0.5 - square / 48 + square**2 / 3840 - square**3 / 645120
    return jnp.concatenate([scalar[None], jnp.where(small, series, jnp.sin(angle / 2) / angle) * d])


def rotation_log(q: Float[Array, " 4"]) -> Float[Array, " 3"]:
    """Rotation vector in rad, at most half a turn, of a unit quaternion; smooth at the identity."""
    q = jnp.where(q[0] < 0, -q, q)
    square = jnp.sum(q[1:] ** 2)
    small = square < _SMALL * q[0] ** 2
    sine = jnp.sqrt(jnp.where(small, 1, square))
    cosine = jnp.where(small, q[0], 1)  # not zero where it divides
    ratio = square / cosine**2
    series = 2 / cosine * (1 - ratio / 3 + ratio**2 / 5 - ratio**3 / 7 + ratio**4 / 9)
    return jnp.where(small, series, 2 * jnp.arctan2(sine, q[0]) / sine) * q[1:]


def _cross(a: Array, b: Array) -> Array:
    return jnp.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
