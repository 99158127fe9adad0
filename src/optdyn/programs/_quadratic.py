"""Quadratic and conic programs given by their data."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from optdyn._typing import Array, Float, PyTree
from optdyn.cones import AbstractCone, NonnegativeOrthant, ProductCone
from optdyn.programs._program import AbstractProblem
from optdyn.programs._system import QuadraticSystem


class AbstractConicData(AbstractProblem):
    """Common part of the two: fields, checks, and how rows with infinite right-hand side are read."""

    P: eqx.AbstractVar[Float[Array, "n n"]]
    q: eqx.AbstractVar[Float[Array, " n"]]
    A: eqx.AbstractVar[Float[Array, "p n"]]
    b: eqx.AbstractVar[Float[Array, " p"]]
    G: eqx.AbstractVar[Float[Array, "m n"]]
    h: eqx.AbstractVar[Float[Array, " m"]]

    def initial_guess(self, theta: PyTree) -> Array:
        return jnp.zeros_like(self.q)

    def bind(self, theta, primal):
        if jnp.shape(primal) != self.q.shape:
            raise ValueError(f"guess must have the shape of q, {self.q.shape}, got {jnp.shape(primal)}")
        n, p = self.q.size, self.b.size
        absent = _absent_rows(self.h, self.cone)
        # 0 <= 1 in place of g'x <= inf: the row pulls at nothing, and neither does its derivative.
        G = jnp.where(absent[:, None], 0, self.G)
        e = self.cone.identity(self.h.dtype)
        h = jnp.where(absent, e, self.h)
        # Likewise 0 <= -1 in place of g'x <= -inf, so that the solver meets finite numbers and a certificate.
        impossible = jnp.isneginf(self.h)
        G = jnp.where(impossible[:, None], 0, G)
        h = jnp.where(impossible, -jnp.maximum(e, 0), h)
        P = (self.P + self.P.T) / 2
        return QuadraticSystem(
            P=P, q=self.q, A=self.A, b=self.b, G=G, h=h, cone=self.cone, num_primal=n, num_equality=p
        )


class QuadraticProgram(AbstractConicData):
    """`min 1/2 x'Px + q'x  subject to  Ax = b, Gx <= h`.

    Arguments: P [n, n] symmetric positive semidefinite (only its symmetric part counts), q [n], A [p, n],
    b [p], G [m, n], h [m]. Any of the blocks (A, b), (G, h) may be omitted or empty. `h_i = +inf` means that
    row i is absent; `h_i = -inf` makes the program infeasible.
    """

    P: Float[Array, "n n"]
    q: Float[Array, " n"]
    A: Float[Array, "p n"]
    b: Float[Array, " p"]
    G: Float[Array, "m n"]
    h: Float[Array, " m"]
    cone: AbstractCone

    def __init__(self, P, q, A=None, b=None, G=None, h=None):
        self.P, self.q, self.A, self.b, self.G, self.h = _check_data(P, q, A, b, G, h)
        self.cone = NonnegativeOrthant(self.h.size)


class ConicProgram(AbstractConicData):
    """`min 1/2 x'Px + q'x  subject to  Ax = b, h - Gx in cone`; see `QuadraticProgram` for the shapes."""

    P: Float[Array, "n n"]
    q: Float[Array, " n"]
    A: Float[Array, "p n"]
    b: Float[Array, " p"]
    G: Float[Array, "m n"]
    h: Float[Array, " m"]
    cone: AbstractCone

    def __init__(self, P, q, A=None, b=None, G=None, h=None, cone: AbstractCone | None = None):
        self.P, self.q, self.A, self.b, self.G, self.h = _check_data(P, q, A, b, G, h)
        self.cone = NonnegativeOrthant(self.h.size) if cone is None else cone
        if self.cone.dim != self.h.size:
            raise ValueError(f"cone has dimension {self.cone.dim}, but h has {self.h.size} entries")


def _check_data(P, q, A, b, G, h):
    q = _floats(q)
    if q.ndim != 1:
        raise ValueError(f"q must be a vector, got shape {q.shape}")
    n, dtype = q.size, q.dtype
    P = _floats(P, dtype)
    if P.shape != (n, n):
        raise ValueError(f"P must have shape {(n, n)} to match q, got {P.shape}")
    A, b = _check_block("A", "b", A, b, n, dtype)
    G, h = _check_block("G", "h", G, h, n, dtype)
    return P, q, A, b, G, h


def _check_block(matrix_name, vector_name, matrix, vector, n, dtype):
    if (matrix is None) != (vector is None):
        raise ValueError(f"give both {matrix_name} and {vector_name}, or neither")
    if matrix is None:
        return jnp.zeros((0, n), dtype), jnp.zeros(0, dtype)
    matrix, vector = _floats(matrix, dtype), _floats(vector, dtype)
    if vector.ndim != 1:
        raise ValueError(f"{vector_name} must be a vector, got shape {vector.shape}")
    if matrix.size == 0 and vector.size == 0:
        return jnp.zeros((0, n), dtype), vector.reshape(0)
    if matrix.shape != (vector.size, n):
        raise ValueError(
            f"{matrix_name} must have shape {(vector.size, n)} to match {vector_name} and q, "
            f"got {matrix.shape}"
        )
    return matrix, vector


def _floats(value, dtype=None):
    array = jnp.asarray(value)
    if dtype is None:
        dtype = array.dtype if jnp.issubdtype(array.dtype, jnp.floating) else jnp.result_type(float)
    return array.astype(dtype)


def _absent_rows(h: Array, cone: AbstractCone) -> Array:
    """Rows of the orthant with h = +inf, and second-order blocks whose head is +inf (all their rows)."""
    infinite = jnp.isposinf(h)
    product = cone if isinstance(cone, ProductCone) else ProductCone(cone)
    absent = jnp.zeros(h.shape, bool)
    for group in product.groups:
        index = np.asarray(group.index).reshape(-1, 1 if _is_orthant(group.cone) else group.cone.dim)
        absent = absent.at[index].set(jnp.broadcast_to(infinite[index[:, :1]], index.shape))
    return absent


def _is_orthant(cone: AbstractCone) -> bool:
    return isinstance(cone, NonnegativeOrthant)
