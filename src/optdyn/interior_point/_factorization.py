"""Dense factorizations of the condensed Newton matrix. Linear algebra only."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx

from optdyn._typing import Array, Bool, Float, Int

# Up to these sizes the loops over columns are written out: XLA fuses them to a handful of kernels, where a
# LAPACK call costs about a microsecond each and a rolled loop one kernel launch per column.
_UNROLLED_LDL = 6
_CLOSED_FORM_INVERSE = 3
# Up to this size our own LU, whose loops can be part of one CPU kernel (see `_kernel`), beats a LAPACK call,
# which cannot.
_OWN_LU = 16


def coarse_regularization(dtype) -> float:
    """Relative size of replaced pivots where a redundant row matters more than the last digits.

    For starts and for derivatives; the iterations themselves use `InteriorPoint.regularization`.
    """
    return 1e-8 if jnp.finfo(dtype).bits >= 64 else 1e-4


class AbstractFactor(eqx.Module):
    """A factored square matrix: factor once, solve many times, transposed if asked."""

    @abc.abstractmethod
    def solve(self, rhs: Float[Array, " n"]) -> Float[Array, " n"]:
        """`M^-1 rhs`."""

    @abc.abstractmethod
    def solve_transpose(self, rhs: Float[Array, " n"]) -> Float[Array, " n"]:
        """`M^-T rhs`."""


class LDLFactor(AbstractFactor):
    """M = L D L' of a symmetric quasi-definite matrix, without pivoting.

    The signs that the pivots ought to have are known (positive for the decision variables, negative for the
    equality multipliers); by Sylvester's law the pivots then tell whether the matrix has the inertia of a
    minimum (Nocedal and Wright, 'Numerical Optimization', theorem 16.3).
    """

    lower: Float[Array, "n n"]
    pivots: Float[Array, " n"]
    right_inertia: Bool[Array, ""]

    def solve(self, rhs):
        n = rhs.size
        if n <= _UNROLLED_LDL:
            x = list(rhs)
            for j in range(n):
                for i in range(j + 1, n):
                    x[i] = x[i] - self.lower[i, j] * x[j]
            x = [xj / self.pivots[j] for j, xj in enumerate(x)]
            for j in reversed(range(n)):
                for i in range(j):
                    x[i] = x[i] - self.lower[j, i] * x[j]
            return jnp.stack(x) if n else rhs
        x = _solve_lower(self.lower, rhs) / self.pivots
        return _solve_upper(self.lower.T, x)

    def solve_transpose(self, rhs):
        return self.solve(rhs)


class SmallLUFactor(AbstractFactor):
    """P M = L U with partial pivoting, for small matrices without structure."""

    packed: Float[Array, "n n"]  # L below the diagonal, U from it on
    order: Int[Array, " n"]  # row i of P M is row order[i] of M

    def solve(self, rhs):
        diagonal = jnp.diagonal(self.packed)
        x = _solve_lower(self.packed, rhs[self.order])
        return _solve_upper(self.packed / diagonal[:, None], x / diagonal)

    def solve_transpose(self, rhs):
        diagonal = jnp.diagonal(self.packed)
        x = _solve_lower((self.packed / diagonal[:, None]).T, rhs) / diagonal
        x = _solve_upper(self.packed.T, x)
        return jnp.sum(jnp.where(self.order[:, None] == jnp.arange(rhs.size)[None], x[:, None], 0), axis=0)


class LUFactor(AbstractFactor):
    """LU with partial pivoting (lineax), for larger matrices without structure."""

    state: Any

    def solve(self, rhs):
        return lx.LU().compute(self.state, rhs, {})[0]

    def solve_transpose(self, rhs):
        state, _ = lx.LU().transpose(self.state, {})
        return lx.LU().compute(state, rhs, {})[0]


class InverseFactor(AbstractFactor):
    """Explicit inverse by cofactors, for n <= 3; the caller's refinement restores the last digits."""

    inverse: Float[Array, "n n"]

    def solve(self, rhs):
        return self.inverse @ rhs

    def solve_transpose(self, rhs):
        return rhs @ self.inverse


def factor_general(matrix: Float[Array, "n n"]) -> AbstractFactor:
    """Factor of a square matrix without structure."""
    n = matrix.shape[0]
    if n <= _CLOSED_FORM_INVERSE:
        return InverseFactor(_small_inverse(matrix))
    if n <= _OWN_LU:
        return _small_lu(matrix)
    operator = lx.MatrixLinearOperator(matrix)
    return LUFactor(lx.LU().init(operator, {}))


def _small_lu(matrix: Float[Array, "n n"]) -> SmallLUFactor:
    index = jnp.arange(matrix.shape[0])

    def column(j, carry):
        packed, order = carry
        best = jnp.argmax(jnp.where(index >= j, jnp.abs(packed[:, j]), -1)).astype(index.dtype)
        swapped = jnp.where(index == j, best, jnp.where(index == best, j, index))
        packed, order = packed[swapped], order[swapped]
        multipliers = jnp.where(index > j, packed[:, j] / packed[j, j], 0)
        rest = packed - multipliers[:, None] * packed[j][None]
        below = (index[:, None] > j) & (index[None] == j)
        return jnp.where(below, multipliers[:, None], jnp.where(index[None] >= j, rest, packed)), order

    packed, order = jax.lax.fori_loop(0, matrix.shape[0], column, (matrix, index))
    return SmallLUFactor(packed, order)


