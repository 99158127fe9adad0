"""Derivatives of the contact solve by the implicit function theorem, for reverse and for forward mode.

At the solution r(a; theta) = 0, so with H = dr/da

    da = -H^-1 (dr/dtheta) dtheta        theta_bar = -(dr/dtheta)' H^-1 a_bar

How the solution was found is of no importance; nothing of the solver's iterations is kept. What reverse mode
saves is (theta, a).
"""

import functools
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._typing import Array, Float
from optdyn.mjx._residual import Layout, Terms, curvature, hessian, residual


class ImplicitSolve(eqx.Module):
    """How derivatives of the contact solve are computed.

    Arguments:
        mode: "reverse" (`jax.custom_vjp`: `grad`, `vjp`, `jacrev`; saves least) or "forward"
            (`jax.custom_jvp`: `jvp`, `jacfwd`, and reverse mode as well, which then saves the factor).
        linear_solve: "cholesky" of the dense H, or "cg", conjugate gradients with products by H only; with
            mode "forward", "cg" has no reverse mode (JAX cannot transpose it).
        refinements: steps of iterative refinement after the Cholesky solve.
        cg_tol: relative tolerance of "cg".
    """

    mode: Literal["reverse", "forward"] = eqx.field(static=True, default="reverse")
    linear_solve: Literal["cholesky", "cg"] = eqx.field(static=True, default="cholesky")
    refinements: int = eqx.field(static=True, default=1)
    cg_tol: float = eqx.field(static=True, default=1e-12)

    def __check_init__(self):
        if self.mode not in ("reverse", "forward"):
            raise ValueError(f"mode must be 'reverse' or 'forward', got {self.mode!r}")
        if self.linear_solve not in ("cholesky", "cg"):
            raise ValueError(f"linear_solve must be 'cholesky' or 'cg', got {self.linear_solve!r}")
        if self.refinements < 0:
            raise ValueError(f"refinements must be >= 0, got {self.refinements}")

    def attach(self, layout: Layout, terms: Terms, solution: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """`solution`, as the function of `terms` that r(solution; terms) = 0 makes it."""
        solution = jax.lax.stop_gradient(solution)
        if self.mode == "forward":
            return _forward(self, layout, terms, solution)
        return _reverse(self, layout, terms, solution)

    def _inverse_product(self, layout: Layout, terms: Terms, a: Array, b: Array) -> Array:
        """H^-1 b."""

        def product(v):
            pulled = curvature(layout, a, terms, (terms.jacobian @ v)[:, None])[:, 0]
            return layout.dense(terms.inertia) @ v + terms.jacobian.T @ pulled

        if self.linear_solve == "cg":
            scale = 1 / jnp.diagonal(layout.dense(terms.inertia))
            limit = 10 * a.size
            return jax.scipy.sparse.linalg.cg(
                product, b, tol=self.cg_tol, maxiter=limit, M=lambda v: scale * v
            )[0]
        # Units of joints differ; with a unit diagonal the factor loses fewer digits (most in 32-bit).
        H = hessian(layout, a, terms)
        scale = jax.lax.rsqrt(jnp.diagonal(H))
        scaled = (H + H.T) / 2 * scale[:, None] * scale[None, :]
        factor = jax.scipy.linalg.cho_factor(scaled)

        def solve(b):
            return scale * jax.scipy.linalg.cho_solve(factor, scale * b)

        v = solve(b)
        for _ in range(self.refinements):
            v += solve(b - product(v))
        return v


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _forward(rule: ImplicitSolve, layout: Layout, terms: Terms, solution: Array) -> Array:
    return solution


@_forward.defjvp
def _forward_rule(rule, layout, primals, tangents):
    terms, solution = primals
    a = _forward(rule, layout, terms, solution)
    change = jax.jvp(lambda theta: residual(layout, a, theta), (terms,), (tangents[0],))[1]
    return a, -rule._inverse_product(layout, terms, a, change)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _reverse(rule: ImplicitSolve, layout: Layout, terms: Terms, solution: Array) -> Array:
    return solution


def _reverse_forward(rule, layout, terms, solution):
    return solution, (terms, solution)


def _reverse_backward(rule, layout, saved, cotangent):
    terms, a = saved
    v = rule._inverse_product(layout, terms, a, cotangent)
    _, pull = jax.vjp(lambda theta: residual(layout, a, theta), terms)
    return pull(-v)[0], jnp.zeros_like(a)


_reverse.defvjp(_reverse_forward, _reverse_backward)
