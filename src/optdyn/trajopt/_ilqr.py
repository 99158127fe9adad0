"""Iterative linear-quadratic regulator."""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._results import RESULTS
from optdyn._tree import tree_where
from optdyn._typing import Array, Bool, Float, Int
from optdyn.trajopt._expansion import linearize_dynamics
from optdyn.trajopt._history import History, IterationRecord, report
from optdyn.trajopt._line_search import Candidate, line_search
from optdyn.trajopt._objective import Objective
from optdyn.trajopt._problem import TracedProblem
from optdyn.trajopt._regularization import Regularization, RegularizationRule
from optdyn.trajopt._riccati import BackwardPass, backward_pass


class ILQRState(eqx.Module):
    """Carry of the loop."""

    # changes with every accepted step
    current: Candidate
    # changes in every iteration
    policy: BackwardPass  # the model's answer around `current`
    regularization: Regularization  # that it was found with
    iterations: Int[Array, ""]  # line searches, over all inner solves
    budget: Int[Array, ""]  # iterations left to this inner solve
    backtracks: Int[Array, ""]  # halvings allowed to the next line search; -1: none is due
    history: History
    # set once
    done: Bool[Array, ""]
    result: RESULTS


class Round(eqx.Module):
    """What an outer solver fixes for one inner solve."""

    outer: Int[Array, ""]
    penalty: Float[Array, ""]
    smoothing: Float[Array, ""] | None
    constraint_tol: Float[Array, ""]
    early_cost_tol: Float[Array, ""]  # 0: no early end


