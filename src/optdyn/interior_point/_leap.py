"""Escape from folds of complementarity systems.

The equations of a large contact motion can have a fold between the start and the solution: their residual
has a local minimum at an interior point, while the solution lies beyond, at the boundary of the cone (a
joint that is thrown from one stop to the other within a step). No descent method crosses it, and the
central path itself may turn back there. What crosses it is inertia: a solve that is blocked goes on in the
direction in which it has moved so far, most of the way to the boundary, and starts afresh from there.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._tree import tree_where
from optdyn._typing import Array, Bool
from optdyn.interior_point._globalization import Trial
from optdyn.interior_point._initialization import push_inside
from optdyn.interior_point._state import IterationState, PrimalDualPoint
from optdyn.programs import AbstractSystem

MOST_LEAPS = 3  # per solve; each starts from where the solve got blocked
_SHORT = 0.3  # a step below this length means that the solve is blocked
_REACH = 0.9  # part of the way to the boundary
_MARGIN = 1e-3  # smallest eigenvalue of the new slack


def can_leap(system: AbstractSystem) -> bool:
    """Programs have their own safeguard, the inertia of the Hessian."""
    return not system.symmetric and system.cone.degree > 0 and system.num_primal > 0


def is_blocked(state: IterationState, trial: Trial) -> Bool[Array, ""]:
    """Whether a step was short, or was not found at all, and a leap is left."""
    return (~trial.accepted | (trial.step_length < _SHORT)) & (state.leaps < MOST_LEAPS)


def leap(system: AbstractSystem, state: IterationState) -> IterationState:
    """Along the displacement since the start; s o z = e there, as in a cold start.

    Nothing is evaluated at the new point yet.
    """
    cone, point = system.cone, state.point
    margin = jnp.asarray(_MARGIN, point.w.dtype)
    moved = point.w - state.start
    (_, slack), (_, change) = jax.jvp(lambda w: system.residual(w, point.z), (point.w,), (moved,))
    reach = cone.max_step(push_inside(cone, slack, margin), change)
    ahead = jnp.isfinite(reach)

    w = point.w + jnp.where(ahead, _REACH * reach, 0) * moved
    s = push_inside(cone, system.residual(w, point.z)[1], margin)
    fresh = PrimalDualPoint(w, cone.divide(s, cone.identity(s.dtype)), s)
    return eqx.tree_at(
        lambda t: (t.point, t.leaps, t.blocked),
        state,
        (tree_where(ahead, fresh, point), state.leaps + 1, jnp.asarray(False)),
    )
