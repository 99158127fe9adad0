"""Step length: a filter on two measures.

Why a filter and not a merit function: the direction of a predictor-corrector aims at a moving target on the
central path, so it is a descent direction for neither the residual at the final kappa nor the one at the
target alone. What it does promise is that the equations (E, S - s) shrink by 1 - alpha and that s o z moves
towards the target. A step is taken when, compared with *every* earlier iterate, it improves one of the two
(Fletcher and Leyffer, 'Nonlinear programming without a penalty function', 2002; Ulbrich, Ulbrich and
Vicente, 2004, for the primal-dual form). No penalty weight has to be chosen.

Where the Hessian had to be shifted, the residual measures nothing useful (it has to grow on the way from a
maximum to a minimum), and the step of the convexified model is taken as it is.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._tree import stop_gradient
from optdyn._typing import Array, Bool, Float
from optdyn.interior_point._direction import Aim
from optdyn.interior_point._newton_system import Direction
from optdyn.interior_point._state import IterationState, PrimalDualPoint, Violations
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


def within_tolerance(measured: Float[Array, " 2"], central_path: Array, tol: float) -> Bool[Array, ""]:
    """Whether both measures are small enough for a point on the central path."""
    return (measured[0] <= tol) & (measured[1] <= jnp.minimum(tol, 1e-3 * central_path))


def advance(point: PrimalDualPoint, step: Direction, step_length: Array) -> PrimalDualPoint:
    """`point + step_length * step`."""
    return PrimalDualPoint(
        w=point.w + step_length * step.w, z=point.z + step_length * step.z, s=point.s + step_length * step.s
    )


def line_search(
    system: AbstractSystem,
    state: IterationState,
    aim: Aim,
    convexified: Bool[Array, ""],
    central_path: Array,
    tol: float,
    max_backtracks: int,
) -> Trial:
    """Halve the step until it is acceptable; the last trial comes back unaccepted when none is.

    The search is a decision, not a function: nothing in it is differentiated (`UnrolledAdjoint` treats the
    step length as a constant).
    """
    system, state, aim, convexified = stop_gradient((system, state, aim, convexified))

    def attempt(alpha) -> Trial:
        new = advance(state.point, aim.direction, alpha)
        E, S = system.residual(new.w, new.z)
        v = violations(system.cone, new, E, S, central_path)
        measured = measures(v)
        improves = jnp.any(measured[None] < (1 - _SUFFICIENT * alpha) * state.filter, axis=-1)
        # Within tolerance there may be nothing left to improve but rounding.
        within = within_tolerance(measured, central_path, tol)
        good = jnp.all(improves) | within | convexified
        return Trial(new, E, S, v, alpha, good & jnp.all(jnp.isfinite(measured)))

    if system.linear:
        # The equations shrink by 1 - step length exactly: there is nothing to search.
        only = attempt(aim.longest)
        usable = jnp.all(jnp.isfinite(measures(only.violations)))
        return eqx.tree_at(lambda trial: trial.accepted, only, usable)

    def retry(carry):
        trial, tries = carry
        return ~trial.accepted & (tries <= max_backtracks)

    def halve(carry):
        trial, tries = carry
        return attempt(trial.step_length / 2), tries + 1

    # The loop body is the only place where a trial is compiled: the first one halves twice the longest step.
    E, S = jnp.zeros_like(state.point.w), jnp.zeros_like(state.point.s)
    none = Trial(state.point, E, S, state.violations, 2 * aim.longest, jnp.asarray(False))
    trial, _ = jax.lax.while_loop(retry, halve, (none, jnp.asarray(0)))
    return trial
