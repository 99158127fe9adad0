"""MuJoCo's contact problem as one convex cost, and what its derivatives give: residual, forces, Hessian.

Equations: Todorov, "Convex and analytically-invertible dynamics with contacts and constraints" (ICRA
2014), in the form of the chapter "Computation" of MuJoCo's documentation. With a the
accelerations and x = J a - a_ref,

    a = argmin 1/2 a' M a - a' tau + s(J a - a_ref; D, eta, mu)

tau are the smooth forces (so that M^-1 is not part of the problem's data), s sums one convex penalty per
constraint. All that follows comes from `cost` by automatic differentiation.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from optdyn._typing import Array, Float


class Layout(eqx.Module):
    """Which row of the constraint Jacobian is what. Rows come as equalities, friction loss, one-sided ones.

    Attributes:
        equalities: number of equality rows.
        frictions: number of rows of friction loss.
        rows: number of all rows.
        cones: for each elliptic contact its first row and its number of rows; empty for pyramids.
        sparsity: rows and columns of the stored entries of M (lower triangle); None where M is dense.
        dofs: number of velocities.
    """

    equalities: int = eqx.field(static=True)
    frictions: int = eqx.field(static=True)
    rows: int = eqx.field(static=True)
    dofs: int = eqx.field(static=True)
    cones: tuple[tuple[int, int], ...] = eqx.field(static=True, default=())
    sparsity: tuple[tuple[int, ...], tuple[int, ...]] | None = eqx.field(static=True, default=None)

    @property
    def one_sided(self) -> np.ndarray:
        """Rows that push only: limits, frictionless contacts, edges of pyramids."""
        in_cones = {row + i for row, size in self.cones for i in range(size)}
        return np.array(
            [i for i in range(self.equalities + self.frictions, self.rows) if i not in in_cones], int
        )

    def dense(self, inertia: Array) -> Float[Array, "nv nv"]:
        """M as a symmetric matrix, however it is stored."""
        if self.sparsity is None:
            return inertia
        rows, columns = (np.array(index) for index in self.sparsity)
        lower = jnp.zeros((self.dofs, self.dofs), inertia.dtype).at[rows, columns].set(inertia)
        return lower + jnp.tril(lower, -1).T


class Terms(eqx.Module):
    """The data theta of the contact problem.

    Attributes:
        inertia: M as MJX stores it: [nv, nv], or its nonzeros.
        jacobian: J.
        reference: a_ref.
        stiffness: D, the inverse of the regularization R.
        friction_loss: eta, bounds of the rows of friction loss.
        force: tau, the smooth forces.
        friction: [cones, 6] scales of the rows of an elliptic contact: mu / sqrt(impratio), then the friction
            coefficients; None for pyramids.
    """

    inertia: Array
    jacobian: Float[Array, "rows nv"]
    reference: Float[Array, " rows"]
    stiffness: Float[Array, " rows"]
    friction_loss: Float[Array, " frictions"]
    force: Float[Array, " nv"]
    friction: Float[Array, "cones 6"] | None = None


def cost(layout: Layout, acceleration: Float[Array, " nv"], terms: Terms) -> Float[Array, ""]:
    """What the accelerations minimize, up to a constant."""
    inertial = acceleration @ (layout.dense(terms.inertia) @ acceleration) / 2 - acceleration @ terms.force
    return inertial + penalty(layout, terms.jacobian @ acceleration - terms.reference, terms)


def penalty(layout: Layout, x: Float[Array, " rows"], terms: Terms) -> Float[Array, ""]:
    """s(x): quadratic on equalities, Huber's on friction loss, half quadratic on one-sided rows, cones."""
    ne, nf, one_sided = layout.equalities, layout.frictions, layout.one_sided
    D = terms.stiffness
    total = jnp.sum(D[:ne] * x[:ne] ** 2) / 2
    total += jnp.sum(_huber(x[ne : ne + nf], D[ne : ne + nf], terms.friction_loss))
    push = x[one_sided]
    total += jnp.sum(D[one_sided] * jnp.where(push < 0, push, 0) ** 2) / 2
    for size in sorted({size for _, size in layout.cones}):
        which = np.array([i for i, cone in enumerate(layout.cones) if cone[1] == size])
        rows = np.array([layout.cones[i][0] for i in which])[:, None] + np.arange(size)
        if terms.friction is None:
            raise ValueError("elliptic cones need `friction` in the terms")
        total += jnp.sum(jax.vmap(_cone)(x[rows], D[rows], terms.friction[which, :size]))
    return total


