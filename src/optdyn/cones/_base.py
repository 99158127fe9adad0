"""What a solver needs to know of a symmetric cone, and nothing of any program."""

import abc

import equinox as eqx

from optdyn._typing import Array, Bool, Float, PyTree


def same_rank(*arrays: Array) -> tuple[Array, ...]:
    """Leading axes of length 1 wherever one array has fewer axes than another (explicit broadcasting)."""
    rank = max(a.ndim for a in arrays)
    return tuple(a.reshape((1,) * (rank - a.ndim) + a.shape) for a in arrays)


class AbstractCone(eqx.Module):
    """A symmetric (self-dual, homogeneous) cone K in R^dim with its Jordan algebra.

    All methods act on the last axis and broadcast over leading axes, so one call serves a single vector,
    the columns of a Jacobian and a batch of equal cones. Cones hold no arrays; they are static.

    Source of the algebra: Alizadeh and Goldfarb, 'Second-order cone programming' (2003), sections 4 and 6;
    the scaling is Nesterov and Todd's, in the closed form of Vandenberghe, 'The CVXOPT linear and quadratic
    cone program solvers' (2010), section 4.
    """

    dim: eqx.AbstractVar[int]

    @property
    @abc.abstractmethod
    def degree(self) -> int:
        """Number of complementarity pairs: `<s, z> = degree * kappa` on the central path."""

    @abc.abstractmethod
    def identity(self, dtype) -> Float[Array, " dim"]:
        """The unit e of the Jordan product."""

    @abc.abstractmethod
    def product(self, a: Float[Array, "*b dim"], b: Float[Array, "*b dim"]) -> Float[Array, "*b dim"]:
        """Jordan product `a o b`."""

    @abc.abstractmethod
    def divide(self, a: Float[Array, "*b dim"], b: Float[Array, "*b dim"]) -> Float[Array, "*b dim"]:
        """The x with `a o x = b`, for a in the interior."""

    @abc.abstractmethod
    def min_eigenvalue(self, a: Float[Array, "*b dim"]) -> Float[Array, "*b"]:
        """Smallest spectral value: positive in the interior, zero on the boundary; +inf when dim is 0."""

    @abc.abstractmethod
    def max_step(self, a: Float[Array, "*b dim"], direction: Float[Array, "*b dim"]) -> Float[Array, "*b"]:
        """Distance to the boundary: largest t >= 0 with `a + t direction` in K, for a in the interior.

        +inf when the ray stays inside.
        """

    @abc.abstractmethod
    def scaling(self, s: Float[Array, "*b dim"], z: Float[Array, "*b dim"]) -> PyTree:
        """Nesterov-Todd scaling W of an interior pair: `W z = W^-1 s`."""

    @abc.abstractmethod
    def scale(self, scaling: PyTree, a: Float[Array, "*b dim"]) -> Float[Array, "*b dim"]:
        """`W a`."""

    @abc.abstractmethod
    def unscale(self, scaling: PyTree, a: Float[Array, "*b dim"]) -> Float[Array, "*b dim"]:
        """`W^-1 a`."""

    @abc.abstractmethod
    def scale_twice(self, scaling: PyTree, a: Float[Array, "*b dim"]) -> Float[Array, "*b dim"]:
        """`W W a`, which takes `z` to `s`."""

    @abc.abstractmethod
    def unscale_twice(self, scaling: PyTree, a: Float[Array, "*b dim"]) -> Float[Array, "*b dim"]:
        """`W^-1 W^-1 a`, which takes `s` to `z`."""

    def violation(self, a: Float[Array, "*b dim"]) -> Float[Array, "*b"]:
        """Distance by which `a` is outside of K: `max(0, -min_eigenvalue)`."""
        eigenvalue = self.min_eigenvalue(a)
        return (abs(eigenvalue) - eigenvalue) / 2 if self.dim else 0 * a.sum(-1)

    def contains(self, a: Float[Array, "*b dim"], tol: float = 0.0) -> Bool[Array, "*b"]:
        """Whether `violation(a) <= tol`."""
        return self.violation(a) <= tol
