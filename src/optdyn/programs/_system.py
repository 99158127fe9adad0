"""The one form that the interior-point core accepts: find (w, z) with E = 0, s = S, s o z = kappa e."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._tree import TracedFunction
from optdyn._typing import Array, Float
from optdyn.cones import AbstractCone


class Jacobian(eqx.Module):
    """Values and first derivatives of E and S at a point."""

    E: Float[Array, " n"]
    S: Float[Array, " m"]
    E_w: Float[Array, "n n"]
    E_z: Float[Array, "n m"]
    S_w: Float[Array, "m n"]
    S_z: Float[Array, "m m"] | None  # None: S does not depend on z


class AbstractSystem(eqx.Module):
    """E(w, z) and S(w, z) with all parameters bound; the array leaves are what a solution depends on.

    `num_equality` counts the equality multipliers at the end of w. When `symmetric` holds, the system is
    the KKT system of a program: E_w is symmetric and E_z = -S_w'. `convex`: no curvature has to be checked.
    `linear`: E and S are affine in (w, z), so that a Newton step predicts them exactly.
    """

    cone: eqx.AbstractVar[AbstractCone]
    num_primal: eqx.AbstractVar[int]
    num_equality: eqx.AbstractVar[int]
    symmetric: eqx.AbstractVar[bool]
    convex: eqx.AbstractVar[bool]
    linear: eqx.AbstractVar[bool]

    @property
    def size(self) -> int:
        """Length of w."""
        return self.num_primal + self.num_equality

    @abc.abstractmethod
    def residual(self, w: Float[Array, " n"], z: Float[Array, " m"]) -> tuple[Array, Array]:
        """`(E, S)`."""

    @abc.abstractmethod
    def jacobian(self, w: Float[Array, " n"], z: Float[Array, " m"]) -> Jacobian:
        """Values and derivatives together, so that neither is computed twice."""


class ProgramSystem(AbstractSystem):
    """KKT system of a program given by functions: w = (x, y), L = f + y'g - z'h."""

    functions: TracedFunction  # (x) -> (f, g, h)
    cone: AbstractCone
    num_primal: int = eqx.field(static=True)
    num_equality: int = eqx.field(static=True)
    symmetric: bool = eqx.field(static=True, default=True)
    convex: bool = eqx.field(static=True, default=False)
    linear: bool = eqx.field(static=True, default=False)

    def residual(self, w, z):
        x, y = w[: self.num_primal], w[self.num_primal :]
        (f, g, h), pullback = jax.vjp(self.functions, x)
        (gradient,) = pullback((jnp.ones_like(f), y, -z))
        return jnp.concatenate([gradient, g]), h

    def jacobian(self, w, z):
        (E, S), push = jax.linearize(lambda w: self.residual(w, z), w)
        E_w, S_w = jax.vmap(push, out_axes=-1)(jnp.eye(self.size, dtype=w.dtype))
        return Jacobian(E=E, S=S, E_w=E_w, E_z=-S_w.T, S_w=S_w, S_z=None)


class DirectSystem(AbstractSystem):
    """A complementarity system whose E and S the user wrote down."""

    functions: TracedFunction  # (w, z) -> (E, S)
    cone: AbstractCone
    num_primal: int = eqx.field(static=True)
    slack_uses_dual: bool = eqx.field(static=True)
    num_equality: int = eqx.field(static=True, default=0)
    symmetric: bool = eqx.field(static=True, default=False)
    convex: bool = eqx.field(static=True, default=False)
    linear: bool = eqx.field(static=True, default=False)

    def residual(self, w, z):
        return self.functions(w, z)

    def jacobian(self, w, z):
        (E, S), push = jax.linearize(self.functions, w, z)
        n, m = w.size, z.size
        columns = jnp.eye(n + m, dtype=w.dtype)
        E_v, S_v = jax.vmap(lambda v: push(v[:n], v[n:]), out_axes=-1)(columns)
        S_z = S_v[:, n:] if self.slack_uses_dual else None
        return Jacobian(E=E, S=S, E_w=E_v[:, :n], E_z=E_v[:, n:], S_w=S_v[:, :n], S_z=S_z)


class QuadraticSystem(AbstractSystem):
    """KKT system of min 1/2 x'Px + q'x, Ax = b, h - Gx in K, with its constant Jacobian."""

    P: Float[Array, "n n"]
    q: Float[Array, " n"]
    A: Float[Array, "p n"]
    b: Float[Array, " p"]
    G: Float[Array, "m n"]
    h: Float[Array, " m"]
    cone: AbstractCone
    num_primal: int = eqx.field(static=True)
    num_equality: int = eqx.field(static=True)
    symmetric: bool = eqx.field(static=True, default=True)
    convex: bool = eqx.field(static=True, default=True)
    linear: bool = eqx.field(static=True, default=True)

    def residual(self, w, z):
        x, y = w[: self.num_primal], w[self.num_primal :]
        stationarity = self.P @ x + self.q + self.A.T @ y + self.G.T @ z
        return jnp.concatenate([stationarity, self.A @ x - self.b]), self.h - self.G @ x

    def jacobian(self, w, z):
        E, S = self.residual(w, z)
        p = self.num_equality
        E_w = jnp.block([[self.P, self.A.T], [self.A, jnp.zeros((p, p), w.dtype)]])
        S_w = jnp.concatenate([-self.G, jnp.zeros((z.size, p), w.dtype)], axis=1)
        return Jacobian(E=E, S=S, E_w=E_w, E_z=-S_w.T, S_w=S_w, S_z=None)