class ILQR(eqx.Module):
    """Gauss-Newton on the dynamics, Riccati on the quadratic model, line search on the rollout.

    First derivatives of the dynamics (at their smoothing), second derivatives of the costs. For
    unconstrained problems; wrap it in `AugmentedLagrangian` otherwise. A linear-quadratic problem is solved
    by the first step.

    Arguments:
        max_iterations: line searches before giving up (per round inside `AugmentedLagrangian`).
        cost_tol: converged when the model predicts, or the last step brought, a decrease below
            `cost_tol max(1, |merit|)`, with an unregularized model.
        hessian: "exact" (automatic differentiation of the costs) or "gauss_newton" (J'J of `ResidualCost`;
            other costs keep their exact Hessian).

    Other Arguments:
        sufficient_decrease: share of the predicted decrease that a step must reach.
        max_backtracks: halvings of a step.
        min_regularization, max_regularization: range of the term added to the diagonal of Q_uu, which is zero
            below the minimum.
        regularization_factor: first factor of its changes; it grows while they go in the same direction.
        short_step, long_step: the term is raised when Q_uu has no Cholesky factor, no step is accepted, or
            the accepted step is shorter than `short_step`; it is lowered after steps from `long_step` on.
    """

    max_iterations: int = eqx.field(static=True, default=200)
    cost_tol: float = eqx.field(static=True, default=1e-8)
    hessian: Literal["exact", "gauss_newton"] = eqx.field(static=True, default="exact")
    sufficient_decrease: float = eqx.field(static=True, default=1e-4)
    max_backtracks: int = eqx.field(static=True, default=16)
    min_regularization: float = eqx.field(static=True, default=1e-6)
    max_regularization: float = eqx.field(static=True, default=1e8)
    regularization_factor: float = eqx.field(static=True, default=3.0)
    short_step: float = eqx.field(static=True, default=0.05)
    long_step: float = eqx.field(static=True, default=0.5)

    def __check_init__(self):
        if self.max_iterations < 1:
            raise ValueError(f"max_iterations must be at least 1, got {self.max_iterations}")
        if not self.cost_tol >= 0:
            raise ValueError(f"cost_tol must be >= 0, got {self.cost_tol}")
        if self.hessian not in ("exact", "gauss_newton"):
            raise ValueError(f"hessian must be 'exact' or 'gauss_newton', got {self.hessian!r}")
        if not 0 < self.min_regularization <= self.max_regularization:
            raise ValueError("min_regularization must be positive and at most max_regularization")
        if not self.regularization_factor > 1:
            raise ValueError(f"regularization_factor must be above 1, got {self.regularization_factor}")
        if not 0 <= self.short_step <= self.long_step <= 1:
            raise ValueError("short_step and long_step must satisfy 0 <= short_step <= long_step <= 1")

    def init(self, problem: TracedProblem, start: Candidate, history: History) -> ILQRState:
        """State before the first rollout, which is the line search of a policy that changes nothing."""
        states, controls = start.trajectory.states, start.trajectory.controls
        dtype, n = states.dtype, problem.dynamics.state_space.tangent_dim(states.shape[1])
        policy = BackwardPass(
            gains=jnp.zeros((*controls.shape, n), dtype),
            feedforward=jnp.zeros_like(controls),
            parameter_step=jnp.zeros_like(problem.parameters(states[0])),
            slope=jnp.zeros((), dtype),
            value_gradient=jnp.zeros(n, dtype),
            value_hessian=jnp.zeros((n, n), dtype),
            positive_definite=jnp.asarray(False),
        )
        return ILQRState(
            current=start,
            policy=policy,
            regularization=Regularization(jnp.zeros((), dtype), jnp.ones((), dtype)),
            iterations=jnp.asarray(0),
            budget=jnp.asarray(self.max_iterations),
            backtracks=jnp.asarray(0),
            history=history,
            done=jnp.asarray(False),
            result=RESULTS.max_steps_reached,
        )

    def restart(self, state: ILQRState, current: Candidate, outer: Int[Array, ""]) -> ILQRState:
        """The state for another inner solve from `current`; counters and history go on.

        The policy belongs to the objective of the round before, so no search is due before there is a new
        one. In round 0 nothing was simulated yet: its first search is the first rollout.
        """
        return eqx.tree_at(
            lambda s: (s.current, s.budget, s.backtracks, s.done, s.result),
            state,
            (
                current,
                jnp.full_like(state.budget, self.max_iterations),
                jnp.where(outer == 0, 0, -1).astype(state.backtracks.dtype),
                jnp.asarray(False),
                RESULTS.max_steps_reached,
            ),
        )

    def step(
        self, objective: Objective, state: ILQRState, round: Round, callback: Callable | None
    ) -> ILQRState:
        """Search along the policy, then linearize and solve the quadratic model for the next one."""
        before = state.current
        search = line_search(objective, before, state.policy, self.sufficient_decrease, state.backtracks)
        new = tree_where(search.accepted, search, before)
        started = jnp.isfinite(before.merit)
        counted = (state.backtracks >= 0) & started
        accepted = search.accepted & started
        decrease = jnp.where(accepted, before.merit - search.merit, jnp.inf)
        small = self.cost_tol * jnp.maximum(1, jnp.abs(new.merit))
        settled = decrease <= small

        regularization = self._rule.after_search(state.regularization, accepted, search.step_length)
        regularization = tree_where(counted, regularization, state.regularization)
        exhausted = counted & ~accepted & (regularization.value > self.max_regularization)
        # A regularized model may be stationary at a maximum: look once more without.
        given = jnp.where(settled | exhausted, 0, regularization.value)

        linear = linearize_dynamics(objective.problem.dynamics, new.trajectory, round.smoothing)
        model = objective.expand(new.trajectory, self.hessian == "gauss_newton")
        policy, regularization = self._solve_model(
            model, linear.A, linear.B, Regularization(given, regularization.growth)
        )
        lower_level = search.lower_level.add_linearization(linear)
        new = eqx.tree_at(lambda c: c.lower_level, new, lower_level)

        plain, flat = regularization.value == 0, -policy.slope <= small
        converged = (flat | settled) & plain & policy.positive_definite
        saddle = flat & ~plain & (given == 0)
        usable = linear.valid & policy.positive_definite & jnp.isfinite(policy.slope)
        enough = (new.violation <= round.constraint_tol) & (
            decrease <= round.early_cost_tol * jnp.maximum(1, jnp.abs(new.merit))
        )
        unbounded = new.merit < -1e15
        finite = jnp.isfinite(new.merit)

        iterations = state.iterations + jnp.where(counted, 1, 0)
        budget = state.budget - jnp.where(counted, 1, 0)
        record = IterationRecord(
            outer=round.outer,
            inner=iterations,
            cost=new.cost,
            merit=new.merit,
            violation=new.violation,
            step_length=jnp.where(accepted, search.step_length, 0),
            regularization=state.regularization.value,
            penalty=round.penalty,
            smoothing=jnp.asarray(jnp.nan if round.smoothing is None else round.smoothing, new.cost.dtype),
        )
        history = tree_where(counted, state.history.write(state.iterations, record), state.history)
        if callback is not None:
            jax.lax.cond(counted, lambda: report(callback, record), lambda: None)

        result = state.result
        for condition, member in (
            (exhausted | saddle, RESULTS.stalled),
            (~usable, RESULTS.singular),
            (converged & usable, RESULTS.successful),
            (unbounded, RESULTS.unbounded),
            (~finite, RESULTS.nonfinite),
        ):
            result = RESULTS.where(condition, member, result)
        ended = converged | saddle | exhausted | ~usable | unbounded | ~finite
        return ILQRState(
            current=new,
            policy=policy,
            regularization=regularization,
            iterations=iterations,
            budget=budget,
            backtracks=jnp.full_like(state.backtracks, self.max_backtracks),
            history=history,
            done=ended | enough | (budget <= 0),
            result=result,
        )

    def run(
        self, objective: Objective, state: ILQRState, round: Round, callback: Callable | None
    ) -> ILQRState:
        """Iterate until done."""
        return jax.lax.while_loop(
            lambda s: ~s.done, lambda s: self.step(objective, s, round, callback), state
        )

    @property
    def _rule(self) -> RegularizationRule:
        return RegularizationRule(
            self.regularization_factor, self.min_regularization, self.short_step, self.long_step
        )

    def _solve_model(
        self, model, A, B, regularization: Regularization
    ) -> tuple[BackwardPass, Regularization]:
        """Backward pass, repeated with more regularization until every Q_uu has a Cholesky factor."""

        def indefinite(carry):
            policy, regularization, tries = carry
            allowed = regularization.value <= self.max_regularization
            return (tries == 0) | (~policy.positive_definite & allowed)

        def attempt(carry):
            _, regularization, tries = carry
            regularization = tree_where(tries == 0, regularization, self._rule.raised(regularization))
            return backward_pass(model, A, B, regularization.value), regularization, tries + 1

        shape = jax.eval_shape(backward_pass, model, A, B, regularization.value)
        empty = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shape)
        policy, regularization, _ = jax.lax.while_loop(
            indefinite, attempt, (empty, regularization, jnp.asarray(0))
        )
        return policy, regularization
