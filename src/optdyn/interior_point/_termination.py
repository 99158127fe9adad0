"""When to stop, and with which result."""

import jax.numpy as jnp

from optdyn._results import RESULTS
from optdyn._tree import max_abs
from optdyn._typing import Array, Bool
from optdyn.cones import AbstractCone
from optdyn.interior_point._state import Certificate, PrimalDualPoint, Violations
from optdyn.programs import AbstractSystem, Jacobian

# Multiple of machine epsilon, times the size of the terms of a row, below which a residual is rounding.
_ROUNDING = 32


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
    w, z, s = jnp.abs(point.w), jnp.abs(point.z), jnp.abs(point.s)
    E_size = jnp.abs(jacobian.E_w) @ w + jnp.abs(jacobian.E_z) @ z
    S_size = jnp.abs(jacobian.S_w) @ w + s
    equations = jnp.all(jnp.abs(E) <= tol + eps * E_size)
    slack = jnp.all(jnp.abs(S - point.s) <= tol + eps * S_size)
    gap = cone.product(point.s, point.z) - central_path * cone.identity(E.dtype)
    gap_tol = jnp.minimum(tol, 1e-3 * central_path) + eps * cone.product(s, z)
    return equations & slack & jnp.all(jnp.abs(gap) <= gap_tol)


def certificate(
    system: AbstractSystem, point: PrimalDualPoint, jacobian: Jacobian, tol: float
) -> tuple[Bool[Array, ""], Bool[Array, ""], Certificate]:
    """Whether the iterate proves that the program is infeasible, or unbounded (both False otherwise).

    With w, y and z growing along a ray, the iterates themselves become certificates (Farkas' lemma and its
    dual). For a program that is not convex the statement is about its linearization.
    """
    n = system.num_primal
    x, y, z = point.w[:n], point.w[n:], point.z
    H, G, J = jacobian.E_w[:n, :n], jacobian.E_w[n:, :n], jacobian.S_w[:, :n]
    g, h = jacobian.E[n:], jacobian.S
    gradient = jacobian.E[:n] - G.T @ y + J.T @ z

    # y'(g + G d) - z'(h + J d) > 0 for every d is impossible when some d is feasible.
    value = y @ g - z @ h
    size = 1 + max_abs(x)
    slope = max_abs(G.T @ y - J.T @ z)
    spread = max_abs(jnp.abs(G.T) @ jnp.abs(y) + jnp.abs(J.T) @ z)
    infeasible = (value > 0) & (slope * size <= tol * value) & (slope <= tol * spread)

    descent = -(gradient @ x - x @ (H @ x))
    drift = jnp.maximum(max_abs(H @ x), max_abs(G @ x))
    outside = system.cone.violation(J @ x)
    unbounded = (
        (descent > 0) & (jnp.maximum(drift, outside) <= tol * descent) & (max_abs(x) > 1 / jnp.sqrt(tol))
    )

    scale_dual = jnp.where(infeasible, 1 / jnp.where(infeasible, value, 1), 0)
    scale_ray = jnp.where(unbounded, 1 / jnp.where(unbounded, descent, 1), 0)
    return infeasible, unbounded, Certificate(x * scale_ray, y * scale_dual, z * scale_dual)


def first_failure(*cases: tuple[Bool[Array, ""], RESULTS]) -> RESULTS:
    """The member of the first case that holds; `successful` when none does."""
    result = RESULTS.successful
    for condition, member in reversed(cases):
        result = RESULTS.where(condition, member, result)
    return result
