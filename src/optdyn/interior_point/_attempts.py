"""Several attempts at one solve: from a nearby answer, from afar, and down the central path.

Where a step of a system has more than one solution, the branch that a start lies on may end before the asked
kappa, and Newton's method has nothing to converge to. From a larger kappa the path is smooth and easy to
reach; followed down from there it leads to a solution, if it leads anywhere.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._results import RESULTS
from optdyn._tree import stop_gradient, tree_where
from optdyn._typing import Array, Bool, Int
from optdyn.interior_point._initialization import warm_start
from optdyn.interior_point._solver import InteriorPoint
from optdyn.interior_point._state import PathPoint, PrimalDualPoint
from optdyn.programs import AbstractSystem

# A warm start that has not converged by then is worse than a cold one.
_WARM_STEPS = 8
# The path is entered at kappa times ten to this power at most.
_MOST_HEIGHT = 3


class _Attempts(eqx.Module):
    """Carry of the loop."""

    path: PathPoint  # what is reported: the last attempt at the asked kappa, with the steps of all
    point: PrimalDualPoint  # where the last attempt ended
    height: Int[Array, ""]  # of the next attempt: its kappa is the asked one times ten to this power
    tries: Int[Array, ""]
    descending: Bool[Array, ""]
    done: Bool[Array, ""]


def run_attempts(
    solver: InteriorPoint,
    system: AbstractSystem,
    cold: PrimalDualPoint,
    warm: PrimalDualPoint | None = None,
) -> PathPoint:
    """Solve from `warm` (a nearby answer) where there is one, then from `cold`, then down the central path.

    Each of them only where those before failed; the last one for complementarity systems only. One copy of
    the iterations is compiled.
    """
    kappa = jnp.asarray(solver.central_path, cold.w.dtype)
    highest = 0 if system.symmetric else _MOST_HEIGHT
    start = cold if warm is None else warm_start(system, warm, kappa)
    if warm is None and highest == 0:
        return solver.run(system, cold)

    def attempt(carry: _Attempts) -> _Attempts:
        first = carry.tries == 0
        here = kappa * 10.0 ** carry.height.astype(kappa.dtype)
        begin = tree_where(carry.descending, warm_start(system, carry.point, here), cold)
        begin = tree_where(first, start, begin)
        from_warm = first & jnp.asarray(warm is not None)
        budget = jnp.where(from_warm, _WARM_STEPS, solver.max_steps)
        new = eqx.tree_at(lambda s: s.central_path, solver, here).run(system, begin, budget=budget)

        asked, solved = carry.height == 0, new.result == RESULTS.successful
        hopeless = (new.result == RESULTS.nonfinite_input) | (new.result == RESULTS.infeasible)
        hopeless = hopeless | (~from_warm & (carry.descending | (carry.height == highest)))
        up = jnp.where(from_warm, 0, 1)
        path = eqx.tree_at(
            lambda p: p.steps, tree_where(asked, new, carry.path), carry.path.steps + new.steps
        )
        return _Attempts(
            path=path,
            point=new.point,
            height=carry.height + jnp.where(solved, -1, up),
            tries=carry.tries + 1,
            descending=solved,
            done=jnp.where(solved, asked, hopeless),
        )

    zero, no = jnp.asarray(0), jnp.asarray(False)
    carry = _Attempts(solver.unsolved(system, cold), cold, zero, zero, no, no)
    return jax.lax.while_loop(lambda c: ~c.done, lambda c: stop_gradient(attempt(c)), carry).path
