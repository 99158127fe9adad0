"""Coulomb friction by maximum dissipation, as a block that any mechanism can take.

At a place where two surfaces slide, the friction impulse b of a step has at most the size psi = mu N (N:
normal impulse) and takes as much energy out of the slip v as it can:

    min over b  v'b   subject to  |b| <= psi.

With the slip speed sigma as multiplier, the optimality conditions are a complementarity of two vectors in the
second-order cone (Moreau, 'Unilateral contact and dry friction in finite freedom dynamics', 1988):

    (psi, b) o (sigma, v) = kappa e,

hence b = -psi v / sigma with sigma = |v| in the limit. For every kappa > 0 friction opposes the slip and
dissipates; a slip that is small compared with kappa / psi creeps instead of sticking.
"""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._typing import Array, Float, PyTree
from optdyn.cones import NonnegativeOrthant, ProductCone, SecondOrderCone
from optdyn.dynamics._mechanics import DiscreteMechanics, Mechanism, discretized, pair_space
from optdyn.dynamics._program import ProgramDynamics
from optdyn.interior_point import InteriorPoint
from optdyn.programs import AbstractComplementarityProblem


class Motion(eqx.Module):
    """Configurations around a step, and its length in s: the step leads from q1 to q2."""

    q0: Float[Array, " nq"]
    q1: Float[Array, " nq"]
    q2: Float[Array, " nq"]
    h: Float[Array, ""]


class Friction(eqx.Module):
    """Coulomb friction at n places of a mechanism.

    Arguments:
        slip: `(q, v) -> [sum(dims)]`, tangential velocities of all places one after the other, linear in the
            velocity v [nv] of the mechanism at q.
            Rad/s at a joint, whose normal "impulse" is then in N m s.
        normal_impulse: `(motion, gap_impulse) -> N` [n], with a `Motion` and the impulses of the gaps [nc].
            A constant for a given load, an entry of `gap_impulse` for a contact.
        coefficient: mu > 0 [n].
        dims: number of tangential directions of each place: 1 on a line, 2 on a surface.
    """

    slip: Callable
    normal_impulse: Callable
    coefficient: Float[Array, " n"]
    dims: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, *, slip: Callable, normal_impulse: Callable, coefficient, dims: tuple[int, ...]):
        coefficient = jnp.asarray(coefficient, jnp.result_type(float))
        if coefficient.shape != (len(dims),):
            raise ValueError(f"coefficient must have shape ({len(dims)},), got {coefficient.shape}")
        self.slip, self.normal_impulse = slip, normal_impulse
        self.coefficient, self.dims = coefficient, tuple(dims)

    @property
    def cone(self) -> ProductCone:
        """One second-order cone of dimension 1 + dims[i] for each place."""
        return ProductCone(*(SecondOrderCone(1 + dim) for dim in self.dims))

    def join(self, heads: Array, tails: Array) -> Array:
        """A vector of `cone` from the first entries of its blocks [n] and the others [sum(dims)]."""
        if len(set(self.dims)) == 1:
            blocks = [heads[:, None], tails.reshape(heads.size, self.dims[0])]
            return jnp.concatenate(blocks, axis=1).reshape(-1)
        parts, start = [], 0
        for place, dim in enumerate(self.dims):
            parts += [heads[place : place + 1], tails[start : start + dim]]
            start += dim
        return jnp.concatenate(parts)

    def split(self, blocks: Array) -> tuple[Array, Array]:
        """What `join` was given."""
        if len(set(self.dims)) == 1:
            grid = blocks.reshape(len(self.dims), 1 + self.dims[0])
            return grid[:, 0], grid[:, 1:].reshape(-1)
        heads, tails, start = [], [], 0
        for dim in self.dims:
            heads.append(blocks[start : start + 1])
            tails.append(blocks[start + 1 : start + 1 + dim])
            start += 1 + dim
        return jnp.concatenate(heads), jnp.concatenate(tails)


