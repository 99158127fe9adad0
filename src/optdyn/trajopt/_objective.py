"""Cost plus augmented-Lagrangian terms along a trajectory, with its quadratic expansion.

    equality:    lambda c + rho/2 c^2
    inequality:  (max(0, lambda + rho c)^2 - lambda^2) / (2 rho)

(Rockafellar's form; Nocedal and Wright, 'Numerical Optimization', section 17.4), per row with its own rho.
The Hessian of the terms is J' diag(rho) J over the active rows; the curvature of c is left out, which keeps
it positive semidefinite.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._typing import Array, Float
from optdyn.trajopt._constraints import ConstraintSet
from optdyn.trajopt._costs import Quadratic, expand_cost
from optdyn.trajopt._problem import TracedProblem
from optdyn.trajopt._rollout import Trajectory


class Multipliers(eqx.Module):
    """Dual estimates and penalties, one of each per row."""

    dual_stage: Float[Array, "N k"]
    dual_terminal: Float[Array, " kN"]
    penalty_stage: Float[Array, "N k"]
    penalty_terminal: Float[Array, " kN"]


class Constraints(eqx.Module):
    """Constraint values along a trajectory."""

    stage: Float[Array, "N k"]
    terminal: Float[Array, " kN"]


class StageExpansion(eqx.Module):
    """Quadratic model of the objective: stages in v = (x, u), and the terminal one in x."""

    stage: Quadratic  # stacked over time
    terminal: Quadratic


class Objective(eqx.Module):
    """The function that one inner solve minimizes."""

    problem: TracedProblem
    multipliers: Multipliers

    def constraints(self, trajectory: Trajectory) -> Constraints:
        """Values of all constraint rows."""
        N = self.problem.horizon
        stage = jax.vmap(self.problem.stage)(trajectory.states[:-1], trajectory.controls, jnp.arange(N))
        return Constraints(stage, self.problem.terminal(trajectory.states[-1]))

    def violation(self, constraints: Constraints) -> Float[Array, ""]:
        """Largest violation of any row; 0 without constraints."""
        stage = self.problem.stage.violation(constraints.stage)
        terminal = self.problem.terminal.violation(constraints.terminal)
        return jnp.maximum(jnp.max(stage, initial=0.0), jnp.max(terminal, initial=0.0))

    def cost(self, trajectory: Trajectory) -> Float[Array, ""]:
        """The user's cost, without terms for the constraints."""
        N = self.problem.horizon
        stage = jax.vmap(self.problem.stage_cost)(trajectory.states[:-1], trajectory.controls, jnp.arange(N))
        return jnp.sum(stage) + self.problem.terminal_cost(trajectory.states[-1])

    def merit(self, trajectory: Trajectory) -> tuple[Array, Array, Array]:
        """(augmented Lagrangian, cost, violation); infinite where a step of the trajectory failed."""
        cost, c, m = self.cost(trajectory), self.constraints(trajectory), self.multipliers
        terms = jnp.sum(_term(self.problem.stage, c.stage, m.dual_stage, m.penalty_stage))
        terms = terms + jnp.sum(_term(self.problem.terminal, c.terminal, m.dual_terminal, m.penalty_terminal))
        merit = cost + terms
        usable = trajectory.valid & jnp.isfinite(merit)
        return jnp.where(usable, merit, jnp.inf), cost, self.violation(c)

    def expand(self, trajectory: Trajectory, gauss_newton: bool) -> StageExpansion:
        """Second-order expansion at every knot."""
        nx = trajectory.states.shape[1]
        problem, m = self.problem, self.multipliers

        def stage(x, u, t, dual, penalty):
            def split(v):
                return v[:nx], v[nx:], t

            v = jnp.concatenate([x, u])
            quadratic = expand_cost(problem.stage_cost, v, split, gauss_newton)
            return _add_terms(quadratic, problem.stage, v, split, dual, penalty)

        N = problem.horizon
        args = (trajectory.states[:-1], trajectory.controls, jnp.arange(N), m.dual_stage, m.penalty_stage)
        x = trajectory.states[-1]
        terminal = expand_cost(problem.terminal_cost, x, lambda x: (x,), gauss_newton)
        terminal = _add_terms(
            terminal, problem.terminal, x, lambda x: (x,), m.dual_terminal, m.penalty_terminal
        )
        return StageExpansion(jax.vmap(stage)(*args), terminal)


def _force(rows: ConstraintSet, c: Array, dual: Array, penalty: Array) -> Array:
    """First-order dual estimate: the derivative of the terms by c."""
    estimate = dual + penalty * c
    return jnp.where(rows.mask(c), jnp.maximum(estimate, 0), estimate)


def _term(rows: ConstraintSet, c: Array, dual: Array, penalty: Array) -> Array:
    force = _force(rows, c, dual, penalty)
    inequality = (force**2 - dual**2) / (2 * penalty)
    return jnp.where(rows.mask(c), inequality, dual * c + penalty * c**2 / 2)


def _add_terms(quadratic: Quadratic, rows: ConstraintSet, v, split, dual, penalty) -> Quadratic:
    if rows.size == 0:
        return quadratic

    def values(v):
        c = rows(*split(v))
        return c, c

    J, c = jax.jacfwd(values, has_aux=True)(v)
    force = _force(rows, c, dual, penalty)
    active = ~rows.mask(c) | (force > 0)
    return Quadratic(
        value=quadratic.value + jnp.sum(_term(rows, c, dual, penalty)),
        gradient=quadratic.gradient + J.T @ force,
        hessian=quadratic.hessian + J.T @ (jnp.where(active, penalty, 0)[:, None] * J),
    )


def dual_update(rows: ConstraintSet, c: Array, dual: Array, penalty: Array) -> Array:
    """First-order update of the multipliers."""
    return _force(rows, c, dual, penalty)
