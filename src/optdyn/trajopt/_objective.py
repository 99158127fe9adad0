"""Cost plus augmented-Lagrangian terms along a trajectory, with its quadratic expansion.

    equality:    lambda c + rho/2 c^2
    inequality:  (max(0, lambda + rho c)^2 - lambda^2) / (2 rho)

(Rockafellar's form; Nocedal and Wright, 'Numerical Optimization', section 17.4), per row with its own rho.
The Hessian of the terms is J' diag(rho) J over the active rows; the curvature of c is left out, which keeps
it positive semidefinite.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._typing import Array, Float
from optdyn.trajopt._constraints import ConstraintSet
from optdyn.trajopt._costs import Quadratic, expand_cost
from optdyn.trajopt._problem import ConstraintRows, TracedProblem
from optdyn.trajopt._rollout import Trajectory


class Rows(eqx.Module):
    """A number for each constraint row: of all stages, of the end, and of the parameters."""

    stage: Float[Array, "N k"]
    terminal: Float[Array, " kN"]
    parameters: Float[Array, " kp"]

    def largest(self) -> Float[Array, ""]:
        """The largest of all; 0 where there is none."""
        each = [jnp.max(rows, initial=0.0) for rows in (self.stage, self.terminal, self.parameters)]
        return jnp.max(jnp.stack(each))


class Multipliers(eqx.Module):
    """Dual estimates and penalties, one of each per row."""

    dual: Rows
    penalty: Rows


class ParameterExpansion(eqx.Module):
    """Quadratic model of what the parameters themselves cost, and how the first state follows them."""

    own: Quadratic
    tangent: Float[Array, "ndx np"]


class StageExpansion(eqx.Module):
    """Quadratic model of the objective in tangent coordinates: stages in (x, u), the terminal one in x."""

    stage: Quadratic  # stacked over time
    terminal: Quadratic
    parameters: ParameterExpansion | None


class Objective(eqx.Module):
    """The function that one inner solve minimizes."""

    problem: TracedProblem
    multipliers: Multipliers

    def constraints(self, trajectory: Trajectory) -> Rows:
        """Values of all constraint rows."""
        N, rows = self.problem.horizon, self.problem.rows
        stage = jax.vmap(rows.stage)(trajectory.states[:-1], trajectory.controls, jnp.arange(N))
        parameters = self.problem.parameters(trajectory.states[0])
        return Rows(stage, rows.terminal(trajectory.states[-1]), rows.parameters(parameters))

    def violation(self, constraints: Rows) -> Float[Array, ""]:
        """Largest violation of any row; 0 without constraints."""
        return each_kind(ConstraintSet.violation, self.problem.rows, constraints).largest()

    def cost(self, trajectory: Trajectory) -> Float[Array, ""]:
        """The user's cost, without terms for the constraints."""
        N, problem = self.problem.horizon, self.problem
        stage = jax.vmap(problem.stage_cost)(trajectory.states[:-1], trajectory.controls, jnp.arange(N))
        cost = jnp.sum(stage) + problem.terminal_cost(trajectory.states[-1])
        if problem.start is None:
            return cost
        return cost + problem.start.cost(problem.parameters(trajectory.states[0]))

    def merit(self, trajectory: Trajectory) -> tuple[Array, Array, Array]:
        """(augmented Lagrangian, cost, violation); infinite where a step of the trajectory failed."""
        cost, c, m = self.cost(trajectory), self.constraints(trajectory), self.multipliers
        terms = each_kind(_term, self.problem.rows, c, m.dual, m.penalty)
        merit = cost + jnp.sum(terms.stage) + jnp.sum(terms.terminal) + jnp.sum(terms.parameters)
        usable = trajectory.valid & jnp.isfinite(merit)
        return jnp.where(usable, merit, jnp.inf), cost, self.violation(c)

    def expand(self, trajectory: Trajectory, gauss_newton: bool) -> StageExpansion:
        """Second-order expansion at every knot."""
        problem, m = self.problem, self.multipliers
        space = problem.dynamics.state_space
        n = space.tangent_dim(trajectory.states.shape[1])

        def stage(x, u, t, dual, penalty):
            def split(v):
                return space.retract(x, v[:n]), u + v[n:], t

            v = jnp.zeros(n + u.size, x.dtype)
            quadratic = expand_cost(problem.stage_cost, v, split, gauss_newton)
            return _add_terms(quadratic, problem.rows.stage, v, split, dual, penalty)

        N = problem.horizon
        args = (trajectory.states[:-1], trajectory.controls, jnp.arange(N), m.dual.stage, m.penalty.stage)
        last = trajectory.states[-1]

        def end(v):
            return (space.retract(last, v),)

        v = jnp.zeros(n, last.dtype)
        terminal = expand_cost(problem.terminal_cost, v, end, gauss_newton)
        terminal = _add_terms(terminal, problem.rows.terminal, v, end, m.dual.terminal, m.penalty.terminal)
        return StageExpansion(jax.vmap(stage)(*args), terminal, self._expand_parameters(trajectory))

    def _expand_parameters(self, trajectory: Trajectory) -> ParameterExpansion | None:
        start, m = self.problem.start, self.multipliers
        if start is None:
            return None
        p = self.problem.parameters(trajectory.states[0])

        def whole(p):
            return (p,)

        own = expand_cost(start.cost, p, whole, gauss_newton=False)
        own = _add_terms(own, self.problem.rows.parameters, p, whole, m.dual.parameters, m.penalty.parameters)
        return ParameterExpansion(own, start.tangent(p))


def each_kind(fn: Callable, sets: ConstraintRows, *rows: Rows) -> Rows:
    """`fn(constraint set, its part of each of the rows)` for stages, end and parameters."""
    return Rows(
        fn(sets.stage, *(r.stage for r in rows)),
        fn(sets.terminal, *(r.terminal for r in rows)),
        fn(sets.parameters, *(r.parameters for r in rows)),
    )


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
