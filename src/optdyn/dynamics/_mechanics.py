"""Discrete mechanics from one Lagrangian.

A discrete Lagrangian L_d(q1, q2) = h L((q1 + q2)/2, (q2 - q1)/h) (midpoint rule) gives the discrete
Euler-Lagrange equations with forcing and impact (Marsden and West, 'Discrete mechanics and variational
integrators', 2001, sections 1.1 and 3.2):

    D2 L_d(q0, q1) + h/2 F_01 + D1 L_d(q1, q2) + h/2 F_12 + B(qm) p + J(q2)' lambda = 0,

with qm, vm the midpoint and velocity between q1 and q2, p the input impulse of the step, F_ij the other
forces at the midpoint of an interval (half of the impulse goes to either end), and lambda >= 0 the impulses
of the gaps, which act at the end of the step: gap(q2) >= 0, lambda o gap = kappa.
"""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._typing import Array, Float, PyTree
from optdyn.cones import NonnegativeOrthant
from optdyn.dynamics._program import ProgramDynamics
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

    def lagrangian(self, q: Float[Array, " nq"], v: Float[Array, " nq"]) -> Float[Array, ""]:
        """L = T - V in J."""
        return self.kinetic_energy(q, v) - self.potential_energy(q)

    def energy(self, q: Float[Array, " nq"], v: Float[Array, " nq"]) -> Float[Array, ""]:
        """T + V in J."""
        return self.kinetic_energy(q, v) + self.potential_energy(q)

    def momentum(self, q: Float[Array, " nq"], v: Float[Array, " nq"]) -> Float[Array, " nq"]:
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

    def momentum_after(self, q0: Float[Array, " nq"], q1: Float[Array, " nq"]) -> Float[Array, " nq"]:
        """D2 L_d(q0, q1) + h/2 F: the momentum with which the system arrives at q1."""
        qm, vm = (q0 + q1) / 2, (q1 - q0) / self.h
        dq, dv = self._slopes(qm, vm)
        if self.form == "variational":
            dq = dq + self.mechanism.force(qm, vm)
        return self.h / 2 * dq + dv

    def momentum_before(self, q1: Float[Array, " nq"], q2: Float[Array, " nq"]) -> Float[Array, " nq"]:
        """-D1 L_d(q1, q2): the momentum with which the system leaves q1."""
        dq, dv = self._slopes((q1 + q2) / 2, (q2 - q1) / self.h)
        return dv - self.h / 2 * dq

    def balance(self, momentum, q1, q2, impulse, limit_impulse) -> Float[Array, " nq"]:
        """Impulse balance of the step in N s (or N m s): zero on the motion."""
        mechanism = self.mechanism
        qm, vm = (q1 + q2) / 2, (q2 - q1) / self.h
        _, pull = jax.vjp(mechanism.gap, q2)
        (contact,) = pull(limit_impulse)
        force_share = self.h / 2 if self.form == "variational" else self.h
        total = mechanism.input_map(qm) @ impulse + force_share * mechanism.force(qm, vm) + contact
        return momentum - self.momentum_before(q1, q2) + total


class ImpactProblem(AbstractComplementarityProblem):
    """Find q2 and the impulses of the gaps: balance = 0, gap(q2) >= 0, impulse o gap = kappa."""

    mechanics: DiscreteMechanics
    cone: NonnegativeOrthant

    def equations(self, w: PyTree, z: Array, theta: PyTree) -> Array:
        return self.mechanics.balance(theta["momentum"], theta["q1"], w, theta["impulse"], z)

    def slack(self, w: PyTree, z: Array, theta: PyTree) -> Array:
        return self.mechanics.mechanism.gap(w)


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

    The state is (q_previous, q) [2 nq]; velocities are (q - q_previous) / h. `StepInfo.outputs["impulse"]`
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
        guess=_LastPositions(nq),
        next_state=_NextPositions(nq),
        outputs=_impulses,
        state_dim=2 * nq,
        control_dim=mechanism.num_inputs,
        solver=solver,
        smoothing=smoothing,
    )


# Modules rather than closures: two dynamics of equal mechanisms then share one compiled program.
class _StepParameters(eqx.Module):
    """Theta of `ImpactProblem`; `unit` is the impulse per unit of input."""

    mechanics: DiscreteMechanics
    unit: float = eqx.field(static=True)

    def __call__(self, x, u, t):
        nq = self.mechanics.mechanism.num_positions
        q0, q1 = x[:nq], x[nq:]
        momentum = self.mechanics.momentum_after(q0, q1)
        return {"momentum": momentum, "q1": q1, "impulse": self.unit * u}


class _LastPositions(eqx.Module):
    """Cold start: nothing moves."""

    num_positions: int = eqx.field(static=True)

    def __call__(self, x, u, t):
        return x[self.num_positions :]


class _NextPositions(eqx.Module):
    """(q_previous, q) after the step."""

    num_positions: int = eqx.field(static=True)

    def __call__(self, x, u, t, q2, impulse):
        return jnp.concatenate([x[self.num_positions :], q2])


def _impulses(x, u, t, q2, impulse):
    return {"impulse": impulse}


def _no_force(q, v):
    return jnp.zeros_like(v)


def _no_gap(q):
    return jnp.zeros(0, q.dtype)