class FrictionalContactProblem(AbstractComplementarityProblem):
    """Find q2, slip speeds and impulses: a balanced step with hard gaps and Coulomb friction.

    The unknowns w are q2 (its tangent at q1 where there are quaternions) and the slip speeds sigma [n]; the
    cone dual is (gap impulses, (psi, b) of each place) and its slack (gaps, (sigma, v) of each place).
    """

    mechanics: DiscreteMechanics
    friction: Friction
    cone: ProductCone
    contact_at: Literal["end", "start"] = eqx.field(static=True, default="end")

    def equations(self, w: PyTree, z: Array, theta: PyTree) -> Array:
        mechanics, friction = self.mechanics, self.friction
        q1 = theta["q1"]
        q2 = mechanics.next_configuration(q1, w["q"])
        where = q2 if self.contact_at == "end" else q1
        gap_impulse, limit, tangential = self.impulses(z)
        none = jnp.zeros_like(gap_impulse)
        balance = mechanics.balance(theta["momentum"], q1, q2, theta["impulse"], none)
        normal_pull = mechanics.gap_pull(q1, where, gap_impulse)
        # slip is linear in v, so its pullback is the same at every v.
        none_moves = jnp.zeros(mechanics.mechanism.num_velocities, q2.dtype)
        slip_pull = jax.vjp(lambda v: friction.slip(where, v), none_moves)[1](tangential)[0]
        slip_pull = mechanics.mechanism.space.transport(where, q1, slip_pull)
        normal = friction.normal_impulse(Motion(theta["q0"], q1, q2, mechanics.h), gap_impulse)
        return jnp.concatenate(
            [balance + normal_pull + slip_pull, limit - friction.coefficient.astype(z.dtype) * normal]
        )

    def slack(self, w: PyTree, z: Array, theta: PyTree) -> Array:
        q2 = self.mechanics.next_configuration(theta["q1"], w["q"])
        # The step turns about an axis that is the same in the frames of q1 and q2, and so is the velocity.
        _, v = self.mechanics.between(theta["q1"], q2)
        blocks = self.friction.join(w["slip_speed"], self.friction.slip(q2, v))
        return jnp.concatenate([self.mechanics.mechanism.gap(q2), blocks])

    def impulses(self, z: Array) -> tuple[Array, Array, Array]:
        """(gap impulses [nc], largest friction impulses psi [n], friction impulses b [sum(dims)])."""
        nc = self.mechanics.mechanism.num_gaps
        return z[:nc], *self.friction.split(z[nc:])


class _Functions(eqx.Module):
    """What `ProgramDynamics` asks for. A module, so that two of equal structure share compiled code."""

    problem: FrictionalContactProblem
    unit: float = eqx.field(static=True)

    def parameters(self, x, u, t):
        q0, q1 = jnp.split(x, 2)
        momentum = self.problem.mechanics.momentum_after(q0, q1)
        return {"momentum": momentum, "q0": q0, "q1": q1, "impulse": self.unit * u}

    def guess(self, x, u, t):
        unknown = self.problem.mechanics.next_guess(x[x.size // 2 :])
        return {"q": unknown, "slip_speed": jnp.ones(len(self.problem.friction.dims), x.dtype)}

    def next_state(self, x, u, t, w, z):
        q1 = x[x.size // 2 :]
        return jnp.concatenate([q1, self.problem.mechanics.next_configuration(q1, w["q"])])

    def outputs(self, x, u, t, w, z):
        gap_impulse, limit, tangential = self.problem.impulses(z)
        return {"impulse": gap_impulse, "friction_limit": limit, "friction_impulse": tangential}


def frictional_dynamics(
    mechanism: Mechanism,
    friction: Friction,
    h: float,
    *,
    input_units: Literal["impulse", "force"] = "force",
    form: Literal["variational", "paper_compat"] = "variational",
    contact_at: Literal["end", "start"] = "end",
    solver: InteriorPoint | None = None,
    smoothing: float | Array | None = 1e-3,
) -> ProgramDynamics:
    """Time stepping of a mechanism with hard gaps and Coulomb friction.

    Like `mechanical_dynamics`, whose state (q_previous, q) [2 nq] it shares. `StepInfo.outputs` holds the
    impulses of the gaps "impulse" [nc], of friction "friction_impulse" [sum(dims)], and the largest that
    friction could be, "friction_limit" [n], in N s (N m s for angles).

    Arguments:
        mechanism: energies, inputs, forces and gaps.
        friction: where it rubs.
        h: time step in s.
        input_units: what u is: "force" (N, N m; multiplied by h) or "impulse" (N s, N m s per step).
        form: see `DiscreteMechanics`.
        contact_at: configuration whose directions the contact impulses take: "end" of the step, at which gaps
            and slip are measured, or "start", as some published codes have it.
        solver: as in `ProgramDynamics`.
        smoothing: as in `ProgramDynamics`.

    Raises:
        ValueError: for an argument out of range.
    """
    if contact_at not in ("end", "start"):
        raise ValueError(f"contact_at must be 'end' or 'start', got {contact_at!r}")
    mechanics, unit = discretized(mechanism, h, input_units, form)
    cone = ProductCone(NonnegativeOrthant(mechanism.num_gaps), friction.cone)
    problem = FrictionalContactProblem(
        mechanics=mechanics, friction=friction, cone=cone, contact_at=contact_at
    )
    functions = _Functions(problem, unit)
    return ProgramDynamics(
        problem,
        parameters=functions.parameters,
        guess=functions.guess,
        next_state=functions.next_state,
        outputs=functions.outputs,
        state_dim=2 * mechanism.num_positions,
        control_dim=mechanism.num_inputs,
        solver=solver,
        smoothing=smoothing,
        state_space=pair_space(mechanism),
    )