def _huber(x: Array, D: Array, bound: Array) -> Array:
    quadratic = D * x**2 / 2
    width = bound / jnp.where(D > 0, D, 1)
    linear = bound * jnp.abs(x) - width * bound / 2
    return jnp.where((jnp.abs(x) >= width) & (bound > 0) & (D > 0), linear, quadratic)


def _cone(x: Array, D: Array, scale: Array) -> Array:
    """Squared distance to the friction cone's polar, in scaled rows u = scale * x."""
    mu, normal = scale[0], scale[0] * x[0]
    square = jnp.sum((scale[1:] * x[1:]) ** 2)
    slides = square > 0
    tangent = jnp.where(slides, jnp.sqrt(jnp.where(slides, square, 1)), 0)
    below = jnp.where(slides, mu * normal + tangent <= 0, normal < 0)
    middle = slides & (normal < mu * tangent) & (mu * normal + tangent > 0)
    weight = D[0] / jnp.maximum(mu**2 * (1 + mu**2), 1e-15)  # MuJoCo's smallest number
    sticking = jnp.sum(D * x**2) / 2
    return jnp.where(below, sticking, jnp.where(middle, weight * (normal - mu * tangent) ** 2 / 2, 0))


def residual(layout: Layout, acceleration: Float[Array, " nv"], terms: Terms) -> Float[Array, " nv"]:
    """r(a; theta) = dcost/da = M a - tau - J' f, zero at the solution."""
    return jax.grad(cost, argnums=1)(layout, acceleration, terms)


def forces(layout: Layout, acceleration: Float[Array, " nv"], terms: Terms) -> Float[Array, " rows"]:
    """F = -ds/dx, the forces of the constraints, in the units of their rows."""
    return -jax.grad(penalty, argnums=1)(layout, terms.jacobian @ acceleration - terms.reference, terms)


def curvature(layout: Layout, acceleration: Array, terms: Terms, directions: Float[Array, "rows k"]) -> Array:
    """(d2s/dx2) times the columns of `directions`."""
    x = terms.jacobian @ acceleration - terms.reference
    slope = jax.linearize(lambda x: jax.grad(penalty, argnums=1)(layout, x, terms), x)[1]
    return jax.vmap(slope, in_axes=1, out_axes=1)(directions)


def hessian(layout: Layout, acceleration: Float[Array, " nv"], terms: Terms) -> Float[Array, "nv nv"]:
    """dr/da = M + J' (d2s/dx2) J, positive definite wherever s has a second derivative."""
    return layout.dense(terms.inertia) + terms.jacobian.T @ curvature(
        layout, acceleration, terms, terms.jacobian
    )


def relative_residual(layout: Layout, acceleration: Float[Array, " nv"], terms: Terms) -> Float[Array, ""]:
    """|r| over the sum of the norms of what it is the difference of: M a, tau and J' f."""
    pulled = terms.jacobian.T @ forces(layout, acceleration, terms)
    inertial = layout.dense(terms.inertia) @ acceleration
    size = sum(jnp.sqrt(jnp.sum(part**2)) for part in (inertial, terms.force, pulled))
    error = jnp.sqrt(jnp.sum((inertial - terms.force - pulled) ** 2))
    return jnp.where(size > 0, error / jnp.where(size > 0, size, 1), 0)
