"""Factorizations against NumPy: solves, transposed solves, inertia, singular matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optdyn.interior_point._factorization import factor_general, factor_symmetric

SIZES = [0, 1, 2, 3, 4, 7, 16, 17]


@jax.jit
def solve_general(matrix, rhs):
    factor = factor_general(matrix)
    return factor.solve(rhs), factor.solve_transpose(rhs)


@pytest.mark.parametrize("n", SIZES)
def test_general(n, rng):
    matrix, rhs = rng.normal(size=(n, n)), rng.normal(size=n)
    matrix[range(n), range(n)] *= 1e-3  # pivoting is needed
    x, x_transpose = solve_general(matrix, rhs)
    np.testing.assert_allclose(matrix @ x, rhs, atol=1e-8)
    np.testing.assert_allclose(matrix.T @ x_transpose, rhs, atol=1e-8)


@pytest.mark.parametrize("n", [2, 4, 17])
def test_singular_matrix_has_no_finite_solution(n):
    x, _ = solve_general(np.ones((n, n)), np.arange(n) + 1.0)
    assert not np.isfinite(x).all()


@pytest.mark.parametrize("n", [n for n in SIZES if n > 1])
def test_symmetric_with_its_inertia(n, rng):
    n_plus = n // 2
    root = rng.normal(size=(n_plus, n_plus))
    matrix = np.zeros((n, n))
    matrix[:n_plus, :n_plus] = root @ root.T + np.eye(n_plus)
    matrix[n_plus:, :n_plus] = rng.normal(size=(n - n_plus, n_plus))
    matrix = np.tril(matrix) + np.tril(matrix, -1).T
    matrix[range(n_plus, n), range(n_plus, n)] = -0.1
    rhs = rng.normal(size=n)
    factor = jax.jit(factor_symmetric, static_argnums=(1, 2))(jnp.asarray(matrix), n_plus, 1e-13)
    assert bool(factor.right_inertia)
    np.testing.assert_allclose(matrix @ jax.jit(type(factor).solve)(factor, rhs), rhs, atol=1e-8)
    wrong = jax.jit(factor_symmetric, static_argnums=(1, 2))(jnp.asarray(-matrix), n_plus, 1e-13)
    assert not bool(wrong.right_inertia)


def test_small_factorizations_fit_into_one_kernel():
    from optdyn._kernel import single_kernel

    lowered = jax.jit(lambda m, b: single_kernel(lambda m, b: solve_general(m, b)[1], m, b)).lower(
        jnp.eye(8), jnp.ones(8)
    )
    assert "xla_cpu_small_call" in lowered.as_text()
