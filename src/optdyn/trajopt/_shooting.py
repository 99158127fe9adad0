"""Single shooting: a trajectory problem as a function of the knots of its controls."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from optdyn._tree import stop_gradient
from optdyn._typing import Array, Float
from optdyn.trajopt._barrier import RelaxedBarrier
from optdyn.trajopt._constraints import Equality
from optdyn.trajopt._costs import ResidualCost
from optdyn.trajopt._problem import TracedProblem, TrajectoryProblem, trace_problem
from optdyn.trajopt._rollout import Trajectory, not_simulated
from optdyn.trajopt._spline import ControlSpline
from optdyn.trajopt._states import Derivatives, differentiable_states, open_loop


class SingleShooting(eqx.Module):
    """A `TrajectoryProblem` to be solved over the knots of a control spline, the states eliminated.

    Inequalities become relaxed barriers in the cost; `control_bounds` stay bounds, of the knots.

    Arguments:
        problem: without equalities and shared parameters. `GaussNewton` needs costs that are `ResidualCost`;
            the other solvers take any.
        spline: how knots make controls.
        barrier: cost of the rows of every `Inequality`.
        derivatives: of the states by the controls. "linearize": from the linearization of every stage;
            "rollout": through `step`; "auto": "linearize" for dynamics that have one of their own (programs,
            integrators, bundles), "rollout" for the others (networks, plain functions).

    Raises:
        TypeError: for something that is not a `TrajectoryProblem`.
        ValueError: for equalities, shared parameters, or unknown `derivatives`.
    """

    problem: TrajectoryProblem
    spline: ControlSpline = ControlSpline()
    barrier: RelaxedBarrier = RelaxedBarrier()
    derivatives: Derivatives = eqx.field(static=True, default="auto")

    def __check_init__(self):
        problem = self.problem
        if not isinstance(problem, TrajectoryProblem):
            raise TypeError(f"problem must be a TrajectoryProblem, got {type(problem).__name__}")
        if self.derivatives not in ("auto", "rollout", "linearize"):
            raise ValueError(
                f"derivatives must be 'auto', 'rollout' or 'linearize', got {self.derivatives!r}"
            )
        if problem.initial_state is not None:
            raise ValueError("single shooting takes no shared parameters: use AugmentedLagrangian(ILQR())")
        for given in (problem.stage_constraint, problem.terminal_constraint):
            several = given if isinstance(given, list | tuple) else (given,)
            if any(isinstance(one, Equality) for one in several):
                raise ValueError(
                    "single shooting takes no Equality: write it as a ResidualCost, "
                    "or use AugmentedLagrangian(ILQR())"
                )


class QuadraticModel(eqx.Module):
    """Gradient and Gauss-Newton Hessian of the merit by the knots, flat."""

    gradient: Float[Array, " P"]
    hessian: Float[Array, "P P"]


class Terms(eqx.Module):
    """What costs: residuals (or costs themselves, as vectors of one) and values of constraints."""

    stage: Float[Array, "N k"]
    terminal: Float[Array, " kN"]
    stage_rows: Float[Array, "N m"]
    terminal_rows: Float[Array, " mN"]


class Shooting(eqx.Module):
    """`SingleShooting` for one initial state, its functions traced."""

    problem: TracedProblem
    barrier: RelaxedBarrier
    basis: Float[Array, "N K"]
    lower: Float[Array, " nu"]
    upper: Float[Array, " nu"]
    cut: bool = eqx.field(static=True)  # controls can leave the bounds between knots
    derivatives: Derivatives = eqx.field(static=True)
    x0: Float[Array, " nx"]

    def inside(self, knots: Float[Array, "K nu"]) -> Float[Array, "K nu"]:
        """The nearest knots within the bounds."""
        return jnp.clip(knots, self.lower[None], self.upper[None])

    def controls(self, knots: Float[Array, "K nu"]) -> Float[Array, "N nu"]:
        """Controls of the spline."""
        controls = self.basis @ knots
        if not self.cut:
            return controls
        # Not `clip`, whose derivative at a bound is neither one nor zero.
        controls = jnp.where(controls < self.lower[None], self.lower[None], controls)
        return jnp.where(controls > self.upper[None], self.upper[None], controls)

    def simulate(self, knots: Float[Array, "K nu"], nominal: Trajectory | None = None) -> Trajectory:
        """Roll out, each lower-level solve from its answer in `nominal`; no derivative."""
        controls = self.controls(knots)
        chained = nominal is None
        start = not_simulated(self.problem.dynamics, self.x0, controls) if nominal is None else nominal
        return open_loop(self.problem.dynamics, start, controls, chained)

    def merit(self, trajectory: Trajectory) -> tuple[Array, Array, Array]:
        """(cost with barriers, cost, violation); infinite where a step of the trajectory failed."""
        terms = self._terms(trajectory.states, trajectory.controls)
        cost, barrier = self._cost(terms), self._barrier(terms)
        usable = trajectory.valid & jnp.isfinite(cost + barrier)
        rows = [jnp.max(c, initial=0.0) for c in (terms.stage_rows, terms.terminal_rows)]
        return jnp.where(usable, cost + barrier, jnp.inf), cost, jnp.maximum(*rows)

    def value(self, knots: Float[Array, "K nu"]) -> Float[Array, ""]:
        """Cost with barriers as a differentiable function; infinite where a step fails."""
        trajectory = stop_gradient(self.simulate(knots))
        terms = self._terms(*self._path(trajectory, knots))
        return jnp.where(trajectory.valid, self._cost(terms) + self._barrier(terms), jnp.inf)

    def residual(self, knots: Float[Array, "K nu"]) -> Float[Array, " k"]:
        """All residuals in one vector, differentiable; infinite where a step fails."""
        trajectory = stop_gradient(self.simulate(knots))
        terms = self._terms(*self._path(trajectory, knots))
        r = jnp.concatenate([terms.stage.ravel(), terms.terminal])
        return jnp.where(trajectory.valid, r, jnp.inf)

    def model(self, trajectory: Trajectory, knots: Float[Array, "K nu"]) -> QuadraticModel:
        """Generalized Gauss-Newton around a trajectory: J' (curvature of losses and barriers) J."""
        shape = knots.shape

        def terms(p):
            return self._terms(*self._path(trajectory, p.reshape(shape)))

        J, r = jax.jacfwd(terms)(knots.ravel()), self._terms(trajectory.states, trajectory.controls)
        stage, terminal = self.problem.stage_cost, self.problem.terminal_cost
        assert isinstance(stage, ResidualCost)
        assert isinstance(terminal, ResidualCost)
        if stage.loss is None:
            flat = J.stage.reshape(-1, knots.size)
            gradient, hessian = flat.T @ r.stage.ravel(), flat.T @ flat
        else:
            _, gradients, hessians = jax.vmap(stage.derivatives)(r.stage, J.stage)
            gradient, hessian = jnp.sum(gradients, 0), jnp.sum(hessians, 0)
        _, last_gradient, last_hessian = terminal.derivatives(r.terminal, J.terminal)
        gradient, hessian = gradient + last_gradient, hessian + last_hessian
        for c, G in ((r.stage_rows, J.stage_rows), (r.terminal_rows, J.terminal_rows)):
            if c.size:
                c, G = c.ravel(), G.reshape(-1, knots.size)
                gradient = gradient + G.T @ self.barrier.slope(c)
                hessian = hessian + G.T @ (self.barrier.curvature(c)[:, None] * G)
        return QuadraticModel(gradient, hessian)

    def _path(self, trajectory: Trajectory, knots: Array) -> tuple[Array, Array]:
        controls = self.controls(knots)
        states = differentiable_states(self.problem.dynamics, trajectory, controls, self.derivatives)
        return states, controls

    def _terms(self, states: Array, controls: Array) -> Terms:
        problem, stages = self.problem, jnp.arange(len(controls))

        def residual(cost, *args):
            return cost.residual(*args) if isinstance(cost, ResidualCost) else cost(*args)[None]

        return Terms(
            jax.vmap(lambda *a: residual(problem.stage_cost, *a))(states[:-1], controls, stages),
            residual(problem.terminal_cost, states[-1]),
            jax.vmap(problem.rows.stage)(states[:-1], controls, stages),
            problem.rows.terminal(states[-1]),
        )

    def _cost(self, terms: Terms) -> Array:
        def value(cost, r):
            return cost.value(r) if isinstance(cost, ResidualCost) else r[0]

        stage = jax.vmap(lambda r: value(self.problem.stage_cost, r))(terms.stage)
        return jnp.sum(stage) + value(self.problem.terminal_cost, terms.terminal)

    def _barrier(self, terms: Terms) -> Array:
        both = (terms.stage_rows, terms.terminal_rows)
        return sum((jnp.sum(self.barrier.value(c)) for c in both), jnp.zeros((), self.x0.dtype))


def trace_shooting(shooting: SingleShooting, x0: Float[Array, " nx"]) -> Shooting:
    """Run each of the user's functions once and lay out the spline."""
    problem, dtype = shooting.problem, x0.dtype
    nu, N = problem.dynamics.control_dim, int(problem.horizon)
    bounds = (-np.inf, np.inf) if problem.control_bounds is None else problem.control_bounds
    lower, upper = (jnp.asarray(np.broadcast_to(np.asarray(b, float), nu), dtype) for b in bounds)
    bounded = any(np.isfinite(np.asarray(b)).any() for b in bounds)
    return Shooting(
        problem=trace_problem(replace(problem, control_bounds=None), x0),
        barrier=shooting.barrier,
        basis=jnp.asarray(shooting.spline.basis(N), dtype),
        lower=lower,
        upper=upper,
        cut=bounded and shooting.spline.kind == "cubic" and shooting.spline.size(N) != N,
        derivatives=shooting.derivatives,
        x0=x0,
    )
