"""The one formula of the library: derivatives of a central-path point.

On the central path z = kappa s^-1, hence dz = -B ds with B = W^-2 (Nesterov-Todd scaling of the pair).
With  ds = S_w dw + S_z dz + S_theta dtheta  the linearization of E = 0 reads

    [E_w    E_z      ] [dw]     [E_theta  ]
    [B S_w  I + B S_z] [dz] = - [B S_theta] dtheta,

and where S does not depend on z the dual is eliminated:  M dw = -(E_theta - E_z B S_theta) dtheta  with
M = E_w - E_z B S_w. Forward and reverse mode, and the Jacobians of `linearize`, all solve with this matrix.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._typing import Array, Float, PyTree
from optdyn.cones import AbstractCone
from optdyn.interior_point import (
    PrimalDualPoint,
    coarse_regularization,
    condensed_matrix,
    factor_general,
    factor_symmetric,
)
from optdyn.programs import AbstractSystem, Jacobian

_REFINEMENT = 2


class Sensitivity(eqx.Module):
    """Linearized central-path equations at a point: factor once, then any number of right-hand sides."""

    jacobian: Jacobian
    cone: AbstractCone
    scaling: PyTree
    matrix: Float[Array, "k k"]
    symmetric: bool = eqx.field(static=True)
    num_primal: int = eqx.field(static=True)
    regularization: float = eqx.field(static=True)
    differentiable: bool = eqx.field(static=True)

    def forward(self, E_dot: Array, S_dot: Array) -> PrimalDualPoint:
        """(dw, dz, ds) for a change of E and S by `E_dot`, `S_dot` at fixed (w, z)."""
        jac = self.jacobian
        if jac.S_z is None:
            dw = self._solve(-(E_dot - jac.E_z @ self._B(S_dot)))
            dz = -self._B(jac.S_w @ dw + S_dot)
            return PrimalDualPoint(dw, dz, jac.S_w @ dw + S_dot)
        # Rows in the form S_w dw + (S_z + W^2) dz = -S_dot, which stays well scaled.
        v = self._solve(-jnp.concatenate([E_dot, S_dot]))
        dw, dz = v[: E_dot.size], v[E_dot.size :]
        return PrimalDualPoint(dw, dz, jac.S_w @ dw + jac.S_z @ dz + S_dot)

    def reverse(self, cotangent: PrimalDualPoint) -> tuple[Array, Array]:
        """Cotangents of E and S (as functions of the parameters) for a cotangent of the point."""
        jac = self.jacobian
        c_w = cotangent.w + jac.S_w.T @ cotangent.s
        c_z = cotangent.z
        if jac.S_z is None:
            a = self._solve(c_w - jac.S_w.T @ self._B(c_z), transpose=True)
            b = c_z - jac.E_z.T @ a
            return -a, cotangent.s - self._B(b)
        c_z = c_z + jac.S_z.T @ cotangent.s
        ab = self._solve(jnp.concatenate([c_w, c_z]), transpose=True)
        return -ab[: c_w.size], cotangent.s - ab[c_w.size :]

    def _B(self, a: Array) -> Array:
        return self.cone.unscale_twice(self.scaling, a)

    def _solve(self, rhs: Array, transpose: bool = False) -> Array:
        """`M^-1 rhs` or `M^-T rhs`; if asked for, differentiable with respect to M and rhs to any order."""
        matrix = self.matrix.T if transpose else self.matrix

        def solve(rhs, matrix):
            if self.symmetric:
                factor = factor_symmetric(matrix, self.num_primal, self.regularization)
            else:
                factor = factor_general(matrix)
            x = factor.solve(rhs)
            for _ in range(_REFINEMENT):
                x = x + factor.solve(rhs - matrix @ x)
            return x

        if not self.differentiable:
            return solve(rhs, matrix)
        frozen = jax.lax.stop_gradient(matrix)
        return jax.lax.custom_linear_solve(
            lambda x: matrix @ x,
            rhs,
            solve=lambda _, b: solve(b, frozen),
            transpose_solve=lambda _, b: solve(b, frozen.T),
        )


def sensitivity(system: AbstractSystem, point: PrimalDualPoint, differentiable: bool = True) -> Sensitivity:
    """Linearize at a central-path point (at other points the result has no meaning).

    Second derivatives need `differentiable`.
    """
    jacobian = system.jacobian(point.w, point.z)
    scaling = system.cone.scaling(point.s, point.z)
    return Sensitivity(
        jacobian=jacobian,
        cone=system.cone,
        scaling=scaling,
        matrix=condensed_matrix(jacobian, system.cone, scaling),
        symmetric=system.symmetric,
        num_primal=system.num_primal,
        regularization=coarse_regularization(point.w.dtype),
        differentiable=differentiable,
    )
