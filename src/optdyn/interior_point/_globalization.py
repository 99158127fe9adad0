"""Step length: fraction to the boundary, then a filter on two measures.

Why a filter and not a merit function: the direction of a predictor-corrector aims at a moving target on the
central path, so it is a descent direction for neither the residual at the final kappa nor the one at the
target alone. What it does promise is that the equations (E, S - s) shrink by 1 - alpha and that s o z moves
towards the target. A step is taken when, compared with *every* earlier iterate, it improves one of the two
(Fletcher and Leyffer, 'Nonlinear programming without a penalty function', 2002; Ulbrich, Ulbrich and
Vicente, 2004, for the primal-dual form). No penalty weight has to be chosen, and cycling is excluded because
no iterate may be dominated by an earlier one.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._tree import stop_gradient
from optdyn._typing import Array, Bool, Float
from optdyn.interior_point._newton_system import Direction
from optdyn.interior_point._state import PrimalDualPoint, Violations
from optdyn.interior_point._termination import violations
from optdyn.programs import AbstractSystem

_SUFFICIENT = 1e-4  # share of the predicted decrease that is asked for


class Trial(eqx.Module):
    """A candidate for the next iterate: point + step_length * direction."""

    point: PrimalDualPoint
    E: Float[Array, " n"]
    S: Float[Array, " m"]
    violations: Violations
    step_length: Float[Array, ""]
    accepted: Bool[Array, ""]


def measures(v: Violations) -> Float[Array, " 2"]:
    """The two entries of the filter."""
    return jnp.stack([jnp.maximum(v.equations, v.slack), v.complementarity])


def advance(point: PrimalDualPoint, step: Direction, step_length: Array) -> PrimalDualPoint:
    """`point + step_length * step`."""
    return PrimalDualPoint(
        w=point.w + step_length * step.w, z=point.z + step_length * step.z, s=point.s + step_length * step.s
    )


def line_search(
    system: AbstractSystem,
    point: PrimalDualPoint,
    step: Direction,
    longest: Array,
    filter: Float[Array, "k 2"],
    central_path: Array,
    max_backtracks: int,
) -> Trial:
    """Halve the step until the filter accepts; the last trial comes back unaccepted when none does.

    The search is a decision, not a function: nothing in it is differentiated (`UnrolledAdjoint` treats the
    step length as a constant).
    """
    system, point, step, longest, filter = stop_gradient((system, point, step, longest, filter))

    E0, S0 = system.residual(point.w, point.z)
    now = measures(violations(system.cone, point, E0, S0, central_path))
    def attempt(alpha) -> Trial:
        new = advance(point, step, alpha)
        E, S = system.residual(new.w, new.z)
        v = violations(system.cone, new, E, S, central_path)
        measured = measures(v)
        import os
        V=os.environ.get('V','0')
        improves = jnp.any(measured[None] <= (1 - _SUFFICIENT * alpha) * filter, axis=-1)
        if V=='1' and not system.symmetric:
            improves = (measured[0] <= (1 - _SUFFICIENT * alpha) * now[0]) | ((measured[0] <= 1e-9) & improves)
        if V=='2' and not system.symmetric:
            improves = (measured[0] <= jnp.maximum((1 - _SUFFICIENT * alpha) * now[0],1e-2*now[1]))
        if V=='3' and not system.symmetric:
            improves = (measured[0] <= jnp.maximum((1 - .1 * alpha) * now[0],1e-9))
        if V=='5' and not system.symmetric:
            improves = jnp.asarray(True)
        if V=='6' and not system.symmetric:
            improves = improves | (measured[0] <= 10*filter[0,0])
        if V=='7' and not system.symmetric:
            improves = improves | (measured[0] <= filter[0,0])
        if V=='4' and not system.symmetric:
            improves = improves & (measured[0] <= jnp.maximum(1.2 * now[0],1e-9))
        finite = jnp.all(jnp.isfinite(measured))
        accepted = finite & jnp.all(improves)
        return Trial(new, E, S, v, alpha, accepted)

    if system.linear:
        # The equations shrink by 1 - step length exactly: there is nothing to search.
        return eqx.tree_at(lambda t: t.accepted, attempt(longest), jnp.asarray(True))

    def retry(carry):
        trial, tries = carry
        return ~trial.accepted & (tries < max_backtracks)

    def halve(carry):
        trial, tries = carry
        return attempt(trial.step_length / 2), tries + 1

    trial, _ = jax.lax.while_loop(retry, halve, (attempt(longest), jnp.asarray(0)))
    return trial
