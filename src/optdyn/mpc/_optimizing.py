"""Receding horizons with derivatives: generalized Gauss-Newton and iLQR."""

import equinox as eqx
import jax.numpy as jnp

from optdyn._results import RESULTS
from optdyn.mpc._base import AbstractController, ControlReport, resampled
from optdyn.trajopt import ILQR, AugmentedLagrangian, GaussNewton, optimize_trajectory
from optdyn.trajopt._optimize_shooting import check_solver, solve_traced


class GaussNewtonMPC(AbstractController):
    """Few iterations of generalized Gauss-Newton over the knots in each step.

    Arguments:
        solver: its `max_iterations` are those of one step.
        first_solves: how often the first step repeats them.
    """

    solver: GaussNewton = GaussNewton(max_iterations=1)
    first_solves: int = eqx.field(static=True, default=15)

    def check(self, task):
        check_solver(task, self.solver)

    def improve(self, task, shooting, controls, key):
        plan = solve_traced(shooting, resampled(task, shooting, controls), self.solver)
        return ControlReport(plan.merit, plan.result, plan.controls)


class ILQRMPC(AbstractController):
    """Few iterations of iLQR in each step; the spline of the task is not used, every control is free.

    Inequalities and control bounds go to the augmented Lagrangian, whose multipliers start anew in each step;
    the control that is applied is cut off at its bounds.

    Arguments:
        solver: `ILQR`, or `AugmentedLagrangian` for tasks with constraints or bounds.
        first_solves: how often the first step repeats its work.
    """

    solver: ILQR | AugmentedLagrangian = ILQR(max_iterations=2)
    first_solves: int = eqx.field(static=True, default=5)

    def check(self, task):
        problem = task.problem
        limits = (problem.stage_constraint, problem.terminal_constraint, problem.control_bounds)
        if isinstance(self.solver, ILQR) and any(limit is not None for limit in limits):
            raise ValueError("ILQR takes no constraints or bounds: use ILQRMPC(AugmentedLagrangian(ILQR()))")

    def improve(self, task, shooting, controls, key):
        plan = optimize_trajectory(task.problem, shooting.x0, controls, solver=self.solver, throw=False)
        finite = jnp.all(jnp.isfinite(plan.controls)) & jnp.all(jnp.isfinite(plan.states))
        kept = shooting.inside(jnp.where(finite, plan.controls, controls))
        result = RESULTS.where(finite, plan.result, RESULTS.nonfinite)
        return ControlReport(jnp.where(finite, plan.cost, jnp.inf), result, kept)
