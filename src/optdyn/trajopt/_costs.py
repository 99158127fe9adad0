"""Costs with more structure than a function."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._typing import Array, Float


class ResidualCost(eqx.Module):
    """`1/2 |residual|^2`, as a stage cost `residual(x, u, t)` or a terminal cost `residual(x)`.

    `ILQR(hessian="gauss_newton")` uses J'J in place of the exact Hessian, which is always positive
    semidefinite and needs first derivatives only.
    """

    residual: Callable[..., Float[Array, " k"]]

    def __call__(self, *args) -> Float[Array, ""]:
        r = self.residual(*args)
        return jnp.sum(r * r) / 2


class Quadratic(eqx.Module):
    """Second-order expansion in v = (x, u), or v = x for a terminal cost."""

    value: Float[Array, ""]
    gradient: Float[Array, " nv"]
    hessian: Float[Array, "nv nv"]


def expand_cost(cost: Callable, v: Array, split: Callable, gauss_newton: bool) -> Quadratic:
    """Expansion of `cost(*split(v))`; the Gauss-Newton Hessian where the cost has residual structure."""

    def value(v):
        return cost(*split(v))

    if gauss_newton and isinstance(cost, ResidualCost):

        def residual(v):
            r = cost.residual(*split(v))
            return r, r

        J, r = jax.jacfwd(residual, has_aux=True)(v)
        return Quadratic(jnp.sum(r * r) / 2, J.T @ r, J.T @ J)
    # One trace gives value, gradient and, pushed forward along the unit vectors, the Hessian.
    (f, gradient), push = jax.linearize(jax.value_and_grad(value), v)
    hessian = jax.vmap(lambda e: push(e)[1])(jnp.eye(v.size, dtype=v.dtype))
    return Quadratic(f, gradient, (hessian + hessian.T) / 2)
