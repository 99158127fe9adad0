"""Other people's optimizers on the same single-shooting problem: optimistix, jaxopt, optax."""

import importlib
import warnings
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._results import RESULTS
from optdyn._typing import Array, Float, Int
from optdyn.trajopt._costs import ResidualCost
from optdyn.trajopt._problem import TrajectoryProblem
from optdyn.trajopt._shooting import Shooting


class Outcome(eqx.Module):
    """Where a solver ended."""

    knots: Float[Array, "K nu"]
    iterations: Int[Array, ""]
    result: RESULTS


class OptimistixSolver(eqx.Module):
    """A minimizer or least-squares solver of optimistix, such as `BFGS` or `LevenbergMarquardt`.

    A least-squares solver needs residual costs without a loss of their own and no inequalities.

    Arguments:
        solver: an instance, such as `optimistix.BFGS(rtol=1e-6, atol=1e-6)`.
        max_steps: iterations before giving up.
    """

    solver: Any
    max_steps: int = eqx.field(static=True, default=256)

    @property
    def _least_squares(self) -> bool:
        return isinstance(self.solver, importlib.import_module("optimistix").AbstractLeastSquaresSolver)

    def check(self, problem: TrajectoryProblem) -> None:
        """Raise for a problem that this solver cannot take."""
        _no_bounds(problem, "optimistix")
        if not self._least_squares:
            return
        costs = (problem.stage_cost, problem.terminal_cost)
        if not all(isinstance(cost, ResidualCost) and cost.loss is None for cost in costs):
            raise ValueError("a least-squares solver needs costs that are ResidualCost without a loss")
        if problem.stage_constraint is not None or problem.terminal_constraint is not None:
            raise ValueError("a least-squares solver takes no inequalities: use a minimizer such as BFGS")

    def run(self, shooting: Shooting, knots: Float[Array, "K nu"]) -> Outcome:
        """Minimize from `knots`."""
        optimistix = importlib.import_module("optimistix")
        settings = {"max_steps": self.max_steps, "throw": False}
        if self._least_squares:
            found = optimistix.least_squares(
                lambda p, args: args.residual(p), self.solver, knots, args=shooting, **settings
            )
        else:
            found = optimistix.minimise(
                lambda p, args: args.value(p), self.solver, knots, args=shooting, **settings
            )
        steps = jnp.asarray(found.stats["num_steps"])
        done = found.result == optimistix.RESULTS.successful
        limit = jnp.asarray(steps >= self.max_steps)
        failed = RESULTS.where(limit, RESULTS.max_steps_reached, RESULTS.stalled)
        return Outcome(found.value, steps, RESULTS.where(done, RESULTS.successful, failed))


class JaxoptSolver(eqx.Module):
    """`LBFGS`, or `ProjectedGradient` for problems with control bounds, of jaxopt.

    Arguments:
        method: which of them.
        max_iterations: before giving up.
        tol: jaxopt's error of a solution (norm of the gradient, or of the projected step).
    """

    method: Literal["LBFGS", "ProjectedGradient"] = eqx.field(static=True, default="LBFGS")
    max_iterations: int = eqx.field(static=True, default=500)
    tol: float = eqx.field(static=True, default=1e-4)

    def __check_init__(self):
        if self.method not in ("LBFGS", "ProjectedGradient"):
            raise ValueError(f"method must be 'LBFGS' or 'ProjectedGradient', got {self.method!r}")

    def check(self, problem: TrajectoryProblem) -> None:
        """Raise for a problem that this solver cannot take."""
        if self.method == "LBFGS":
            _no_bounds(problem, "LBFGS")

    def run(self, shooting: Shooting, knots: Float[Array, "K nu"]) -> Outcome:
        """Minimize from `knots`."""
        with warnings.catch_warnings():
            # It says on import that it is no longer maintained; who asks for it by name knows.
            warnings.simplefilter("ignore", DeprecationWarning)
            jaxopt = importlib.import_module("jaxopt")
        settings = {"maxiter": self.max_iterations, "tol": self.tol, "jit": True, "implicit_diff": False}
        if self.method == "LBFGS":
            found = jaxopt.LBFGS(shooting.value, **settings).run(knots)
        else:
            solver = jaxopt.ProjectedGradient(shooting.value, jaxopt.projection.projection_box, **settings)
            bounds = tuple(jnp.broadcast_to(b, knots.shape) for b in (shooting.lower, shooting.upper))
            found = solver.run(knots, hyperparams_proj=bounds)
        done = found.state.error <= self.tol
        result = RESULTS.where(done, RESULTS.successful, RESULTS.max_steps_reached)
        return Outcome(found.params, jnp.asarray(found.state.iter_num), result)


class OptaxSolver(eqx.Module):
    """A gradient transformation of optax, knots kept within their bounds by projection.

    Arguments:
        optimizer: such as `optax.adam(1e-2)`.
        steps: number of steps, all of which are taken.
        gradient_tol: `successful` if no entry of the projected gradient at the end is above it.
    """

    optimizer: Any = eqx.field(static=True)
    steps: int = eqx.field(static=True, default=500)
    gradient_tol: float = eqx.field(static=True, default=1e-3)

    def check(self, problem: TrajectoryProblem) -> None:
        """Every problem will do."""

    def run(self, shooting: Shooting, knots: Float[Array, "K nu"]) -> Outcome:
        """Minimize from `knots`."""
        optax = importlib.import_module("optax")

        def step(carry, _):
            knots, state = carry
            gradient = jax.grad(shooting.value)(knots)
            with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
                updates, state = self.optimizer.update(gradient, state, knots)
            return (shooting.inside(optax.apply_updates(knots, updates)), state), None

        start = (shooting.inside(knots), self.optimizer.init(knots))
        (knots, _), _ = jax.lax.scan(step, start, length=self.steps)
        gradient = jax.grad(shooting.value)(knots)
        error = jnp.max(jnp.abs(shooting.inside(knots - gradient) - knots))
        result = RESULTS.where(error <= self.gradient_tol, RESULTS.successful, RESULTS.max_steps_reached)
        return Outcome(knots, jnp.asarray(self.steps), result)


def _no_bounds(problem: TrajectoryProblem, name: str) -> None:
    if problem.control_bounds is not None:
        raise ValueError(
            f"{name} takes no control bounds: use GaussNewton, ProjectedGradient or OptaxSolver, "
            "or write them as an Inequality"
        )
