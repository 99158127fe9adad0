"""Costs with more structure than a function."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._typing import Array, Float


class ResidualCost(eqx.Module):
    """`loss(residual)`, as a stage cost `residual(x, u, t)` or a terminal cost `residual(x)`.

    `ILQR(hessian="gauss_newton")` and `GaussNewton` use J' (Hessian of the loss) J in place of the exact
    Hessian, which is always positive semidefinite and needs first derivatives of the residual only.

    Arguments:
        residual: returns a vector [k]; weights belong in here, as their square roots.
        loss: `(r) -> scalar`, convex and twice differentiable (None: `1/2 |r|^2`).
    """

    residual: Callable[..., Float[Array, " k"]]
    loss: Callable[[Array], Float[Array, ""]] | None = None

    def __call__(self, *args) -> Float[Array, ""]:
        return self.value(self.residual(*args))

    def value(self, r: Float[Array, " k"]) -> Float[Array, ""]:
        """The loss of a residual."""
        return jnp.sum(r * r) / 2 if self.loss is None else self.loss(r)

    def derivatives(self, r: Float[Array, " k"], J: Float[Array, "k n"]) -> tuple[Array, Array, Array]:
        """Value, gradient and Gauss-Newton Hessian of the loss, where J is the derivative of the residual."""
        if self.loss is None:
            return jnp.sum(r * r) / 2, J.T @ r, J.T @ J
        value, slope = jax.value_and_grad(self.loss)(r)
        return value, J.T @ slope, J.T @ (jax.hessian(self.loss)(r) @ J)


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
        return Quadratic(*cost.derivatives(r, J))
    # One trace gives value, gradient and, pushed forward along the unit vectors, the Hessian.
    (f, gradient), push = jax.linearize(jax.value_and_grad(value), v)
    hessian = jax.vmap(lambda e: push(e)[1])(jnp.eye(v.size, dtype=v.dtype))
    return Quadratic(f, gradient, (hessian + hessian.T) / 2)
