"""Discrete mechanics from one Lagrangian.

A discrete Lagrangian L_d(q1, q2) = h L((q1 + q2)/2, (q2 - q1)/h) (midpoint rule) gives the discrete
Euler-Lagrange equations with forcing and impact (Marsden and West, 'Discrete mechanics and variational
integrators', 2001, sections 1.1 and 3.2):

    D2 L_d(q0, q1) + h/2 F_01 + D1 L_d(q1, q2) + h/2 F_12 + B(qm) p + J(q2)' lambda = 0,

with qm, vm the midpoint and velocity between q1 and q2, p the input impulse of the step, F_ij the other
forces at the midpoint of an interval (half of the impulse goes to either end), and lambda >= 0 the impulses
of the gaps, which act at the end of the step: gap(q2) >= 0, lambda o gap = kappa.

Where configurations hold attitudes as unit quaternions, the velocity is d / h with q2 = `retract(q1, d)` in
Cayley's chart, the midpoint is half of the rotation, and D1, D2 are derivatives along tangents: a Lie group
variational integrator (Marsden, Pekarsky and Shkoller, 'Discrete Euler-Poincare and Lie-Poisson equations',
1999; Bou-Rabee and Marsden, 'Hamilton-Pontryagin integrators on Lie groups', 2009, for charts). A free body
keeps its angular momentum in space to rounding. The balance is in the frame of the body at q1; impulses that
act elsewhere are brought there as vectors in space.
"""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._typing import Array, Float, PyTree
from optdyn.cones import NonnegativeOrthant
from optdyn.dynamics._base import check_dims
from optdyn.dynamics._program import ProgramDynamics
from optdyn.dynamics._space import StateSpace
from optdyn.interior_point import InteriorPoint
from optdyn.programs import AbstractComplementarityProblem


