"""Escape from folds of complementarity systems.

The equations of a large contact motion can have a fold between the start and the solution: their residual
has a local minimum at an interior point, while the solution lies beyond, at the boundary of the cone (a
joint that is thrown from one stop to the other within a step). No descent method crosses it, and the
central path itself may turn back there. What crosses it is inertia: a solve that is blocked goes on in the
direction in which it has moved so far, most of the way to the boundary, and starts afresh from there.
"""

import equinox as eqx
import jax.numpy as jnp

from optdyn._tree import tree_where
from optdyn._typing import Array
from optdyn.interior_point._globalization import measures
from optdyn.interior_point._initialization import push_inside
from optdyn.interior_point._state import IterationState, PrimalDualPoint
from optdyn.interior_point._termination import violations
from optdyn.programs import AbstractSystem, Jacobian

_SHORT = 0.2  # a step below this length counts as short
_PATIENCE = 1  # short steps in a row that make a solve blocked
_REACH = 0.9  # part of the way to the boundary
_MARGIN = 1e-3  # smallest eigenvalue of the new slack


def can_leap(system: AbstractSystem) -> bool:
    """Programs have their own safeguard, the inertia of the Hessian."""
    return not system.symmetric and system.cone.degree > 0 and system.num_primal > 0


def count_short(state: IterationState, step_length: Array, accepted: Array) -> Array:
    """Short steps in a row; a failed line search is as bad as any number of them."""
    return jnp.where(
        accepted & (step_length >= _SHORT), 0, state.short_steps + jnp.where(accepted, 1, _PATIENCE)
    )


def leap_if_blocked(
    system: AbstractSystem, jacobian: Jacobian, state: IterationState, central_path: Array
) -> IterationState:
    """One leap per solve, along the displacement since the start; s o z = e there, as in a cold start."""
    cone, point = system.cone, state.point
    moved = point.w - state.start
    slack = push_inside(cone, system.residual(point.w, point.z)[1], jnp.asarray(_MARGIN, moved.dtype))
    reach = cone.max_step(slack, jacobian.S_w @ moved)
    leap = (state.short_steps >= _PATIENCE) & ~state.leapt & jnp.isfinite(reach) & ~state.done

    w = point.w + jnp.where(leap, _REACH * reach, 0) * moved
    s = push_inside(cone, system.residual(w, point.z)[1], jnp.asarray(_MARGIN, moved.dtype))
    fresh = PrimalDualPoint(w, cone.divide(s, cone.identity(s.dtype)), s)
    E, S = system.residual(fresh.w, fresh.z)
    v = violations(cone, fresh, E, S, central_path)
    filter = jnp.full_like(state.filter, jnp.inf).at[state.steps].set(measures(v))
    return eqx.tree_at(
        lambda t: (t.point, t.violations, t.filter, t.leapt, t.short_steps),
        state,
        (
            tree_where(leap, fresh, point),
            tree_where(leap, v, state.violations),
            jnp.where(leap, filter, state.filter),
            state.leapt | (state.short_steps >= _PATIENCE),
            jnp.where(leap, 0, state.short_steps),
        ),
    )
