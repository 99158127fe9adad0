"""The trajectory optimization problem. No solver."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from optdyn._tree import trace_function
from optdyn._typing import Array, Float
from optdyn.dynamics import AbstractDynamics
from optdyn.trajopt._constraints import ConstraintSet, Equality, Inequality, stack_constraints
from optdyn.trajopt._costs import ResidualCost
from optdyn.trajopt._parameters import FreeStart, WithParameters


def _static_bounds(bounds) -> tuple | None:
    """Bounds as nested tuples of floats, which can be hashed."""
    if bounds is None:
        return None
    arrays = [np.asarray(bound, dtype=float) for bound in bounds]
    return tuple(float(a) if a.ndim == 0 else tuple(a.ravel().tolist()) for a in arrays)


class TrajectoryProblem(eqx.Module):
    """Minimize `sum_t stage_cost(x_t, u_t, t) + terminal_cost(x_N)` over the controls u_0 .. u_{N-1}.

    Subject to `x_{t+1} = dynamics.step(x_t, u_t, t)`, the constraints, and `lower <= u_t <= upper`.

    With `initial_state` the problem has shared parameters p, numbers that are optimized together with the
    controls, and every other function of the problem takes p as one more, last argument. The first state is
    `x_0 = initial_state(p)`: a free initial state is `initial_state=lambda p: p`, a periodic motion has in
    addition `terminal_constraint=Equality(lambda x, p: x - p)`. Stages are linked through p in the same way.

    Arguments:
        dynamics: an `AbstractDynamics`.
        horizon: number of stages N >= 1.
        stage_cost: `(x, u, t) -> scalar`, or `ResidualCost`. t is the stage index, an integer array.
        terminal_cost: `(x) -> scalar`, or `ResidualCost`.
        stage_constraint: `Equality` or `Inequality` (or several) of `(x, u, t)`, for t = 0 .. N-1.
        terminal_constraint: the same of `(x)`, at x_N.
        control_bounds: `(lower, upper)`, each [control_dim] or a number; infinite entries are absent.
        initial_state: `(p) -> x_0`, or None for an initial state that is given (no parameters).
        parameter_cost: `(p) -> scalar`, added once.
        parameter_constraint: `Equality` or `Inequality` (or several) of `(p)`.
    """

    dynamics: AbstractDynamics
    horizon: int = eqx.field(static=True)
    stage_cost: Callable
    terminal_cost: Callable
    stage_constraint: Equality | Inequality | Sequence | None = None
    terminal_constraint: Equality | Inequality | Sequence | None = None
    # Which bounds are finite decides the number of constraint rows, so they are constants of the program.
    control_bounds: tuple | None = eqx.field(static=True, default=None, converter=_static_bounds)
    initial_state: Callable | None = None
    parameter_cost: Callable | None = None
    parameter_constraint: Equality | Inequality | Sequence | None = None

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
        for name in ("parameter_cost", "parameter_constraint"):
            if getattr(self, name) is not None and self.initial_state is None:
                raise ValueError(f"{name} is given, but there are no parameters: give initial_state too")


class ConstraintRows(eqx.Module):
    """All constraint functions of a problem."""

    stage: ConstraintSet
    terminal: ConstraintSet
    parameters: ConstraintSet

    @property
    def size(self) -> int:
        """Number of rows of one stage, the end and the parameters."""
        return self.stage.size + self.terminal.size + self.parameters.size


class TracedProblem(eqx.Module):
    """A problem whose user functions were run once; everything downstream replays them.

    With parameters, states are (x, p) here.
    """

    dynamics: AbstractDynamics
    horizon: int = eqx.field(static=True)
    stage_cost: Callable
    terminal_cost: Callable
    rows: ConstraintRows
    start: FreeStart | None

    def parameters(self, state: Float[Array, "*b nx"]) -> Float[Array, "*b np"]:
        """Parameters of a state (x, p); empty where there are no parameters."""
        if self.start is None:
            return state[..., :0]
        return self.start.dynamics.split(state)[1]


def trace_problem(problem: TrajectoryProblem, x0: Float[Array, " nx"]) -> TracedProblem:
    """Run each of the user's functions once on abstract inputs; shapes are checked on the way.

    `x0` is the initial state, or p where there are parameters.
    """
    dtype = x0.dtype
    x = jax.ShapeDtypeStruct((problem.dynamics.state_dim,), dtype)
    u = jax.ShapeDtypeStruct((problem.dynamics.control_dim,), dtype)
    t = jax.ShapeDtypeStruct((), jnp.asarray(0).dtype)
    bounds = problem.control_bounds
    if bounds is not None:
        bounds = tuple(np.broadcast_to(np.asarray(b, dtype), u.shape) for b in bounds)
    dynamics = problem.dynamics.traced(x, u, t)
    p = jax.ShapeDtypeStruct((0,), dtype) if problem.initial_state is None else x0
    start = None
    if problem.initial_state is not None:
        dynamics, start = _trace_start(problem, problem.initial_state, dynamics, p)
        x = jax.ShapeDtypeStruct((dynamics.state_dim,), dtype)
        problem = _with_parameters(problem, dynamics)
    stage = stack_constraints(problem.stage_constraint, bounds, (x, u, t), "stage_constraint")
    terminal = stack_constraints(problem.terminal_constraint, None, (x,), "terminal_constraint")
    parameters = stack_constraints(problem.parameter_constraint, None, (p,), "parameter_constraint")
    return TracedProblem(
        dynamics=dynamics,
        horizon=int(problem.horizon),
        stage_cost=_trace_cost("stage_cost", problem.stage_cost, x, u, t),
        terminal_cost=_trace_cost("terminal_cost", problem.terminal_cost, x),
        rows=ConstraintRows(
            ConstraintSet(trace_function(stage.fn, x, u, t), stage.inequality),
            ConstraintSet(trace_function(terminal.fn, x), terminal.inequality),
            ConstraintSet(trace_function(parameters.fn, p), parameters.inequality),
        ),
        start=start,
    )


def _trace_start(
    problem: TrajectoryProblem, initial_state: Callable, dynamics: AbstractDynamics, p
) -> tuple[WithParameters, FreeStart]:
    """Dynamics of (x, p), and how p gives the first state."""

    def first_state(p):
        x = jnp.asarray(initial_state(p))
        if x.shape != (dynamics.state_dim,):
            raise ValueError(f"initial_state must return shape ({dynamics.state_dim},), got {x.shape}")
        return x.astype(p.dtype)

    def no_cost(p):
        return jnp.zeros((), p.dtype)

    cost = no_cost if problem.parameter_cost is None else problem.parameter_cost
    extended = WithParameters(dynamics, p.size)
    cost = _trace_cost("parameter_cost", cost, p)
    return extended, FreeStart(extended, trace_function(first_state, p), cost)


def _with_parameters(problem: TrajectoryProblem, dynamics: WithParameters) -> TrajectoryProblem:
    """The same problem with functions of the state (x, p) in place of functions of x and p."""

    def spread(fn):
        def spread_fn(state, *others):
            x, p = dynamics.split(state)
            return fn(x, *others, p)

        return spread_fn

    def each(given):
        if given is None:
            return None
        if isinstance(given, list | tuple):
            return [each(one) for one in given]
        if isinstance(given, Equality | Inequality):
            return replace(given, fn=spread(given.fn))
        if isinstance(given, ResidualCost):
            return ResidualCost(spread(given.residual), given.loss)
        return spread(given) if callable(given) else given

    names = ("stage_cost", "terminal_cost", "stage_constraint", "terminal_constraint")
    return replace(problem, **{name: each(getattr(problem, name)) for name in names})


def _trace_cost(name: str, cost: Callable, *args) -> Callable:
    if isinstance(cost, ResidualCost):
        residual = trace_function(lambda *a: jnp.asarray(cost.residual(*a)).astype(a[0].dtype), *args)
        r = jax.eval_shape(residual, *args)
        if len(r.shape) != 1:
            raise ValueError(f"{name}: a residual must be a vector, got shape {r.shape}")
        if cost.loss is None:
            return ResidualCost(residual)
        return ResidualCost(residual, _trace_cost(f"the loss of {name}", cost.loss, r))

    def checked(*a):
        value = jnp.asarray(cost(*a))
        if value.shape != ():
            raise ValueError(f"{name} must return a scalar, got shape {value.shape}")
        return value.astype(a[0].dtype)

    return trace_function(checked, *args)
