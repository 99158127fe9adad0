r"""The Newton system of the central path, condensed before it is factored.

Unknowns (dw, dz, ds) of the linearization of E = 0, s = S, s o z = kappa e. With the Nesterov-Todd scaling
W (W z = W^-1 s = lambda) the last row reads  W dz + W^-1 ds = d  with  d = lambda \ (kappa e - lambda o
lambda - correction). The slack goes first, ds = W (d - W dz); where S does not depend on z, the dual goes
next, dz = W^-2 (-r_s + W d - S_w dw); what is factored has the size of w:

    (E_w - E_z W^-2 S_w) dw = -E - E_z W^-2 (W d - r_s).
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._tree import stop_gradient, tree_where
from optdyn._typing import Array, Float, PyTree
from optdyn.cones import AbstractCone
from optdyn.interior_point._factorization import AbstractFactor, LDLFactor, factor_general, factor_symmetric
from optdyn.programs import AbstractSystem, Jacobian


class Direction(eqx.Module):
    """A step (dw, dz, ds)."""

    w: Float[Array, " n"]
    z: Float[Array, " m"]
    s: Float[Array, " m"]


class NewtonSystem(eqx.Module):
    """Factored Newton matrix at an interior point; `shift` was added to the diagonal of the primal part."""

    jacobian: Jacobian
    cone: AbstractCone
    scaling: PyTree
    factor: AbstractFactor
    shift: Float[Array, ""]
    refinement_steps: int = eqx.field(static=True)

    def solve(self, rhs_E: Array, rhs_S: Array, refine: bool = True) -> tuple[Array, Array]:
        """(dw, dz) of  E_w dw + E_z dz = rhs_E,  S_w dw + (S_z + W^2) dz = rhs_S."""
        dw, dz = self._condensed_solve(rhs_E, rhs_S)
        for _ in range(self.refinement_steps if refine else 0):
            left_E, left_S = self._multiply(dw, dz)
            fix_w, fix_z = self._condensed_solve(rhs_E - left_E, rhs_S - left_S)
            dw, dz = dw + fix_w, dz + fix_z
        return dw, dz

    def _condensed_solve(self, rhs_E, rhs_S):
        jac = self.jacobian
        if jac.S_z is not None:
            v = self.factor.solve(jnp.concatenate([rhs_E, rhs_S]))
            return v[: rhs_E.size], v[rhs_E.size :]
        cone, scaling = self.cone, self.scaling
        dw = self.factor.solve(rhs_E - jac.E_z @ cone.unscale_twice(scaling, rhs_S))
        return dw, cone.unscale_twice(scaling, rhs_S - jac.S_w @ dw)

    def _multiply(self, dw, dz):
        jac = self.jacobian
        left_E = jac.E_w @ dw + jac.E_z @ dz
        left_S = jac.S_w @ dw + self.cone.scale_twice(self.scaling, dz)
        if jac.S_z is not None:
            left_S = left_S + jac.S_z @ dz
        return left_E, left_S

    def direction(
        self,
        s: Array,
        z: Array,
        slack_residual: Array,
        target: Array,
        correction: Array | None = None,
        refine: bool = True,
    ) -> Direction:
        """Newton direction towards E = 0, S - s = 0 (now `slack_residual`) and s o z = target e.

        `correction` is a second-order term in scaled variables.
        """
        cone, scaling, jac = self.cone, self.scaling, self.jacobian
        lam = cone.scale(scaling, z)
        rhs = target * cone.identity(z.dtype) - cone.product(lam, lam)
        if correction is not None:
            rhs = rhs - correction
        d = cone.divide(lam, rhs)
        dw, dz = self.solve(-jac.E, cone.scale(scaling, d) - slack_residual, refine)
        return Direction(dw, dz, cone.scale(scaling, d - cone.scale(scaling, dz)))

    def second_order(self, step: Direction) -> Array:
        """`(W^-1 ds) o (W dz)`: what the linearization of the complementarity left out."""
        return self.cone.product(
            self.cone.unscale(self.scaling, step.s), self.cone.scale(self.scaling, step.z)
        )


def condensed_matrix(jacobian: Jacobian, cone: AbstractCone, scaling: PyTree) -> Float[Array, "k k"]:
    """The matrix that is factored: size of w, or of (w, z) where S depends on z."""
    if jacobian.S_z is None:
        # Rows of S_w' are vectors of the cone, so W acts on the last axis of the transpose.
        scaled = cone.unscale_twice(scaling, jacobian.S_w.T)
        return jacobian.E_w - jacobian.E_z @ scaled.T
    eye = jnp.eye(cone.dim, dtype=jacobian.E.dtype)
    square = cone.scale_twice(scaling, eye)
    return jnp.block([[jacobian.E_w, jacobian.E_z], [jacobian.S_w, jacobian.S_z + square]])


def newton_system(
    system: AbstractSystem,
    jacobian: Jacobian,
    s: Array,
    z: Array,
    regularization: float,
    refinement_steps: int,
) -> NewtonSystem:
    """Scale, condense and factor; for programs with the curvature of a minimum."""
    scaling = system.cone.scaling(s, z)
    matrix = condensed_matrix(jacobian, system.cone, scaling)
    shift = jnp.zeros((), matrix.dtype)
    if system.convex:
        factor = factor_symmetric(matrix, system.num_primal, regularization)
    elif system.symmetric:
        factor, shift = _factor_with_right_inertia(matrix, system.num_primal, regularization)
        jacobian = _shifted(jacobian, shift, system.num_primal)
    else:
        factor = factor_general(matrix)
    return NewtonSystem(jacobian, system.cone, scaling, factor, shift, refinement_steps)


def _shifted(jacobian: Jacobian, shift: Array, num_primal: int) -> Jacobian:
    """The refinement must solve the shifted system, otherwise it would undo the shift."""
    diagonal = jnp.where(jnp.arange(jacobian.E.size) < num_primal, shift, 0)
    return eqx.tree_at(lambda jac: jac.E_w, jacobian, jacobian.E_w + jnp.diag(diagonal))


def _factor_with_right_inertia(matrix, num_primal, regularization) -> tuple[LDLFactor, Array]:
    """Raise the diagonal of the decision variables until the reduced Hessian is positive definite."""
    unshifted = factor_symmetric(matrix, num_primal, regularization)
    matrix = jax.lax.stop_gradient(matrix)
    scale = jnp.max(jnp.abs(jnp.diagonal(matrix)), initial=1.0)
    primal = jnp.diag((jnp.arange(matrix.shape[0]) < num_primal).astype(matrix.dtype))

    def wrong(carry):
        factor, _, trials = carry
        return ~factor.right_inertia & (trials < 25)

    def raise_shift(carry):
        _, shift, trials = carry
        shift = jnp.where(shift == 0, 1e-4 * scale, 8 * shift)
        return factor_symmetric(matrix + shift * primal, num_primal, regularization), shift, trials + 1

    start = (stop_gradient(unshifted), jnp.zeros((), matrix.dtype), jnp.asarray(0))
    shifted, shift, _ = jax.lax.while_loop(wrong, raise_shift, start)
    # The loop is cut off from differentiation; the factor that is used without a shift is not.
    return tree_where(shift == 0, unshifted, shifted), shift
