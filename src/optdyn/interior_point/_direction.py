"""Predictor and corrector: where a step aims, and how far the cone lets it go."""

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._typing import Array, Float
from optdyn.interior_point._newton_system import Direction, NewtonSystem
from optdyn.interior_point._state import PrimalDualPoint
from optdyn.programs import AbstractSystem

# The second-order term is dropped where it shortens the step to less than this share of the plain one.
_WORTHWHILE = 0.5


class Aim(eqx.Module):
    """A direction, the longest step along it inside the cone (at most 1), and the target of s o z."""

    direction: Direction
    longest: Float[Array, ""]
    target: Float[Array, ""]


def boundary_step(system: AbstractSystem, point: PrimalDualPoint, step: Direction, fraction: float) -> Array:
    """Largest step in (0, 1] that keeps s and z a `1 - fraction` part away from the boundary."""
    longest = jnp.minimum(system.cone.max_step(point.s, step.s), system.cone.max_step(point.z, step.z))
    return jnp.minimum(1.0, fraction * longest).astype(point.w.dtype)


def predictor_corrector(
    system: AbstractSystem,
    point: PrimalDualPoint,
    newton: NewtonSystem,
    slack_residual: Array,
    kappa: Array,
    fraction: float,
) -> Aim:
    """Mehrotra's step, aimed at kappa instead of at zero.

    The predictor aims at kappa itself. How far the boundary lets it go tells how much centring is needed;
    near the central path it goes all the way and the step is Newton's.

    The second-order term assumes a full step. From a point close to the boundary of a second-order cone it
    can outweigh everything else and block the step for good, while the plain direction goes far: both are
    computed, with one batched solve.
    """
    s, z = point.s, point.z
    if not system.cone.degree:
        direction = newton.direction(s, z, slack_residual, kappa)
        return Aim(direction, boundary_step(system, point, direction, fraction), kappa)
    # Only a measure of how far it goes and of the curvature: no digits are lost by leaving it unrefined.
    predictor = newton.direction(s, z, slack_residual, kappa, refine=False)
    longest = boundary_step(system, point, predictor, fraction)
    mu = jnp.dot(s, z) / system.cone.degree
    target = kappa + (1 - longest) ** 3 * jnp.maximum(mu - kappa, 0)
    correction = newton.second_order(predictor)

    def candidate(correction) -> Aim:
        direction = newton.direction(s, z, slack_residual, target, correction)
        return Aim(direction, boundary_step(system, point, direction, fraction), target)

    both = jax.vmap(candidate)(jnp.stack([correction, jnp.zeros_like(correction)]))
    blocked = both.longest[0] < _WORTHWHILE * both.longest[1]
    return jax.tree.map(lambda pair: jnp.where(blocked, pair[1], pair[0]), both)
