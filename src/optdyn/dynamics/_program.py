"""Dynamics whose next state is the answer of a program or complementarity problem."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._kernel import single_kernel
from optdyn._tree import TracedFunction, stop_gradient, trace_function
from optdyn._typing import Array, PyTree
from optdyn.dynamics._base import AbstractDynamics, Linearization, StepInfo, check_dims, check_next_state
from optdyn.dynamics._space import StateSpace
from optdyn.implicit import ImplicitAdjoint, sensitivity, solve_system
from optdyn.interior_point import InteriorPoint, PathPoint, PrimalDualPoint, cold_start, run_attempts
from optdyn.programs import AbstractProblem, AbstractSystem, ravel_primal


class _Replay(eqx.Module):
    """The user's functions, traced once: `(x, u, t)` and a point in, arrays out."""

    bind: TracedFunction
    next_state: TracedFunction
    outputs: TracedFunction


class ProgramDynamics(AbstractDynamics):
    """`x_next = next_state(x, u, t, answer)`, where the answer solves `problem` at `parameters(x, u, t)`.

    Arguments:
        problem: `AbstractProgram`, `AbstractComplementarityProblem`, `QuadraticProgram` or `ConicProgram`.
        parameters: `(x, u, t) -> theta` of the problem.
        guess: `(x, u, t) -> primal`, a cold start, which also tells the structure of the answer.
        next_state: `(x, u, t, primal, cone_dual) -> x_next`.
        state_dim, control_dim: sizes of x and u.
        solver: its `central_path` is the kappa at which the system is simulated.
        smoothing: kappa at which it is linearized (None: that of the solver).
        outputs: `(x, u, t, primal, cone_dual) -> dict` of arrays kept in `StepInfo.outputs`. Default: none.
        state_space: where unit quaternions are in the state. Default: nowhere.
    """

    problem: AbstractProblem
    parameters: Callable
    guess: Callable
    next_state: Callable
    outputs: Callable
    solver: InteriorPoint
    smoothing: Array | float | None
    state_dim: int = eqx.field(static=True)
    control_dim: int = eqx.field(static=True)
    state_space: StateSpace
    replay: _Replay | None

    def __init__(
        self,
        problem: AbstractProblem,
        *,
        parameters: Callable,
        guess: Callable,
        next_state: Callable,
        state_dim: int,
        control_dim: int,
        solver: InteriorPoint | None = None,
        smoothing: float | Array | None = 1e-3,
        outputs: Callable | None = None,
        state_space: StateSpace | None = None,
    ):
        self.state_space = check_dims(state_dim, control_dim, state_space)
        self.problem, self.parameters, self.guess = problem, parameters, guess
        self.next_state = next_state
        self.outputs = _no_outputs if outputs is None else outputs
        self.solver = InteriorPoint() if solver is None else solver
        self.smoothing = smoothing
        self.state_dim, self.control_dim = state_dim, control_dim
        self.replay = None

    def step(self, x, u, t):
        system, w = self._bind(x, u, t)
        start = cold_start(stop_gradient(system), stop_gradient(w), self.solver.dual_scale)
        path = solve_system(system, start, self.solver, ImplicitAdjoint(self.smoothing))
        return self._next(x, u, t, path.point)

    def advance(self, x, u, t, warm=None):
        def solve(x, u, t, warm):
            system, w = self._bind(x, u, t)
            path = self._solve(system, w, warm, self.solver)
            info = self._info(path, self._outputs(x, u, t, path.point))
            return self._next(x, u, t, path.point), info

        return single_kernel(solve, x, u, t, warm)

    def first_guess(self, x, u, t):
        return stop_gradient(cold_start(*self._bind(x, u, t), self.solver.dual_scale))

    def sensitivities(self, x, u, t, warm=None, smoothing=None):
        kappa = smoothing if smoothing is not None else self.smoothing
        solver = self.solver
        if kappa is not None:
            solver = eqx.tree_at(lambda s: s.central_path, solver, kappa)
        system, w = self._bind(x, u, t)
        path = self._solve(system, w, warm, solver)
        point = stop_gradient(path.point)
        local = sensitivity(system, point, differentiable=False)

        space = self.state_space
        n = space.tangent_dim(x.size)
        here = jax.lax.stop_gradient(self._next(x, u, t, point))

        def residual(v):
            return self._bind(space.retract(x, v[:n]), u + v[n:], t)[0].residual(point.w, point.z)

        def move(v, point):
            x_next = self._next(space.retract(x, v[:n]), u + v[n:], t, point)
            return space.difference(x_next, here)

        zero = jnp.zeros(n + u.size, x.dtype)

        def tangent(direction):
            _, (E_dot, S_dot) = jax.jvp(residual, (zero,), (direction,))
            point_dot = local.forward(E_dot, S_dot)
            return jax.jvp(move, (zero, point), (direction, point_dot))[1]

        jacobian = jax.vmap(tangent, out_axes=-1)(jnp.eye(zero.size, dtype=x.dtype))
        return Linearization(jacobian[:, :n], jacobian[:, n:], self._info(path, {}))

    def traced(self, x, u, t):
        bind = trace_function(self._bind, x, u, t)
        point = jax.eval_shape(lambda x, u, t: cold_start(*bind(x, u, t)), x, u, t)
        replay = _Replay(
            bind, trace_function(self._next, x, u, t, point), trace_function(self._outputs, x, u, t, point)
        )
        return eqx.tree_at(lambda d: d.replay, self, replay, is_leaf=lambda leaf: leaf is None)

    def _bind(self, x, u, t) -> tuple[AbstractSystem, Array]:
        """The lower-level system and its cold guess, flat with zero multipliers."""
        if self.replay is not None:
            return self.replay.bind(x, u, t)
        primal = self.guess(x, u, t)
        system = self.problem.bind(self.parameters(x, u, t), primal)
        flat, _ = ravel_primal(primal)
        return system, jnp.concatenate([flat, jnp.zeros(system.num_equality, flat.dtype)]).astype(x.dtype)

    def _next(self, x, u, t, point: PrimalDualPoint) -> Array:
        if self.replay is not None:
            return self.replay.next_state(x, u, t, point)
        return check_next_state(self.next_state(x, u, t, *self._answer(x, u, t, point)), x)

    def _outputs(self, x, u, t, point: PrimalDualPoint) -> dict:
        if self.replay is not None:
            return self.replay.outputs(x, u, t, point)
        return self.outputs(x, u, t, *self._answer(x, u, t, point))

    def _answer(self, x, u, t, point: PrimalDualPoint) -> tuple[PyTree, Array]:
        flat, unravel = ravel_primal(self.guess(x, u, t))
        return unravel(point.w[: flat.size]), point.z

    def _solve(self, system, w, warm: PrimalDualPoint | None, solver: InteriorPoint) -> PathPoint:
        system, w, warm = stop_gradient((system, w, warm))
        return stop_gradient(run_attempts(solver, system, cold_start(system, w, solver.dual_scale), warm))

    def _info(self, path: PathPoint, outputs: dict) -> StepInfo:
        residual = jnp.max(jnp.stack(jax.tree.leaves(path.violations)))
        return StepInfo(path.result, path.steps, residual, path.point, outputs)


def _no_outputs(x, u, t, primal, cone_dual) -> dict:
    return {}
