"""What the interior-point loop carries, and what it reports."""

import equinox as eqx
import jax.numpy as jnp

from optdyn._results import RESULTS
from optdyn._tree import write_row
from optdyn._typing import Array, Bool, Float, Int


class PrimalDualPoint(eqx.Module):
    """w (with the equality multipliers at its end), dual z and slack s."""

    w: Float[Array, " n"]
    z: Float[Array, " m"]
    s: Float[Array, " m"]


class Violations(eqx.Module):
    """Largest absolute violation per group of equations, at the point it belongs to."""

    equations: Float[Array, ""]  # |E|: stationarity and equalities, or the user's equations
    slack: Float[Array, ""]  # |S - s|
    complementarity: Float[Array, ""]  # |s o z - kappa e|


class Record(eqx.Module):
    """One row per step (row 0 is the start); rows that were not reached are NaN."""

    residual: Float[Array, " steps"]
    complementarity: Float[Array, " steps"]
    target: Float[Array, " steps"]
    step_length: Float[Array, " steps"]

    def write(self, step: Array, v: Violations, target: Array, step_length: Array) -> "Record":
        """The same with the row of a step."""
        return Record(
            residual=write_row(self.residual, step, jnp.maximum(v.equations, v.slack)),
            complementarity=write_row(self.complementarity, step, v.complementarity),
            target=write_row(self.target, step, target),
            step_length=write_row(self.step_length, step, step_length),
        )


def first_record(max_steps: int, v: Violations) -> Record:
    """A record with the row of the start."""
    blank = jnp.full(max_steps + 1, jnp.nan, v.equations.dtype)
    return Record(blank, blank, blank, blank).write(jnp.asarray(0), v, blank[0], blank[0])


class Certificate(eqx.Module):
    """Proof of infeasibility (`equality_dual`, `cone_dual`) or of unboundedness (`ray`); zeros when unused.

    Infeasible: z in K and G'y - J'z = 0 with y'g - z'h = 1 (Farkas). Unbounded: Hd = 0, Gd = 0, Jd in K and
    gradient'd = -1.
    """

    ray: Float[Array, " n"]
    equality_dual: Float[Array, " p"]
    cone_dual: Float[Array, " m"]


class IterationState(eqx.Module):
    """Carry of the loop."""

    # changes with every accepted step
    point: PrimalDualPoint
    violations: Violations
    steps: Int[Array, ""]
    # for complementarity systems that get blocked at a fold (see `_leap`)
    start: Float[Array, " n"]
    leaps: Int[Array, ""]
    blocked: Bool[Array, ""]
    # rows that hold within tolerance are left alone from now on (see `InteriorPoint._left_to_close`)
    hold_equations: Bool[Array, ""]
    hold_slack: Bool[Array, ""]
    # pairs (|E, S - s|, |s o z - kappa e|) of all iterates so far; +inf where unused
    filter: Float[Array, "k 2"]
    # set once
    done: Bool[Array, ""]
    result: RESULTS
    certificate: Certificate
    # only filled when the solver records
    record: Record | None


class PathPoint(eqx.Module):
    """Where the loop ended."""

    point: PrimalDualPoint
    violations: Violations
    steps: Int[Array, ""]
    result: RESULTS
    certificate: Certificate
    record: Record | None
