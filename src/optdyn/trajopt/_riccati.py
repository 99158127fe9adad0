"""Backward pass of a linear-quadratic model. Pure linear algebra."""

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._kernel import single_kernel
from optdyn._typing import Array, Bool, Float
from optdyn.interior_point import factor_symmetric
from optdyn.trajopt._objective import StageExpansion

# Up to this size a factorization that can be part of a CPU kernel, LAPACK's beyond.
_OWN_FACTOR = 16


class BackwardPass(eqx.Module):
    """Feedback law and predicted change of the objective."""

    gains: Float[Array, "N nu ndx"]
    feedforward: Float[Array, "N nu"]
    parameter_step: Float[Array, " np"]
    slope: Float[Array, ""]  # sum of Q_u' k: change per unit of step length, <= 0
    value_gradient: Float[Array, " ndx"]  # derivative of the optimal cost by x_0
    value_hessian: Float[Array, "ndx ndx"]
    positive_definite: Bool[Array, ""]  # every Q_uu + regularization I had a Cholesky factor


def backward_pass(
    model: StageExpansion, A: Float[Array, "N ndx ndx"], B: Float[Array, "N ndx nu"], regularization: Array
) -> BackwardPass:
    """Riccati recursion with `regularization` added to the diagonal of Q_uu.

    Cross terms are kept as they are: only Q_uu has to be positive definite for the step to be the minimizer
    (projecting the stage Hessians would change the answer of convex problems).
    """
    nx, nu = B.shape[-2:]

    def stage(carry, knot):
        P, p, slope, ok = carry
        A, B, gradient, hessian = knot
        F = jnp.concatenate([A, B], axis=1)
        q = gradient + F.T @ p
        Q = hessian + F.T @ (P @ F)
        Qxx, Qux, Quu = Q[:nx, :nx], Q[nx:, :nx], Q[nx:, nx:]
        qx, qu = q[:nx], q[nx:]
        solved, definite = solve_positive_definite(
            Quu + regularization * jnp.eye(nu, dtype=Q.dtype), jnp.concatenate([Qux, qu[:, None]], axis=1)
        )
        K, k = -solved[:, :-1], -solved[:, -1]
        # With a regularized gain the value function needs the full form, not Qxx - Qux' Quu^-1 Qux.
        P = Qxx + K.T @ Quu @ K + K.T @ Qux + Qux.T @ K
        p = qx + K.T @ (Quu @ k + qu) + Qux.T @ k
        return ((P + P.T) / 2, p, slope + qu @ k, ok & definite), (K, k)

    terminal, stages = model.terminal, model.stage
    start = (terminal.hessian, terminal.gradient, jnp.zeros((), A.dtype), jnp.asarray(True))
    knots = (A, B, stages.gradient, stages.hessian)

    def recursion(start, knots):
        return jax.lax.scan(stage, start, knots, reverse=True)

    (P, p, slope, ok), (gains, feedforward) = single_kernel(recursion, start, knots)
    step = jnp.zeros(0, A.dtype)
    if model.parameters is not None:
        # Parameters are the control of a stage before the first, which sets the first state.
        own, J = model.parameters.own, model.parameters.tangent
        gradient, hessian = own.gradient + J.T @ p, own.hessian + J.T @ P @ J
        hessian = hessian + regularization * jnp.eye(gradient.size, dtype=A.dtype)
        solved, definite = solve_positive_definite(hessian, gradient[:, None])
        step = -solved[:, 0]
        slope, ok = slope + gradient @ step, ok & definite
    return BackwardPass(gains, feedforward, step, slope, p, P, ok)


def solve_positive_definite(
    matrix: Float[Array, "n n"], rhs: Float[Array, "n k"]
) -> tuple[Float[Array, "n k"], Bool[Array, ""]]:
    """`matrix^-1 rhs` by a Cholesky factorization, and whether there was one."""
    if matrix.shape[0] == 0:
        return rhs, jnp.asarray(True)
    if matrix.shape[0] == 1:
        return rhs / matrix, matrix[0, 0] > 0
    if matrix.shape[0] <= _OWN_FACTOR:
        factor = factor_symmetric(matrix, matrix.shape[0], 0.0)
        return jax.vmap(factor.solve, 1, 1)(rhs), factor.right_inertia & jnp.all(factor.pivots > 0)
    factor = jnp.linalg.cholesky(matrix)
    definite = jnp.all(jnp.isfinite(factor))
    half = jax.scipy.linalg.solve_triangular(factor, rhs, lower=True)
    return jax.scipy.linalg.solve_triangular(factor, half, lower=True, trans=1), definite
