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
from optdyn.trajopt._riccati import BackwardPass, backward_pass


class ILQRState(eqx.Module):
    """Carry of the loop."""

    # changes with every accepted step
    current: Candidate
    change: Float[Array, ""]  # decrease of the merit in the last accepted step
    # changes in every iteration
    policy: BackwardPass
    regularization: Float[Array, ""]
    iterations: Int[Array, ""]  # line searches, over all inner solves
    budget: Int[Array, ""]  # iterations left to this inner solve
    history: History
    # set once
    done: Bool[Array, ""]
    result: RESULTS


class Round(eqx.Module):
    """What an outer solver fixes for one inner solve."""

    outer: Int[Array, ""]
    penalty: Float[Array, ""]
    smoothing: Float[Array, ""] | None


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
        min_regularization, max_regularization: range of the term added to the diagonal of Q_uu. It is raised
            tenfold when Q_uu has no Cholesky factor or no step is accepted, lowered tenfold after full
            steps, and zero below the minimum.
    """

    max_iterations: int = eqx.field(static=True, default=200)
    cost_tol: float = eqx.field(static=True, default=1e-8)
    hessian: Literal["exact", "gauss_newton"] = eqx.field(static=True, default="exact")
    sufficient_decrease: float = eqx.field(static=True, default=1e-4)
    max_backtracks: int = eqx.field(static=True, default=16)
    min_regularization: float = eqx.field(static=True, default=1e-6)
    max_regularization: float = eqx.field(static=True, default=1e8)

    def __check_init__(self):
        if self.max_iterations < 1:
            raise ValueError(f"max_iterations must be at least 1, got {self.max_iterations}")
        if not self.cost_tol >= 0:
            raise ValueError(f"cost_tol must be >= 0, got {self.cost_tol}")
        if self.hessian not in ("exact", "gauss_newton"):
            raise ValueError(f"hessian must be 'exact' or 'gauss_newton', got {self.hessian!r}")

    def init(self, current: Candidate, history: History, nu: int) -> ILQRState:
        """State before the first iteration."""
        states, controls = current.trajectory.states, current.trajectory.controls
        dtype, nx, N = states.dtype, states.shape[1], controls.shape[0]
        policy = BackwardPass(
            gains=jnp.zeros((N, nu, nx), dtype),
            feedforward=jnp.zeros((N, nu), dtype),
            slope=jnp.zeros((), dtype),
            value_gradient=jnp.zeros(nx, dtype),
            value_hessian=jnp.zeros((nx, nx), dtype),
            positive_definite=jnp.asarray(False),
        )
        return ILQRState(
            current=current,
            change=jnp.asarray(jnp.inf, dtype),
            policy=policy,
            regularization=jnp.zeros((), dtype),
            iterations=jnp.asarray(0),
            budget=jnp.asarray(self.max_iterations),
            history=history,
            done=jnp.asarray(False),
            result=RESULTS.max_steps_reached,
        )

    def restart(self, state: ILQRState, current: Candidate) -> ILQRState:
        """The state for another inner solve from `current`; counters and history go on."""
        return eqx.tree_at(
            lambda s: (s.current, s.change, s.budget, s.done, s.result),
            state,
            (
                current,
                jnp.full_like(state.change, jnp.inf),
                jnp.full_like(state.budget, self.max_iterations),
                ~jnp.isfinite(current.merit),
                RESULTS.where(jnp.isfinite(current.merit), RESULTS.max_steps_reached, RESULTS.nonfinite),
            ),
        )

    def step(
        self, objective: Objective, state: ILQRState, round: Round, callback: Callable | None
    ) -> ILQRState:
        """Linearize, solve the quadratic model, search along its policy."""
        current = state.current
        linear = linearize_dynamics(objective.problem.dynamics, current.trajectory, round.smoothing)
        model = objective.expand(current.trajectory, self.hessian == "gauss_newton")
        policy, regularization = self._solve_model(model, linear.A, linear.B, state.regularization)
        current = eqx.tree_at(lambda c: c.lower_level, current, current.lower_level.add_linearization(linear))

        small = self.cost_tol * jnp.maximum(1, jnp.abs(current.merit))
        stationary = (-policy.slope <= small) | (state.change <= small)
        # A regularized model may be stationary at a maximum: look once more without, and then give up.
        plain = regularization == 0
        converged = stationary & plain & policy.positive_definite
        saddle = stationary & ~plain & (state.regularization == 0) & (-policy.slope <= small)
        usable = linear.valid & policy.positive_definite & jnp.isfinite(policy.slope)
        stop = converged | saddle | ~usable

        # A search that is not wanted gets no tries: the loop inside is then skipped.
        search = line_search(
            objective, current, policy, self.sufficient_decrease, jnp.where(stop, -1, self.max_backtracks)
        )
        accepted = search.accepted & ~stop
        regularization = self._next_regularization(regularization, accepted, search.step_length, stationary)
        exhausted = ~accepted & ~stop & (regularization > self.max_regularization)
        iterations = state.iterations + jnp.where(stop, 0, 1)
        budget = state.budget - 1
        new = tree_where(accepted, search, current)
        new = eqx.tree_at(lambda c: c.lower_level, new, tree_where(stop, current, search).lower_level)
        unbounded = accepted & (new.merit < -1e15)

        record = IterationRecord(
            outer=round.outer,
            inner=iterations,
            cost=new.cost,
            merit=new.merit,
            violation=new.violation,
            step_length=jnp.where(accepted, search.step_length, 0),
            regularization=regularization,
            penalty=round.penalty,
            smoothing=jnp.asarray(jnp.nan if round.smoothing is None else round.smoothing, new.cost.dtype),
        )
        history = tree_where(stop, state.history, state.history.write(state.iterations, record))
        if callback is not None:
            jax.lax.cond(stop, lambda: None, lambda: report(callback, record))

        result = state.result
        for condition, member in (
            (exhausted, RESULTS.stalled),
            (unbounded, RESULTS.unbounded),
            (saddle, RESULTS.stalled),
            (~usable & ~converged, RESULTS.singular),
            (converged, RESULTS.successful),
        ):
            result = RESULTS.where(condition, member, result)
        return ILQRState(
            current=new,
            change=jnp.where(accepted, current.merit - search.merit, state.change),
            policy=policy,
            regularization=jnp.where(exhausted, 0, regularization),
            iterations=iterations,
            budget=budget,
            history=history,
            done=stop | exhausted | unbounded | (budget <= 0),
            result=result,
        )

    def run(
        self, objective: Objective, state: ILQRState, round: Round, callback: Callable | None
    ) -> ILQRState:
        """Iterate until done."""
        return jax.lax.while_loop(
            lambda s: ~s.done, lambda s: self.step(objective, s, round, callback), state
        )

    def _solve_model(self, model, A, B, regularization) -> tuple[BackwardPass, Array]:
        """Backward pass, repeated with more regularization until every Q_uu has a Cholesky factor."""

        def indefinite(carry):
            policy, regularization, tries = carry
            return (tries == 0) | (~policy.positive_definite & (regularization <= self.max_regularization))

        def attempt(carry):
            _, regularization, tries = carry
            regularization = jnp.where(tries == 0, regularization, self._raised(regularization))
            return backward_pass(model, A, B, regularization), regularization, tries + 1

        shape = jax.eval_shape(backward_pass, model, A, B, regularization)
        empty = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shape)
        policy, regularization, _ = jax.lax.while_loop(
            indefinite, attempt, (empty, regularization, jnp.asarray(0))
        )
        return policy, regularization

    def _raised(self, regularization: Array) -> Array:
        return jnp.maximum(10 * regularization, self.min_regularization)

    def _next_regularization(self, regularization, accepted, step_length, stationary) -> Array:
        lowered = jnp.where(step_length == 1, regularization / 10, regularization)
        lowered = jnp.where((lowered < self.min_regularization) | stationary, 0, lowered)
        return jnp.where(accepted, lowered, self._raised(regularization))
