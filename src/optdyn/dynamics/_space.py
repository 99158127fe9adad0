"""Where states live: vectors with unit quaternions in them, their tangents, and the way there and back."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from optdyn._typing import Array, Float

# Below this squared angle (rad^2) the series are exact to double precision and the formulas divide by zero.
_SMALL = 1e-3
# Products are contractions with constants: few operations, and what has many products compiles faster.
# (p q)_k = sum over i, j of P[k, i, j] p_i q_j
_PRODUCT = np.zeros((4, 4, 4))
_PRODUCT[0] = np.diag([1, -1, -1, -1])
for _k, _i, _j in ((1, 2, 3), (2, 3, 1), (3, 1, 2)):
    _PRODUCT[_k, 0, _k] = _PRODUCT[_k, _k, 0] = _PRODUCT[_k, _i, _j] = 1
    _PRODUCT[_k, _j, _i] = -1
_CONJUGATE = np.array([1.0, -1.0, -1.0, -1.0])
# R_ab = sum over i, j of Q[a, b, i, j] q_i q_j, from q (0, e_b) conj(q).
_ROTATION = np.einsum("amj,j,mib->abij", _PRODUCT[1:], _CONJUGATE, _PRODUCT[:, :, 1:])


class StateSpace(eqx.Module):
    """A vector, Euclidean but for the unit quaternions in it.

    A tangent has three coordinates for each quaternion (a rotation vector in the frame of the body, in rad)
    where the state has four, in the same order; all other coordinates are those of the state.

    Arguments:
        quaternions: indices in the state where unit quaternions (w, x, y, z) start, in ascending order.
        chart: "exponential", or "cayley": the quaternion (1, d/2) / |(1, d/2)| in the place of exp(d / 2).
            They agree to second order; Cayley's has no series at zero and is cheaper, but its d, of length
            2 tan(angle / 2), is no angle.

    Raises:
        ValueError: for indices that are negative, out of order, or closer than four.
    """

    quaternions: tuple[int, ...] = eqx.field(static=True, default=(), converter=tuple)
    chart: Literal["exponential", "cayley"] = eqx.field(static=True, default="exponential")

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
        turn = rotation_exp if self.chart == "exponential" else cayley
        parts, done = [], 0
        for i, start in enumerate(self.quaternions):
            parts.append(x[done:start] + d[done - i : start - i])
            parts.append(quaternion_product(x[start : start + 4], turn(d[start - i : start - i + 3])))
            done = start + 4
        parts.append(x[done:] + d[done - len(self.quaternions) :])
        return jnp.concatenate(parts)

    def difference(self, x: Float[Array, " nx"], reference: Float[Array, " nx"]) -> Float[Array, " ndx"]:
        """The tangent d with `retract(reference, d) = x`, rotations at most half a turn."""
        if not self.quaternions:
            return x - reference
        vector = rotation_log if self.chart == "exponential" else inverse_cayley
        parts, done = [], 0
        for start in self.quaternions:
            parts.append(x[done:start] - reference[done:start])
            there, here = x[start : start + 4], reference[start : start + 4]
            parts.append(vector(quaternion_product(conjugate(here), there)))
            done = start + 4
        parts.append(x[done:] - reference[done:])
        return jnp.concatenate(parts)

    def nudge(self, x: Float[Array, " nx"], d: Float[Array, " ndx"]) -> Float[Array, " nx"]:
        """`retract` to first order in `d`, for derivatives at d = 0 of functions that take any quaternion."""
        parts, done = [], 0
        for i, start in enumerate(self.quaternions):
            q = x[start : start + 4]
            half = jnp.concatenate([jnp.zeros(1, d.dtype), d[start - i : start - i + 3] / 2])
            parts += [x[done:start] + d[done - i : start - i], q + quaternion_product(q, half)]
            done = start + 4
        return jnp.concatenate([*parts, x[done:] + d[done - len(self.quaternions) :]])

    def midpoint(self, a: Float[Array, " nx"], b: Float[Array, " nx"]) -> Float[Array, " nx"]:
        """The state half-way between two, quaternions by half of the rotation (less than half a turn)."""
        parts, done = [], 0
        for start in self.quaternions:
            both = a[start : start + 4] + b[start : start + 4]
            parts += [(a[done:start] + b[done:start]) / 2, both / jnp.sqrt(jnp.sum(both**2))]
            done = start + 4
        return jnp.concatenate([*parts, (a[done:] + b[done:]) / 2])

    def transport(self, a: Float[Array, " nx"], b: Float[Array, " nx"], d: Float[Array, " ndx"]) -> Array:
        """The tangent at `b` that is the same displacement in space as the tangent `d` at `a`.

        Rotation vectors change from one body frame to the other; all else stays. It preserves lengths, so it
        carries momenta and torques as well.
        """
        parts, done = [], 0
        for i, start in enumerate(self.quaternions):
            parts.append(d[done - i : start - i])
            turn = quaternion_product(conjugate(b[start : start + 4]), a[start : start + 4])
            parts.append(rotation_matrix(turn) @ d[start - i : start - i + 3])
            done = start + 4
        return jnp.concatenate([*parts, d[done - len(self.quaternions) :]]) if parts else d


def conjugate(q: Float[Array, " 4"]) -> Float[Array, " 4"]:
    """The inverse of a unit quaternion."""
    return jnp.asarray(_CONJUGATE, q.dtype) * q


def quaternion_product(p: Float[Array, " 4"], q: Float[Array, " 4"]) -> Float[Array, " 4"]:
    """Hamilton's product, scalar part first: the rotation q, then p."""
    return jnp.asarray(_PRODUCT, q.dtype) @ q @ p


def rotation_matrix(q: Float[Array, " 4"]) -> Float[Array, "3 3"]:
    """The rotation of a unit quaternion; its columns are the axes of the body."""
    return jnp.asarray(_ROTATION, q.dtype) @ q @ q


def cayley(d: Float[Array, " 3"]) -> Float[Array, " 4"]:
    """Unit quaternion (1, d/2) / |(1, d/2)|."""
    scalar = 1 / jnp.sqrt(1 + jnp.sum(d * d) / 4)
    return jnp.concatenate([scalar[None], scalar * d / 2])


def inverse_cayley(q: Float[Array, " 4"]) -> Float[Array, " 3"]:
    """The d of `cayley`, of a rotation by less than half a turn."""
    return 2 * q[1:] / q[0]


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
