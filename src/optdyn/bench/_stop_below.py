"""The stopping rule of the published code: anywhere below kappa, instead of on the central path at kappa.

The code of 'Trajectory Optimization with Optimization-Based Dynamics' (2021) follows Mehrotra's targets,
which do not end at kappa, and stops at the first iterate whose equations hold and whose complementarity is
at most kappa. Where that is depends on the start; the derivative belongs to that point, not to the kappa
that was asked for.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._results import RESULTS
from optdyn._typing import Array
from optdyn.interior_point import InteriorPoint, PathPoint, PrimalDualPoint
from optdyn.programs import AbstractSystem

# The targets have no floor: far below every kappa that is asked for.
_FLOOR = 1e-14


class StopBelow(eqx.Module):
    """Takes the place of an `InteriorPoint` inside of `ProgramDynamics`.

    Arguments:
        central_path: kappa, an upper bound of the complementarity here.
        inner: its directions and line search are used.
    """

    central_path: float | Array
    inner: InteriorPoint

    @property
    def max_steps(self) -> int:
        """That of `inner`."""
        return self.inner.max_steps

    @property
    def dual_scale(self) -> float:
        """That of `inner`."""
        return self.inner.dual_scale

    def run(self, system: AbstractSystem, start: PrimalDualPoint, budget: Array | None = None) -> PathPoint:
        """Iterate until the rule holds."""
        inner = eqx.tree_at(lambda s: s.central_path, self.inner, jnp.asarray(_FLOOR, start.w.dtype))
        limit = self.max_steps if budget is None else budget
        tol = 1e-8

        def below(state):
            v = state.violations
            closed = jnp.maximum(v.equations, v.slack) <= tol
            return closed & (v.complementarity <= self.central_path) & (state.steps > 0)

        state = jax.lax.while_loop(
            lambda s: ~s.done & ~below(s) & (s.steps < limit),
            lambda s: eqx.tree_at(lambda n: n.blocked, inner.step(system, s), jnp.asarray(False)),
            inner.enter(system, inner.init(system, start)),
        )
        unfinished = RESULTS.where(state.done, state.result, RESULTS.max_steps_reached)
        return PathPoint(
            point=state.point,
            violations=state.violations,
            steps=state.steps,
            result=RESULTS.where(below(state), RESULTS.successful, unfinished),
            certificate=state.certificate,
            record=state.record,
        )

    def unsolved(self, system: AbstractSystem, start: PrimalDualPoint) -> PathPoint:
        """As `InteriorPoint.unsolved`."""
        return self.inner.unsolved(system, start)
