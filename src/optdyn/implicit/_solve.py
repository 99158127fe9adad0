"""The entry: `solve`."""

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._results import RESULTS
from optdyn._tree import as_float_arrays, stop_gradient
from optdyn._typing import Array, Float, Int, PyTree
from optdyn.implicit._adjoint import AbstractAdjoint, ImplicitAdjoint, UnrolledAdjoint
from optdyn.implicit._rule import implicit_solve
from optdyn.interior_point import (
    Certificate,
    InteriorPoint,
    PathPoint,
    PrimalDualPoint,
    Record,
    Violations,
    cold_start,
    warm_start,
)
from optdyn.programs import AbstractProblem, AbstractSystem, ravel_primal


class Stats(eqx.Module):
    """Numbers about a solve.

    `steps`: Newton steps. `residual`: largest of `violations`. `central_path`: the kappa of the returned
    point. `certificate`: proof of infeasibility or unboundedness (zeros otherwise). `record`: per-step rows
    when the solver records, else None.
    """

    steps: Int[Array, ""]
    residual: Float[Array, ""]
    violations: Violations
    central_path: Float[Array, ""]
    certificate: Certificate
    record: Record | None


class Solution(eqx.Module):
    """Answer of `solve`; pass it as `guess=` to warm start a later solve.

    Attributes:
        primal: decision variables, in the structure of the guess.
        equality_dual: multipliers y of the equalities, L = f + y'g - z'h. Empty for complementarity problems.
        slack: s, in the cone.
        cone_dual: z, in the cone; `s o z = central_path e`.
        result: a member of `optdyn.RESULTS`.
        stats: see `Stats`.
    """

    primal: PyTree
    equality_dual: Float[Array, " p"]
    slack: Float[Array, " m"]
    cone_dual: Float[Array, " m"]
    result: RESULTS
    stats: Stats


def solve(
    program: AbstractProblem,
    theta: PyTree = None,
    *,
    solver: InteriorPoint | None = None,
    guess: PyTree = None,
    adjoint: AbstractAdjoint | None = None,
    throw: bool = True,
) -> Solution:
    """Solve a program or complementarity problem to a point on its central path.

    Arguments:
        program: `AbstractProgram`, `AbstractComplementarityProblem`, `QuadraticProgram` or `ConicProgram`.
            Its array fields are differentiable.
        theta: parameters handed to the program's functions, any pytree; differentiable.

    Other Arguments:
        solver: tolerances and limits. Default `InteriorPoint()`.
        guess: decision variables to start from, or an earlier `Solution` for a warm start. Default:
            `program.initial_guess(theta)`.
        adjoint: how the solve is differentiated. Default `ImplicitAdjoint(smoothing=1e-3)`.
        throw: raise when the solve fails (also inside `jit`). With `throw=False` look at `result`.

    Returns: a `Solution`.

    Raises:
        ValueError: for shapes that do not fit.
        TypeError: for arguments of the wrong kind.
        RuntimeError: with the reason, when the solve fails and `throw` is set.
    """
    if not isinstance(program, AbstractProblem):
        raise TypeError(f"solve() takes a program or complementarity problem, got {type(program).__name__}")
    solver = InteriorPoint() if solver is None else solver
    adjoint = ImplicitAdjoint() if adjoint is None else adjoint
    theta = as_float_arrays(theta)
    if guess is None:
        guess = program.initial_guess(theta)
    guess = guess if isinstance(guess, Solution) else as_float_arrays(guess)
    solution = _solve(program, theta, as_float_arrays(solver), guess, as_float_arrays(adjoint))
    if throw:
        failed = solution.result != RESULTS.successful
        solution = solution.result.error_if(solution, failed)
    return solution


@eqx.filter_jit
def _solve(program, theta, solver, guess, adjoint) -> Solution:
    primal = guess.primal if isinstance(guess, Solution) else guess
    w, unravel = ravel_primal(primal)
    system = program.bind(theta, primal)
    start = _start(system, w, guess, solver)
    path = solve_system(system, start, solver, adjoint)
    n = system.num_primal
    residual = jnp.max(jnp.stack(jax.tree.leaves(path.violations)))
    path = eqx.tree_at(
        lambda p: (p.violations, p.steps, p.result, p.certificate, p.record),
        path,
        replace_fn=stop_gradient,
        is_leaf=lambda x: x is None,
    )
    return Solution(
        primal=unravel(path.point.w[:n]),
        equality_dual=path.point.w[n:],
        slack=path.point.s,
        cone_dual=path.point.z,
        result=path.result,
        stats=Stats(
            steps=path.steps,
            residual=stop_gradient(residual),
            violations=path.violations,
            central_path=jnp.asarray(solver.central_path, w.dtype),
            certificate=path.certificate,
            record=path.record,
        ),
    )


def _start(system: AbstractSystem, w: Array, guess, solver: InteriorPoint) -> PrimalDualPoint:
    if isinstance(guess, Solution):
        point = PrimalDualPoint(jnp.concatenate([w, guess.equality_dual]), guess.cone_dual, guess.slack)
        return warm_start(system, point, jnp.asarray(solver.central_path, w.dtype))
    w = jnp.concatenate([w, jnp.zeros(system.num_equality, w.dtype)])
    return cold_start(system, w, solver.dual_scale)


def solve_system(
    system: AbstractSystem, start: PrimalDualPoint, solver: InteriorPoint, adjoint: AbstractAdjoint
) -> PathPoint:
    """`solve` for callers that hold the bound system and a start already (no checks, no throw)."""
    if isinstance(adjoint, UnrolledAdjoint):
        return solver.run(system, start, unroll=True)
    if isinstance(adjoint, ImplicitAdjoint):
        return implicit_solve(system, start, solver, adjoint.smoothing, adjoint.mode, adjoint.on_failure)
    raise TypeError(f"adjoint must be ImplicitAdjoint or UnrolledAdjoint, got {type(adjoint).__name__}")
