"""When to stop, and with which result."""

import jax.numpy as jnp

from optdyn._results import RESULTS
from optdyn._tree import max_abs
from optdyn._typing import Array, Bool
from optdyn.cones import AbstractCone
from optdyn.interior_point._initialization import push_inside
from optdyn.interior_point._newton_system import Direction
from optdyn.interior_point._state import Certificate, PrimalDualPoint, Violations
from optdyn.programs import AbstractSystem, Jacobian

# Multiple of machine epsilon, times the size of the terms of a row, below which a residual is rounding.
_ROUNDING = 32
# ... up to this multiple of the tolerance: an iterate that runs away must not be excused by its own size.
_LARGEST_ALLOWANCE = 1000


def violations(
    cone: AbstractCone, point: PrimalDualPoint, E: Array, S: Array, central_path: Array
) -> Violations:
    """Residual of the central-path equations, by group."""
    gap = cone.product(point.s, point.z) - central_path * cone.identity(point.z.dtype)
    return Violations(equations=max_abs(E), slack=max_abs(S - point.s), complementarity=max_abs(gap))


def is_converged(
    cone: AbstractCone,
    point: PrimalDualPoint,
    E: Array,
    S: Array,
    jacobian: Jacobian,
    central_path: Array,
    tol: float,
) -> Bool[Array, ""]:
    """Every row within `tol`, or within the rounding of its own terms where the data is large.

    The complementarity rows must be a small fraction of `central_path` as well: a point is on the central
    path when s o z equals kappa e, not when both are merely small.
    """
    eps = _ROUNDING * jnp.finfo(E.dtype).eps

    def within(residual, size):
        return jnp.all(jnp.abs(residual) <= tol + jnp.minimum(eps * size, _LARGEST_ALLOWANCE * tol))

    w, z, s = jnp.abs(point.w), jnp.abs(point.z), jnp.abs(point.s)
    E_size = jnp.abs(jacobian.E_w) @ w + jnp.abs(jacobian.E_z) @ z
    S_size = jnp.abs(jacobian.S_w) @ w + s
    gap = cone.product(point.s, point.z) - central_path * cone.identity(E.dtype)
    gap_tol = jnp.minimum(tol, 1e-3 * central_path) + eps * cone.product(s, z)
    return within(E, E_size) & within(S - point.s, S_size) & jnp.all(jnp.abs(gap) <= gap_tol)


def certificate(
    system: AbstractSystem,
    point: PrimalDualPoint,
    jacobian: Jacobian,
    step: Direction,
    tol: float,
    margin: float,
) -> tuple[Bool[Array, ""], Bool[Array, ""], Certificate]:
    """Whether the Newton step proves that the program is infeasible, or unbounded (both False otherwise).

    Without a solution the iterates grow along a ray that is a certificate (Farkas' lemma and its dual), but
    only by a factor or two per step. The full Newton step points along the same ray and is far longer, so
    it is what gets tested. For a program that is not convex, infeasible means that its linearization is;
    unbounded is claimed for linear systems only, as no linearization can show it.

    `tol` is relative; `margin` is the violation that still counts as feasible.
    """
    n = system.num_primal
    H, G, J = jacobian.E_w[:n, :n], jacobian.E_w[n:, :n], jacobian.S_w[:, :n]
    g, h = jacobian.E[n:], jacobian.S
    x, y, z = point.w[:n], point.w[n:] + step.w[n:], point.z + step.z
    gradient = jacobian.E[:n] - G.T @ point.w[n:] + J.T @ point.z

    # y'(g + G d) - z'(h + J d) > 0 with z in K: no d can make both constraints hold.
    z = push_inside(system.cone, z, jnp.zeros((), z.dtype))
    value = y @ g - z @ h
    slope = max_abs(G.T @ y - J.T @ z)
    size = jnp.maximum(max_abs(y), max_abs(z))
    infeasible = (
        (value > margin * (jnp.sum(jnp.abs(y)) + jnp.sum(jnp.abs(z))))
        & (slope * (1 + max_abs(x)) <= tol * value)
        & (slope <= tol * size * jnp.maximum(max_abs(G), max_abs(J)))
    )

    # Every part relative to its own matrix as well, so that no scaling of the data makes a steep slope look
    # like a ray.
    ray = x + step.w[:n]
    length = max_abs(ray)
    descent = -(gradient @ ray - x @ (H @ ray))
    bend = max_abs(H @ ray)
    unbounded = (
        jnp.asarray(system.linear)
        & (descent > 0)
        & (bend <= tol * descent)
        & (bend <= tol * max_abs(H) * length)
        & (max_abs(G @ ray) <= tol * max_abs(G) * length)
        & (system.cone.violation(J @ ray) <= tol * max_abs(J) * length)
    )

    scale_dual = jnp.where(infeasible, 1 / jnp.where(infeasible, value, 1), 0)
    scale_ray = jnp.where(unbounded, 1 / jnp.where(unbounded, descent, 1), 0)
    return infeasible, unbounded, Certificate(ray * scale_ray, y * scale_dual, z * scale_dual)


def first_failure(*cases: tuple[Bool[Array, ""], RESULTS]) -> RESULTS:
    """The member of the first case that holds; `successful` when none does."""
    result = RESULTS.successful
    for condition, member in reversed(cases):
        result = RESULTS.where(condition, member, result)
    return result
