"""The entry: `optimize_trajectory`."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from optdyn._results import RESULTS, first_failed
from optdyn._tree import all_finite, as_float_arrays
from optdyn._typing import Array, Float, Int
from optdyn.dynamics import StepInfo
from optdyn.trajopt._augmented_lagrangian import AugmentedLagrangian
from optdyn.trajopt._history import History, LowerLevelTotals, no_solves
from optdyn.trajopt._ilqr import ILQR
from optdyn.trajopt._line_search import evaluate
from optdyn.trajopt._objective import Multipliers, Objective
from optdyn.trajopt._problem import TrajectoryProblem, trace_problem
from optdyn.trajopt._rollout import not_simulated


class TrajectoryStats(eqx.Module):
    """Numbers about an optimization.

    `outer_iterations`: rounds of the augmented Lagrangian (1 for a plain iLQR). `inner_iterations`: line
    searches over all rounds. `history`: a row per iteration. `lower_level`: totals of the lower-level
    solves. `multipliers`: final duals and penalties.
    """

    outer_iterations: Int[Array, ""]
    inner_iterations: Int[Array, ""]
    history: History
    lower_level: LowerLevelTotals
    multipliers: Multipliers


class Plan(eqx.Module):
    """Answer of `optimize_trajectory`.

    Attributes:
        states: x_0 .. x_N; they are the rollout of `controls`.
        controls: u_0 .. u_{N-1}.
        parameters: the shared parameters p; empty where the problem has none.
        gains: feedback `u = controls[t] + gains[t] (x - states[t])`, the difference in tangent coordinates.
        feedforward: the step that the last model would still take; about 0 at a solution.
        value_gradient, value_hessian: derivatives of the optimal cost by x_0, in tangent coordinates.
        cost: the user's cost, without terms for the constraints.
        constraint_violation: largest violation of any constraint row.
        step_info: information of each step (stacked over time), such as contact impulses.
        result: a member of `optdyn.RESULTS`.
        stats: see `TrajectoryStats`.
    """

    states: Float[Array, "N+1 nx"]
    controls: Float[Array, "N nu"]
    parameters: Float[Array, " np"]
    gains: Float[Array, "N nu ndx"]
    feedforward: Float[Array, "N nu"]
    value_gradient: Float[Array, " ndx"]
    value_hessian: Float[Array, "ndx ndx"]
    cost: Float[Array, ""]
    constraint_violation: Float[Array, ""]
    step_info: StepInfo
    result: RESULTS
    stats: TrajectoryStats


def optimize_trajectory(
    problem: TrajectoryProblem,
    x0: Float[Array, " nx"],
    controls: Float[Array, "N nu"],
    *,
    solver: AugmentedLagrangian | ILQR | None = None,
    throw: bool = True,
    callback: Callable | None = None,
) -> Plan:
    """Optimize the controls of a trajectory that starts at `x0`.

    Arguments:
        problem: the problem.
        x0: initial state [state_dim]; for a problem with `initial_state`, the first guess of its parameters.
        controls: initial guess [horizon, control_dim].

    Other Arguments:
        solver: `AugmentedLagrangian(ILQR())` (default) or, without constraints, `ILQR()`.
        throw: raise when no plan was found (also inside `jit`). With `throw=False` look at `result`.
        callback: called on the host with an `IterationRecord` after every iteration.

    Returns: a `Plan`, compiled as one program; a second call with other numbers compiles nothing.

    Raises:
        ValueError: for shapes that do not fit.
        TypeError: for arguments of the wrong kind.
        RuntimeError: with the reason, when no plan was found and `throw` is set.
    """
    if not isinstance(problem, TrajectoryProblem):
        raise TypeError(f"problem must be a TrajectoryProblem, got {type(problem).__name__}")
    solver = AugmentedLagrangian(ILQR()) if solver is None else solver
    if not isinstance(solver, AugmentedLagrangian | ILQR):
        raise TypeError(f"solver must be AugmentedLagrangian or ILQR, got {type(solver).__name__}")
    constraints = (
        problem.stage_constraint,
        problem.terminal_constraint,
        problem.parameter_constraint,
        problem.control_bounds,
    )
    if isinstance(solver, ILQR) and any(c is not None for c in constraints):
        raise ValueError(
            "ILQR takes no constraints or control bounds: use solver=AugmentedLagrangian(ILQR())"
        )
    x0, controls = check_shapes(problem, x0, controls)
    plan = _optimize(problem, x0, controls, as_float_arrays(solver), callback)
    if throw:
        plan = plan.result.error_if(plan, plan.result != RESULTS.successful)
    return plan


def check_shapes(problem: TrajectoryProblem, x0, controls) -> tuple[Array, Array]:
    """State and controls as arrays of one float type; one clear error for shapes that do not fit."""
    nx, nu = problem.dynamics.state_dim, problem.dynamics.control_dim
    x0, controls = _float_array(x0), _float_array(controls)
    if problem.initial_state is not None:
        if x0.ndim != 1:
            raise ValueError(f"the guess of the parameters must be a vector, got shape {x0.shape}")
    elif x0.shape != (nx,):
        raise ValueError(f"x0 must have shape ({nx},), got {x0.shape}")
    if controls.shape != (problem.horizon, nu):
        raise ValueError(
            f"controls must have shape (horizon, control_dim) = {(problem.horizon, nu)}, got {controls.shape}"
        )
    return x0, controls.astype(x0.dtype)


def _float_array(value) -> Array:
    array = jnp.asarray(value)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(jnp.result_type(float))


@eqx.filter_jit
def _optimize(problem: TrajectoryProblem, x0, controls, solver, callback) -> Plan:
    if isinstance(solver, ILQR):
        solver = AugmentedLagrangian(solver, max_rounds=1)
    traced = trace_problem(problem, x0)
    objective = Objective(traced, solver._initial_multipliers(traced, x0.dtype))
    first = x0 if traced.start is None else traced.start.state(x0)
    start = evaluate(objective, not_simulated(traced.dynamics, first, controls), no_solves(x0.dtype))
    state = solver.run(traced, start, callback)
    inner = state.inner
    trajectory = inner.current.trajectory

    # No later trajectory with a failed solve is accepted: where there is one, the first rollout failed.
    lower = first_failed(trajectory.info.result)
    result = RESULTS.where(lower == RESULTS.successful, state.result, lower)
    result = RESULTS.where(all_finite((problem, x0, controls)), result, RESULTS.nonfinite_input)
    nx = problem.dynamics.state_dim
    n = problem.dynamics.state_space.tangent_dim(nx)
    return Plan(
        states=trajectory.states[:, :nx],
        controls=trajectory.controls,
        parameters=traced.parameters(trajectory.states[0]),
        gains=inner.policy.gains[:, :, :n],
        feedforward=inner.policy.feedforward,
        value_gradient=inner.policy.value_gradient[:n],
        value_hessian=inner.policy.value_hessian[:n, :n],
        cost=inner.current.cost,
        constraint_violation=inner.current.violation,
        step_info=trajectory.info,
        result=result,
        stats=TrajectoryStats(
            outer_iterations=state.outer,
            inner_iterations=inner.iterations,
            history=inner.history,
            lower_level=inner.current.lower_level,
            multipliers=state.multipliers,
        ),
    )
