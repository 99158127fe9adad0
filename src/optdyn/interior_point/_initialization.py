"""Where the iterations start."""

import jax.numpy as jnp

from optdyn._typing import Array
from optdyn.cones import AbstractCone
from optdyn.interior_point._factorization import coarse_regularization
from optdyn.interior_point._newton_system import newton_system
from optdyn.interior_point._state import PrimalDualPoint
from optdyn.programs import AbstractSystem


def push_inside(cone: AbstractCone, a: Array, margin: Array) -> Array:
    """`a` moved along the identity until its smallest spectral value is at least `margin`."""
    lift = jnp.maximum(margin - cone.min_eigenvalue(a), 0)
    return a + jnp.where(jnp.isfinite(lift), lift, 0) * cone.identity(a.dtype)


def cold_start(system: AbstractSystem, w: Array, dual_scale: float | Array = 1.0) -> PrimalDualPoint:
    """A start from decision variables alone.

    Programs: one linear solve with W = I gives the multipliers that fit the guess best (for quadratic
    data also w; Vandenberghe, CVXOPT report, section 5.3), then s and z are pushed into the cone.
    Complementarity systems: s = e and z = `dual_scale` e, because the slack of a contact that is about to
    close is no measure of anything; the slack rows close within the first steps.
    """
    cone, guess = system.cone, w
    e = cone.identity(w.dtype)
    if not system.symmetric:
        return PrimalDualPoint(w, dual_scale * e, e)
    n = system.num_primal
    zero = jnp.zeros_like(e)
    w = w.at[n:].set(0)
    jacobian = system.jacobian(w, zero)
    newton = newton_system(system, jacobian, e, e, coarse_regularization(w.dtype), 1)
    # Minimizes the local model plus 1/2 |S|^2: z = -S, by the Newton rows with d = 0 and s = 0.
    dw, z = newton.solve(-jacobian.E, -jacobian.S)
    if system.convex:
        w = w + dw
        s = system.residual(w, zero)[1]
    else:
        w = w.at[n:].set(dw[n:])
        s = jacobian.S
    margin = jnp.ones((), w.dtype)
    # A guess that is not finite must reach the solver as it is, to be reported there.
    w = jnp.where(jnp.isfinite(guess), _finite(w), guess)
    return PrimalDualPoint(w, push_inside(cone, _finite(z), margin), push_inside(cone, _finite(s), margin))


def warm_start(system: AbstractSystem, point: PrimalDualPoint, central_path: Array) -> PrimalDualPoint:
    """A start from an earlier solution: s and z pushed back into the cone, the rest kept.

    The margin keeps s o z within reach of kappa: far smaller eigenvalues would be wrong by orders of
    magnitude after a change of the active set, larger ones would undo the warm start.
    """
    margin = jnp.sqrt(central_path) / 10
    return PrimalDualPoint(
        point.w, push_inside(system.cone, point.z, margin), push_inside(system.cone, point.s, margin)
    )


def _finite(a: Array) -> Array:
    return jnp.where(jnp.isfinite(a), a, 0)
