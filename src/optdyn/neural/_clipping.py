"""Norms of weight matrices, and weights whose norm is bounded."""

import jax
import jax.numpy as jnp

from optdyn._typing import Array, Float


def row_sum_norm(W: Float[Array, "m n"]) -> Float[Array, ""]:
    """Matrix norm induced by the maximum norm: the largest sum of absolute values of a row."""
    return jnp.max(jnp.sum(jnp.abs(W), axis=1))


def clip_rows(W: Float[Array, "m n"], bound: Float[Array, ""]) -> Float[Array, "m n"]:
    """Rows whose absolute sum exceeds `bound` scaled back to it; the others unchanged.

    Projects every row on its own ('Learning a Lipschitz regularization of neural fields', Liu et al. 2022,
    section 4.1). Values and derivatives are finite for zero rows and for rows that meet the bound exactly.
    """
    sums = jnp.sum(jnp.abs(W), axis=1, keepdims=True)
    too_long = sums > bound
    return W * jnp.where(too_long, bound / jnp.where(too_long, sums, jnp.ones_like(sums)), 1)


@jax.custom_jvp
def spectral_norm(W: Float[Array, "m n"]) -> Float[Array, ""]:
    """Largest singular value, from a full decomposition (a power iteration could be below it).

    Where the largest value is repeated the derivative is the subgradient u v' of one pair of singular
    vectors.
    """
    return jnp.linalg.svd(W, compute_uv=False)[0]


@spectral_norm.defjvp
def _spectral_norm_jvp(primals, tangents):
    (W,), (dW,) = primals, tangents
    U, s, Vt = jnp.linalg.svd(W, full_matrices=False)
    return s[0], U[:, 0] @ dW @ Vt[0]
