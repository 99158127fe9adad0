"""The trajectory optimization problem. No solver."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from optdyn._tree import trace_function
from optdyn._typing import Array, Float
from optdyn.dynamics import AbstractDynamics
from optdyn.trajopt._constraints import ConstraintSet, Equality, Inequality, stack_constraints
from optdyn.trajopt._costs import ResidualCost


def _static_bounds(bounds) -> tuple | None:
    """Bounds as nested tuples of floats, which can be hashed."""
    if bounds is None:
        return None
    arrays = [np.asarray(bound, dtype=float) for bound in bounds]
    return tuple(float(a) if a.ndim == 0 else tuple(a.ravel().tolist()) for a in arrays)


class TrajectoryProblem(eqx.Module):
    """Minimize `sum_t stage_cost(x_t, u_t, t) + terminal_cost(x_N)` over the controls u_0 .. u_{N-1}.

    Subject to `x_{t+1} = dynamics.step(x_t, u_t, t)`, the constraints, and `lower <= u_t <= upper`.

    Arguments:
        dynamics: an `AbstractDynamics`.
        horizon: number of stages N >= 1.
        stage_cost: `(x, u, t) -> scalar`, or `ResidualCost`. t is the stage index, an integer array.
        terminal_cost: `(x) -> scalar`, or `ResidualCost`.
        stage_constraint: `Equality` or `Inequality` (or several) of `(x, u, t)`, for t = 0 .. N-1.
        terminal_constraint: the same of `(x)`, at x_N.
        control_bounds: `(lower, upper)`, each [control_dim] or a number; infinite entries are absent.
    """

    dynamics: AbstractDynamics
    horizon: int = eqx.field(static=True)
    stage_cost: Callable
    terminal_cost: Callable
    stage_constraint: Equality | Inequality | Sequence | None = None
    terminal_constraint: Equality | Inequality | Sequence | None = None
    # Which bounds are finite decides the number of constraint rows, so they are constants of the program.
    control_bounds: tuple | None = eqx.field(static=True, default=None, converter=_static_bounds)

    def __check_init__(self):
        if not isinstance(self.dynamics, AbstractDynamics):
            raise TypeError(f"dynamics must be an AbstractDynamics, got {type(self.dynamics).__name__}")
        if (
            isinstance(self.horizon, bool)
            or not isinstance(self.horizon, int | np.integer)
            or self.horizon < 1
        ):
            raise ValueError(f"horizon must be an integer >= 1, got {self.horizon}")
        if self.control_bounds is not None:
            if len(self.control_bounds) != 2:
                raise ValueError("control_bounds must be a pair (lower, upper)")
            lower, upper = (np.asarray(b, dtype=float) for b in self.control_bounds)
            for name, bound in (("lower", lower), ("upper", upper)):
                if bound.shape not in ((), (self.dynamics.control_dim,)):
                    expected = (self.dynamics.control_dim,)
                    raise ValueError(f"{name} control bound must have shape {expected}, got {bound.shape}")
                if np.isnan(bound).any():
                    raise ValueError(f"{name} control bound contains NaN")
            if not np.all(np.broadcast_to(lower, upper.shape) <= upper):
                raise ValueError("every lower control bound must be at most its upper bound")


class TracedProblem(eqx.Module):
    """A problem whose user functions were run once; everything downstream replays them."""

    dynamics: AbstractDynamics
    horizon: int = eqx.field(static=True)
    stage_cost: Callable
    terminal_cost: Callable
    stage: ConstraintSet
    terminal: ConstraintSet


def trace_problem(problem: TrajectoryProblem, x0: Float[Array, " nx"]) -> TracedProblem:
    """Run each of the user's functions once on abstract inputs; shapes are checked on the way."""
    x = jax.ShapeDtypeStruct(x0.shape, x0.dtype)
    u = jax.ShapeDtypeStruct((problem.dynamics.control_dim,), x0.dtype)
    t = jax.ShapeDtypeStruct((), jnp.asarray(0).dtype)
    bounds = problem.control_bounds
    if bounds is not None:
        bounds = tuple(np.broadcast_to(np.asarray(b, x0.dtype), u.shape) for b in bounds)
    stage = stack_constraints(problem.stage_constraint, bounds, (x, u, t), "stage_constraint")
    terminal = stack_constraints(problem.terminal_constraint, None, (x,), "terminal_constraint")
    return TracedProblem(
        dynamics=problem.dynamics.traced(x, u, t),
        horizon=int(problem.horizon),
        stage_cost=_trace_cost("stage_cost", problem.stage_cost, x, u, t),
        terminal_cost=_trace_cost("terminal_cost", problem.terminal_cost, x),
        stage=ConstraintSet(trace_function(stage.fn, x, u, t), stage.inequality),
        terminal=ConstraintSet(trace_function(terminal.fn, x), terminal.inequality),
    )


def _trace_cost(name: str, cost: Callable, *args) -> Callable:
    if isinstance(cost, ResidualCost):
        return ResidualCost(
            trace_function(lambda *a: jnp.asarray(cost.residual(*a)).astype(a[0].dtype), *args)
        )

    def checked(*a):
        value = jnp.asarray(cost(*a))
        if value.shape != ():
            raise ValueError(f"{name} must return a scalar, got shape {value.shape}")
        return value.astype(a[0].dtype)

    return trace_function(checked, *args)
