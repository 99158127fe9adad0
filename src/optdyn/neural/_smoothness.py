"""Bounds of a network from the bounds of its layers, in log space, and what exceeding a budget costs.

With the layer constants c_1 .. c_L ('Learning Legged MPC with Smooth Neural Surrogates', 2026, section IV):

    sensitivity   g = prod_l c_l
    curvature     j = g sum_m prod_{l<=m} c_l

g bounds the Lipschitz constant, j that of the Jacobian, both in the maximum norm, if |activation'| <= 1 and
|activation''| <= 1. Wide networks start at j = 1e12 and more, so the products are sums of logarithms here.
"""

import math

import jax
import jax.numpy as jnp

from optdyn._typing import Array, Float

# Beyond this logarithm of (bound / budget) the penalty goes on as a straight line: exp must not overflow.
_LINEAR_FROM = 60.0


def log_sensitivity(log_constants: Float[Array, " L"]) -> Float[Array, ""]:
    """Log g."""
    return jnp.sum(log_constants)


def log_curvature(log_constants: Float[Array, " L"]) -> Float[Array, ""]:
    """Log j."""
    return jnp.sum(log_constants) + jax.nn.logsumexp(jnp.cumsum(log_constants))


def curvature_budget(budget: float, layers: int) -> float:
    """The j of `layers` equal layers with g = `budget`."""
    c = budget ** (1 / layers)
    return budget * sum(c**m for m in range(1, layers + 1))


def excess(log_bound: Float[Array, ""], budget: float) -> Float[Array, ""]:
    """max(0, bound / budget - 1), finite for every bound."""
    y = log_bound - math.log(budget)
    inside = jnp.minimum(y, _LINEAR_FROM)
    value = jnp.exp(inside) * (1 + (y - inside)) - 1
    return jnp.maximum(value, 0)


def log_certified(
    log_norms: Float[Array, " L"], slope: float, curvature: float
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """(log a_L, log d_L): Lipschitz constants of the network and of its Jacobian, in the norm of `log_norms`.

    With a_1 = c_1, d_1 = 0:  a_{k+1} = c_{k+1} s_1 a_k,  d_{k+1} = c_{k+1} (s_2 a_k^2 + s_1 d_k),  where
    s_1 and s_2 bound the slope and the curvature of the activation.
    """
    log_slope, log_curv = math.log(slope), math.log(curvature)
    a, d = log_norms[0], jnp.full_like(log_norms[0], -jnp.inf)
    for c in log_norms[1:]:
        a, d = c + log_slope + a, c + jnp.logaddexp(log_curv + 2 * a, log_slope + d)
    return a, d