class Mechanism(eqx.Module):
    """A mechanical system by its energies.

    Arguments:
        kinetic_energy: `(q, v) -> T` in J.
        potential_energy: `(q) -> V` in J.
        input_map: `(q) -> B` [nq, nu], generalized force per unit of input.
        force: `(q, v) -> F` [nq], forces that no potential gives, such as damping.
        gap: `(q) -> phi` [nc], distances that must stay nonnegative. Default: none.
        num_positions, num_inputs, num_gaps: nq, nu, nc.
        published_bias: `(q, v) -> C` [nq], velocity and gravity terms as a published code states them, used
            by the form "paper_compat" only. Default: what that form derives from the Lagrangian.
        quaternions: indices in q where unit quaternions (w, x, y, z) start. Default: none. Velocities and
            forces are then tangents [nv] as `StateSpace` has them, nv = nq - number of quaternions: angular
            velocities and torques in the frame of the body, in the place of the four numbers.
    """

    kinetic_energy: Callable
    potential_energy: Callable
    input_map: Callable
    force: Callable
    gap: Callable
    num_positions: int = eqx.field(static=True)
    num_inputs: int = eqx.field(static=True)
    num_gaps: int = eqx.field(static=True)
    published_bias: Callable | None
    space: StateSpace

    def __init__(
        self,
        *,
        kinetic_energy: Callable,
        potential_energy: Callable,
        input_map: Callable,
        num_positions: int,
        num_inputs: int,
        force: Callable | None = None,
        gap: Callable | None = None,
        num_gaps: int = 0,
        published_bias: Callable | None = None,
        quaternions: tuple[int, ...] = (),
    ):
        if (gap is None) != (num_gaps == 0):
            raise ValueError("give gap and num_gaps together")
        self.kinetic_energy, self.potential_energy, self.input_map = (
            kinetic_energy,
            potential_energy,
            input_map,
        )
        self.force = _no_force if force is None else force
        self.gap = _no_gap if gap is None else gap
        self.num_positions, self.num_inputs, self.num_gaps = num_positions, num_inputs, num_gaps
        self.published_bias = published_bias
        self.space = check_dims(num_positions, num_inputs, StateSpace(quaternions, "cayley"))

    @property
    def num_velocities(self) -> int:
        """Number nv of coordinates of a velocity."""
        return self.space.tangent_dim(self.num_positions)

    def lagrangian(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, ""]:
        """L = T - V in J."""
        return self.kinetic_energy(q, v) - self.potential_energy(q)

    def energy(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, ""]:
        """T + V in J."""
        return self.kinetic_energy(q, v) + self.potential_energy(q)

    def momentum(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """dL/dv."""
        return jax.grad(self.lagrangian, argnums=1)(q, v)


class DiscreteMechanics(eqx.Module):
    """Midpoint discrete Euler-Lagrange step of a mechanism.

    `form="variational"` is the correct step, of second order in h, with and without other forces.
    `form="paper_compat"` reproduces the code of 'Trajectory Optimization with Optimization-Based Dynamics'
    (2021), which subtracts the velocity term (dM/dt) v once more than the Lagrangian has it and takes the
    other forces of the new interval alone; it is there to compare with published trajectories and does not
    converge to the continuous motion as h goes to 0.
    """

    mechanism: Mechanism
    h: Float[Array, ""]
    form: Literal["variational", "paper_compat"] = eqx.field(static=True, default="variational")

    def _slopes(self, q, v):
        """(dL/dq as the form has it, dL/dv)."""
        dq, dv = jax.grad(self.mechanism.lagrangian, argnums=(0, 1))(q, v)
        if self.form == "paper_compat" and self.mechanism.published_bias is not None:
            dq = -self.mechanism.published_bias(q, v)
        elif self.form == "paper_compat":
            momentum_rate = jax.jvp(lambda q: self.mechanism.momentum(q, v), (q,), (v,))[1]
            dq = dq - momentum_rate
        return dq, dv

    def between(self, qa: Float[Array, " nq"], qb: Float[Array, " nq"]) -> tuple[Array, Array]:
        """Midpoint and velocity [nv] of the motion from qa to qb, which turns about a fixed axis."""
        space = self.mechanism.space
        if not space.quaternions:
            return (qa + qb) / 2, (qb - qa) / self.h
        return space.midpoint(qa, qb), space.difference(qb, qa) / self.h

    def momentum_after(self, q0: Float[Array, " nq"], q1: Float[Array, " nq"]) -> Float[Array, " nv"]:
        """D2 L_d(q0, q1) + h/2 F: the momentum with which the system arrives at q1."""
        qm, vm = self.between(q0, q1)
        space = self.mechanism.space
        if space.quaternions:
            force = self.mechanism.force(qm, vm)
            slope = jax.grad(lambda d: self._discrete_lagrangian(q0, space.nudge(q1, d)))(self._no_step(q1))
            return slope + self.h / 2 * space.transport(qm, q1, force)
        dq, dv = self._slopes(qm, vm)
        if self.form == "variational":
            dq = dq + self.mechanism.force(qm, vm)
        return self.h / 2 * dq + dv

    def momentum_before(self, q1: Float[Array, " nq"], q2: Float[Array, " nq"]) -> Float[Array, " nv"]:
        """-D1 L_d(q1, q2): the momentum with which the system leaves q1."""
        space = self.mechanism.space
        if space.quaternions:
            slope = jax.grad(lambda d: self._discrete_lagrangian(space.nudge(q1, d), q2))
            return -slope(self._no_step(q1))
        dq, dv = self._slopes(*self.between(q1, q2))
        return dv - self.h / 2 * dq

    def balance(self, momentum, q1, q2, impulse, limit_impulse) -> Float[Array, " nv"]:
        """Impulse balance of the step in N s (or N m s): zero on the motion."""
        mechanism = self.mechanism
        qm, vm = self.between(q1, q2)
        contact = self.gap_pull(q1, q2, limit_impulse)
        force_share = self.h / 2 if self.form == "variational" else self.h
        applied = mechanism.input_map(qm) @ impulse + force_share * mechanism.force(qm, vm)
        total = mechanism.space.transport(qm, q1, applied) + contact
        return momentum - self.momentum_before(q1, q2) + total

    def gap_pull(self, q1, where, gap_impulse: Float[Array, " nc"]) -> Float[Array, " nv"]:
        """Impulse on the mechanism at q1 from the gaps' impulses, whose directions are those of `where`."""
        mechanism, space = self.mechanism, self.mechanism.space
        if not space.quaternions:
            return jax.vjp(mechanism.gap, where)[1](gap_impulse)[0]
        _, pull = jax.vjp(lambda d: mechanism.gap(space.nudge(where, d)), self._no_step(where))
        return space.transport(where, q1, pull(gap_impulse)[0])

    def next_guess(self, q1: Float[Array, " nq"]) -> Array:
        """The unknown of a step that stays at q1: q2, or its tangent at q1 where there are quaternions."""
        return self._no_step(q1) if self.mechanism.space.quaternions else q1

    def next_configuration(self, q1: Float[Array, " nq"], unknown: Array) -> Float[Array, " nq"]:
        """q2 from the unknown of the step."""
        space = self.mechanism.space
        return space.retract(q1, unknown) if space.quaternions else unknown

    def _discrete_lagrangian(self, qa, qb):
        return self.h * self.mechanism.lagrangian(*self.between(qa, qb))

    def _no_step(self, q):
        return jnp.zeros(self.mechanism.num_velocities, q.dtype)


class ImpactProblem(AbstractComplementarityProblem):
    """Find q2 and the impulses of the gaps: balance = 0, gap(q2) >= 0, impulse o gap = kappa."""

    mechanics: DiscreteMechanics
    cone: NonnegativeOrthant

    def equations(self, w: PyTree, z: Array, theta: PyTree) -> Array:
        q2 = self.mechanics.next_configuration(theta["q1"], w)
        return self.mechanics.balance(theta["momentum"], theta["q1"], q2, theta["impulse"], z)

    def slack(self, w: PyTree, z: Array, theta: PyTree) -> Array:
        return self.mechanics.mechanism.gap(self.mechanics.next_configuration(theta["q1"], w))


def discretized(
    mechanism: Mechanism, h: float, input_units: str, form: Literal["variational", "paper_compat"]
) -> tuple[DiscreteMechanics, float]:
    """The step of a mechanism, and the impulse per unit of input.

    Raises:
        ValueError: for an argument out of range.
    """
    if not h > 0:
        raise ValueError(f"h must be positive, got {h}")
    if input_units not in ("impulse", "force"):
        raise ValueError(f"input_units must be 'impulse' or 'force', got {input_units!r}")
    if form not in ("variational", "paper_compat"):
        raise ValueError(f"form must be 'variational' or 'paper_compat', got {form!r}")
    if form == "paper_compat" and mechanism.space.quaternions:
        raise ValueError("the form 'paper_compat' has no attitudes; use 'variational'")
    mechanics = DiscreteMechanics(mechanism, jnp.asarray(h, jnp.result_type(float)), form)
    return mechanics, 1.0 if input_units == "impulse" else float(h)


def mechanical_dynamics(
    mechanism: Mechanism,
    h: float,
    *,
    input_units: Literal["impulse", "force"] = "force",
    form: Literal["variational", "paper_compat"] = "variational",
    solver: InteriorPoint | None = None,
    smoothing: float | Array | None = 1e-3,
) -> ProgramDynamics:
    """Time stepping of a mechanism with hard gaps, as `ProgramDynamics`.

    The state is (q_previous, q) [2 nq]; velocities are (q - q_previous) / h, with the difference of the state
    space where there are quaternions. `StepInfo.outputs["impulse"]`
    holds the impulses of the gaps [nc] in N s (N m s for angles).

    Arguments:
        mechanism: energies, inputs, forces and gaps.
        h: time step in s.
        input_units: what u is: "force" (N, N m; multiplied by h) or "impulse" (N s, N m s per step).
        form: see `DiscreteMechanics`.
        solver: as in `ProgramDynamics`.
        smoothing: as in `ProgramDynamics`.
    """
    nq = mechanism.num_positions
    mechanics, unit = discretized(mechanism, h, input_units, form)
    return ProgramDynamics(
        ImpactProblem(mechanics=mechanics, cone=NonnegativeOrthant(mechanism.num_gaps)),
        parameters=_StepParameters(mechanics, unit),
        guess=_LastPositions(mechanics),
        next_state=_NextPositions(mechanics),
        outputs=_impulses,
        state_dim=2 * nq,
        control_dim=mechanism.num_inputs,
        solver=solver,
        smoothing=smoothing,
        state_space=pair_space(mechanism),
    )


def pair_space(mechanism: Mechanism) -> StateSpace:
    """Space of the states (q_previous, q)."""
    starts = mechanism.space.quaternions
    return StateSpace((*starts, *(mechanism.num_positions + start for start in starts)))


# Modules rather than closures: two dynamics of equal mechanisms then share one compiled program.
class _StepParameters(eqx.Module):
    """Theta of `ImpactProblem`; `unit` is the impulse per unit of input."""

    mechanics: DiscreteMechanics
    unit: float = eqx.field(static=True)

    def __call__(self, x, u, t):
        q0, q1 = jnp.split(x, 2)
        momentum = self.mechanics.momentum_after(q0, q1)
        return {"momentum": momentum, "q1": q1, "impulse": self.unit * u}


class _LastPositions(eqx.Module):
    """Cold start: nothing moves."""

    mechanics: DiscreteMechanics

    def __call__(self, x, u, t):
        return self.mechanics.next_guess(x[x.size // 2 :])


class _NextPositions(eqx.Module):
    """(q_previous, q) after the step."""

    mechanics: DiscreteMechanics

    def __call__(self, x, u, t, unknown, impulse):
        q1 = x[x.size // 2 :]
        return jnp.concatenate([q1, self.mechanics.next_configuration(q1, unknown)])


def _impulses(x, u, t, q2, impulse):
    return {"impulse": impulse}


def _no_force(q, v):
    return jnp.zeros_like(v)


def _no_gap(q):
    return jnp.zeros(0, q.dtype)
