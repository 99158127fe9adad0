"""Constraints by an augmented Lagrangian around an unconstrained trajectory optimizer."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._results import RESULTS
from optdyn._typing import Array, Bool, Int
from optdyn.trajopt._constraints import ConstraintSet
from optdyn.trajopt._history import blank_history
from optdyn.trajopt._ilqr import ILQR, ILQRState, Round
from optdyn.trajopt._line_search import Candidate, evaluate
from optdyn.trajopt._objective import Multipliers, Objective, Rows, dual_update, each_kind
from optdyn.trajopt._problem import TracedProblem


class Continuation(eqx.Module):
    """Smoothing of the dynamics' derivatives over the rounds: `max(end, start factor^round)`."""

    start: float | Array = 1e-2
    end: float | Array = 1e-3
    factor: float | Array = 0.5

    def at(self, round: Array) -> Array:
        """Smoothing of a round (0, 1, ...)."""
        return jnp.maximum(self.end, self.start * self.factor**round)

    def ended(self, round: Array) -> Array:
        """Whether no later round has a smaller smoothing."""
        return self.at(round + 1) >= self.at(round)


class ALState(eqx.Module):
    """Carry of the outer loop."""

    inner: ILQRState
    multipliers: Multipliers
    violation: Rows  # of the round before
    outer: Int[Array, ""]
    done: Bool[Array, ""]
    result: RESULTS


class AugmentedLagrangian(eqx.Module):
    """Method of multipliers: minimize, update the duals, raise the penalties that did not help enough.

    Arguments:
        inner: solver of the unconstrained problem of each round.
        constraint_tol: largest violation of a successful plan.
        max_rounds: rounds before giving up.
        smoothing: `Continuation` of the derivatives' smoothing, or None for the dynamics' own. A plan is
            successful at the last smoothing only.

    Other Arguments:
        early_cost_tol: a round before the last smoothing also ends once every row holds to `constraint_tol`
            and a step brought a decrease below `early_cost_tol max(1, |merit|)`: its derivatives are about
            to be replaced. 0 switches this off. It never makes a plan successful.
        initial_penalty, max_penalty: range of the penalties, per row.
        penalty_factor: by how much a penalty is raised.
        sufficient_progress: a penalty is raised only where the violation of its row is above
            `constraint_tol` and above this part of its value one round before (Nocedal and Wright,
            'Numerical Optimization', framework 17.3, per row).
    """

    inner: ILQR = ILQR()
    constraint_tol: float = eqx.field(static=True, default=1e-6)
    max_rounds: int = eqx.field(static=True, default=30)
    smoothing: Continuation | None = None
    early_cost_tol: float | Array = 0.0
    initial_penalty: float | Array = 1.0
    max_penalty: float | Array = 1e8
    penalty_factor: float | Array = 10.0
    sufficient_progress: float | Array = 0.25

    def __check_init__(self):
        if not isinstance(self.inner, ILQR):
            raise TypeError(f"inner must be an ILQR, got {type(self.inner).__name__}")
        if not self.constraint_tol > 0:
            raise ValueError(f"constraint_tol must be positive, got {self.constraint_tol}")
        if self.max_rounds < 1:
            raise ValueError(f"max_rounds must be at least 1, got {self.max_rounds}")

    def run(self, problem: TracedProblem, start: Candidate, callback: Callable | None) -> ALState:
        """Rounds of minimization and dual updates, from zero duals."""
        dtype = start.cost.dtype
        multipliers = self._initial_multipliers(problem, dtype)
        length = self.max_rounds * self.inner.max_iterations
        inner = self.inner.init(problem, start, blank_history(length, dtype))
        state = ALState(
            inner=inner,
            multipliers=multipliers,
            violation=jax.tree.map(lambda rows: jnp.full_like(rows, jnp.inf), multipliers.dual),
            outer=jnp.asarray(0),
            done=jnp.asarray(False),
            result=RESULTS.max_steps_reached,
        )
        return jax.lax.while_loop(lambda s: ~s.done, lambda s: self.step(problem, s, callback), state)

    def step(self, problem: TracedProblem, state: ALState, callback: Callable | None) -> ALState:
        """One round."""
        m = state.multipliers
        objective = Objective(problem, m)
        last = state.inner.current
        current = evaluate(objective, last.trajectory, last.lower_level)
        penalty = m.penalty.largest()
        smoothing, last_smoothing = None, jnp.asarray(True)
        if self.smoothing is not None:
            smoothing = self.smoothing.at(state.outer).astype(current.cost.dtype)
            last_smoothing = self.smoothing.ended(state.outer)
        round = Round(
            outer=state.outer,
            penalty=penalty,
            smoothing=smoothing,
            constraint_tol=jnp.asarray(self.constraint_tol, current.cost.dtype),
            early_cost_tol=jnp.where(last_smoothing, 0, self.early_cost_tol).astype(current.cost.dtype),
        )
        inner = self.inner.run(
            objective, self.inner.restart(state.inner, current, state.outer), round, callback
        )

        c = objective.constraints(inner.current.trajectory)
        feasible = inner.current.violation <= self.constraint_tol
        solved = feasible & (inner.result == RESULTS.successful) & last_smoothing
        broken = (inner.result == RESULTS.unbounded) | (inner.result == RESULTS.nonfinite)
        # Without constraints another round would repeat the last one.
        unconstrained = problem.rows.size == 0
        ended = solved | broken | (last_smoothing if unconstrained else jnp.asarray(False))
        outer = state.outer + 1
        # What kept a plan that holds its constraints from being optimal, where rounds run out.
        reason = RESULTS.where(inner.result == RESULTS.successful, RESULTS.max_steps_reached, inner.result)
        result = RESULTS.where(feasible | broken, reason, RESULTS.max_steps_reached)
        result = RESULTS.where(solved, RESULTS.successful, result)
        multipliers, violation = self._update(problem, state, c)
        return ALState(
            inner=inner,
            multipliers=multipliers,
            violation=violation,
            outer=outer,
            done=ended | (outer >= self.max_rounds),
            result=result,
        )

    def _update(self, problem: TracedProblem, state: ALState, c: Rows) -> tuple[Multipliers, Rows]:
        m = state.multipliers
        violation = each_kind(ConstraintSet.violation, problem.rows, c)

        def raised(penalty, violation, before):
            slow = (violation > self.constraint_tol) & (violation > self.sufficient_progress * before)
            return jnp.where(slow, jnp.minimum(self.penalty_factor * penalty, self.max_penalty), penalty)

        dual = each_kind(dual_update, problem.rows, c, m.dual, m.penalty)
        penalty = jax.tree.map(raised, m.penalty, violation, state.violation)
        return Multipliers(dual, penalty), violation

    def _initial_multipliers(self, problem: TracedProblem, dtype) -> Multipliers:
        rows = problem.rows
        sizes = ((problem.horizon, rows.stage.size), (rows.terminal.size,), (rows.parameters.size,))
        penalty = jnp.asarray(self.initial_penalty, dtype)
        return Multipliers(
            dual=Rows(*(jnp.zeros(size, dtype) for size in sizes)),
            penalty=Rows(*(jnp.broadcast_to(penalty, size) for size in sizes)),
        )
