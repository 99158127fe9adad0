"""The entry for single shooting: `optimize_shooting`."""

import equinox as eqx
import jax.numpy as jnp

from optdyn._results import RESULTS, first_failed
from optdyn._tree import all_finite
from optdyn._typing import Array, Float, Int
from optdyn.dynamics import StepInfo
from optdyn.trajopt._adapters import JaxoptSolver, OptaxSolver, OptimistixSolver
from optdyn.trajopt._costs import ResidualCost
from optdyn.trajopt._gauss_newton import GaussNewton
from optdyn.trajopt._optimize import check_shapes
from optdyn.trajopt._rollout import Trajectory
from optdyn.trajopt._shooting import Shooting, SingleShooting, trace_shooting


class ShootingStats(eqx.Module):
    """Numbers about an optimization.

    `iterations`: of the solver. `fallbacks`: those of `GaussNewton` in which random candidates replaced the
    step. `merits`, `step_lengths`: of `GaussNewton` after each iteration, NaN beyond the last; empty for
    others.
    """

    iterations: Int[Array, ""]
    fallbacks: Int[Array, ""]
    merits: Float[Array, " I"]
    step_lengths: Float[Array, " I"]


class ShootingPlan(eqx.Module):
    """Answer of `optimize_shooting`.

    Attributes:
        states: x_0 .. x_N; they are the rollout of `controls`.
        controls: u_0 .. u_{N-1}.
        knots: of the control spline.
        cost: the user's cost, without barriers.
        merit: with barriers; what the solver reduces. Infinite where a step failed.
        constraint_violation: largest value of any inequality, at least 0.
        step_info: information of each step (stacked over time), such as contact impulses.
        result: a member of `optdyn.RESULTS`.
        stats: see `ShootingStats`.
    """

    states: Float[Array, "N+1 nx"]
    controls: Float[Array, "N nu"]
    knots: Float[Array, "K nu"]
    cost: Float[Array, ""]
    merit: Float[Array, ""]
    constraint_violation: Float[Array, ""]
    step_info: StepInfo
    result: RESULTS
    stats: ShootingStats


ShootingSolver = GaussNewton | OptimistixSolver | JaxoptSolver | OptaxSolver


def optimize_shooting(
    shooting: SingleShooting,
    x0: Float[Array, " nx"],
    controls: Float[Array, "N nu"],
    *,
    solver: ShootingSolver | None = None,
    throw: bool = True,
) -> ShootingPlan:
    """Optimize the knots of the controls of a trajectory that starts at `x0`.

    Arguments:
        shooting: the problem and its spline.
        x0: initial state [state_dim].
        controls: initial guess [horizon, control_dim], resampled to knots.

    Other Arguments:
        solver: `GaussNewton()` (default), or an adapter: `OptimistixSolver`, `JaxoptSolver`, `OptaxSolver`.
        throw: raise when no plan was found (also inside `jit`). With `throw=False` look at `result`.

    Returns: a `ShootingPlan`, compiled as one program; a second call with other numbers compiles nothing.

    Raises:
        ValueError: for shapes that do not fit, or a problem that the solver cannot take.
        TypeError: for arguments of the wrong kind.
        RuntimeError: with the reason, when no plan was found and `throw` is set.
    """
    if not isinstance(shooting, SingleShooting):
        raise TypeError(f"shooting must be a SingleShooting, got {type(shooting).__name__}")
    solver = GaussNewton() if solver is None else solver
    if not isinstance(solver, ShootingSolver):
        raise TypeError(
            "solver must be GaussNewton, OptimistixSolver, JaxoptSolver or OptaxSolver, "
            f"got {type(solver).__name__}"
        )
    check_solver(shooting, solver)
    x0, controls = check_shapes(shooting.problem, x0, controls)
    plan = _optimize(shooting, x0, controls, solver)
    if throw:
        plan = plan.result.error_if(plan, plan.result != RESULTS.successful)
    return plan


def check_solver(shooting: SingleShooting, solver: ShootingSolver) -> None:
    """One clear error for a problem that the solver cannot take."""
    if isinstance(solver, GaussNewton):
        for name in ("stage_cost", "terminal_cost"):
            if not isinstance(getattr(shooting.problem, name), ResidualCost):
                raise ValueError(
                    f"GaussNewton needs residuals: {name} must be a ResidualCost, or take another solver"
                )
    else:
        solver.check(shooting.problem)


@eqx.filter_jit
def _optimize(shooting: SingleShooting, x0: Array, controls: Array, solver: ShootingSolver) -> ShootingPlan:
    traced = trace_shooting(shooting, x0)
    resampling = jnp.asarray(shooting.spline.resampling(int(shooting.problem.horizon)), x0.dtype)
    plan = solve_traced(traced, traced.inside(resampling @ controls), solver)
    finite = all_finite((shooting, x0, controls))
    result = RESULTS.where(finite, plan.result, RESULTS.nonfinite_input)
    return eqx.tree_at(lambda p: p.result, plan, result)


def solve_traced(shooting: Shooting, knots: Float[Array, "K nu"], solver: ShootingSolver) -> ShootingPlan:
    """Run a solver from `knots` and describe where it ended."""
    none = jnp.zeros(0, knots.dtype)
    if isinstance(solver, GaussNewton):
        state = solver.run(shooting, knots)
        knots, trajectory, result = state.knots, state.trajectory, state.result
        stats = ShootingStats(state.iterations, state.fallbacks, state.merits, state.step_lengths)
    else:
        outcome = solver.run(shooting, knots)
        knots, result = shooting.inside(outcome.knots), outcome.result
        trajectory = shooting.simulate(knots)
        stats = ShootingStats(outcome.iterations, jnp.asarray(0), none, none)
    merit, cost, violation = shooting.merit(trajectory)
    return ShootingPlan(
        states=trajectory.states,
        controls=trajectory.controls,
        knots=knots,
        cost=cost,
        merit=merit,
        constraint_violation=violation,
        step_info=trajectory.info,
        result=RESULTS.where(jnp.isfinite(merit), result, _failure(trajectory)),
        stats=stats,
    )


def _failure(trajectory: Trajectory) -> RESULTS:
    """Why a trajectory is of no use: the result of its first failed step, or a number that is not finite."""
    lower = first_failed(trajectory.info.result)
    return RESULTS.where(lower == RESULTS.successful, RESULTS.nonfinite, lower)