def _solve_lower(lower: Float[Array, "n n"], rhs: Float[Array, " n"]) -> Float[Array, " n"]:
    """`L^-1 rhs`; the diagonal of L counts as 1 and what is above it is not read."""
    rows = jnp.arange(rhs.size)

    def column(j, x):
        return x - jnp.where(rows > j, lower[:, j] * x[j], 0)

    return jax.lax.fori_loop(0, rhs.size, column, rhs)


def _solve_upper(upper: Float[Array, "n n"], rhs: Float[Array, " n"]) -> Float[Array, " n"]:
    """`U^-1 rhs`; the diagonal of U counts as 1 and what is below it is not read."""
    rows, n = jnp.arange(rhs.size), rhs.size

    def column(i, x):
        j = n - 1 - i
        return x - jnp.where(rows < j, upper[:, j] * x[j], 0)

    return jax.lax.fori_loop(0, n, column, rhs)


def factor_symmetric(matrix: Array, num_positive: int, regularization: float) -> LDLFactor:
    """LDL' of a symmetric matrix whose first `num_positive` pivots should be positive, the others negative.

    A pivot that is lost to cancellation (redundant equalities, flat directions) is replaced by
    `regularization` times the size of what cancelled, at least times one, with the expected sign.
    """
    n = matrix.shape[0]
    dtype = matrix.dtype
    signs = jnp.where(jnp.arange(n) < num_positive, 1, -1).astype(dtype)
    lost = jnp.asarray(100 * jnp.finfo(dtype).eps, dtype)

    def pivot(value, magnitude, sign):
        floor = regularization * jnp.maximum(magnitude, 1)
        vanished = sign * value <= lost * jnp.maximum(magnitude, floor)
        # Rounding makes a lost pivot slightly negative; only a clearly negative one speaks of the inertia.
        wrong = sign * value < -jnp.sqrt(lost) * magnitude
        return jnp.where(vanished, sign * floor, value), wrong

    magnitude = jnp.abs(jnp.diagonal(matrix))
    if n <= _UNROLLED_LDL:
        return _unrolled_ldl(matrix, magnitude, signs, pivot)

    def column(j, carry):
        rest, lower, pivots, magnitude, wrong = carry
        d, bad = pivot(rest[j, j], magnitude[j], signs[j])
        l_j = jnp.where(jnp.arange(n) > j, rest[:, j] / d, 0)
        rest = rest - d * jnp.outer(l_j, l_j)
        magnitude = magnitude + l_j**2 * jnp.abs(d)
        lower = lower.at[:, j].set(l_j)
        return rest, lower, pivots.at[j].set(d), magnitude, wrong | bad

    start = (matrix, jnp.zeros_like(matrix), jnp.zeros(n, dtype), magnitude, jnp.asarray(False))
    _, lower, pivots, _, wrong = jax.lax.fori_loop(0, n, column, start)
    return LDLFactor(lower + jnp.eye(n, dtype=dtype), pivots, ~wrong)


def _unrolled_ldl(matrix, magnitude, signs, pivot):
    n = matrix.shape[0]
    rest = [[matrix[i, j] for j in range(n)] for i in range(n)]
    size = [magnitude[i] for i in range(n)]
    zero, one = jnp.zeros((), matrix.dtype), jnp.ones((), matrix.dtype)
    lower = [[one if i == j else zero for j in range(n)] for i in range(n)]
    pivots, wrong = [], jnp.asarray(False)
    for j in range(n):
        d, bad = pivot(rest[j][j], size[j], signs[j])
        wrong = wrong | bad
        pivots.append(d)
        for i in range(j + 1, n):
            lower[i][j] = rest[i][j] / d
            size[i] = size[i] + lower[i][j] ** 2 * jnp.abs(d)
        for i in range(j + 1, n):
            for k in range(j + 1, i + 1):
                rest[i][k] = rest[i][k] - lower[i][j] * lower[k][j] * d
    if n == 0:
        return LDLFactor(matrix, jnp.zeros(0, matrix.dtype), ~wrong)
    return LDLFactor(jnp.stack([jnp.stack(row) for row in lower]), jnp.stack(pivots), ~wrong)


def _small_inverse(a: Float[Array, "n n"]) -> Float[Array, "n n"]:
    n = a.shape[0]
    if n == 0:
        return a
    if n == 1:
        return 1 / a
    if n == 2:
        determinant = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
        return jnp.stack([jnp.stack([a[1, 1], -a[0, 1]]), jnp.stack([-a[1, 0], a[0, 0]])]) / determinant
    rows = jnp.stack([jnp.cross(a[1], a[2]), jnp.cross(a[2], a[0]), jnp.cross(a[0], a[1])])
    return rows.T / jnp.dot(a[0], rows[0])
