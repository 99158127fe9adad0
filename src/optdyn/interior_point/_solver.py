"""The interior-point method: a predictor-corrector that ends on the central path."""

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._kernel import single_kernel
from optdyn._results import RESULTS
from optdyn._tree import all_finite, tree_where, write_row
from optdyn._typing import Array
from optdyn.interior_point._direction import predictor_corrector
from optdyn.interior_point._globalization import advance, line_search, measures, within_tolerance
from optdyn.interior_point._leap import MOST_LEAPS, can_leap, is_blocked, leap
from optdyn.interior_point._newton_system import newton_system
from optdyn.interior_point._state import (
    Certificate,
    IterationState,
    PathPoint,
    PrimalDualPoint,
    Violations,
    first_record,
)
from optdyn.interior_point._termination import certificate, first_failure, is_converged, violations
from optdyn.programs import AbstractSystem, Jacobian


class InteriorPoint(eqx.Module):
    """Primal-dual path following for E(w, z) = 0, s = S(w, z), s o z = kappa e, s and z in K.

    The iterations end *on* the central path: the equations hold to `residual_tol` at kappa =
    `central_path`, so that value and derivative belong to one smooth function.

    Arguments:
        central_path: kappa, in units of objective for programs. Default 1e-6.
        residual_tol: largest absolute residual of a successful solve. Rows whose terms are so large that
            rounding alone exceeds it are accepted at their rounding error. Default 1e-10 in double, 2e-5
            in single precision.
        max_steps: Newton steps before giving up. Default 50.
        dual_scale: size of the cone duals from which a complementarity system starts cold. Default 1. Of
            use where typical ones are much larger: m g h for contact impulses of a mass m at a time step h.

    Other Arguments:
        boundary_fraction: share of the way to the boundary of the cone that one step may go.
        max_backtracks: halvings of a step before the solve is called stalled.
        regularization: relative size of the pivots that replace vanished ones (redundant equalities, flat
            directions). Default 1e-13 in double, 6e-5 in single precision: a few hundred roundings, enough to
            bound the step, small enough for the refinement to take it back.
        refinement_steps: iterative refinement steps per direction.
        certificate_tol: relative tolerance of a certificate of infeasibility or unboundedness: 1e-6 rules out
            feasible points up to a million times larger than the iterate. Default 1e-6 in double, 1e-3 in
            single precision.
        record: keep a row of numbers per step in `stats.record` (the same loop, more memory).
    """

    central_path: float | Array = 1e-6
    residual_tol: float | None = eqx.field(static=True, default=None)
    max_steps: int = eqx.field(static=True, default=50)
    dual_scale: float = eqx.field(static=True, default=1.0)
    boundary_fraction: float = eqx.field(static=True, default=0.99)
    max_backtracks: int = eqx.field(static=True, default=30)
    regularization: float | None = eqx.field(static=True, default=None)
    refinement_steps: int = eqx.field(static=True, default=1)
    certificate_tol: float | None = eqx.field(static=True, default=None)
    record: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        if isinstance(self.central_path, float | int) and not 0 < self.central_path < float("inf"):
            raise ValueError(f"central_path must be a positive number, got {self.central_path}")
        if self.residual_tol is not None and not self.residual_tol > 0:
            raise ValueError(f"residual_tol must be positive, got {self.residual_tol}")
        if self.max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, got {self.max_steps}")
        if not 0 < self.dual_scale < float("inf"):
            raise ValueError(f"dual_scale must be a positive number, got {self.dual_scale}")
        if not 0 < self.boundary_fraction < 1:
            raise ValueError(f"boundary_fraction must lie between 0 and 1, got {self.boundary_fraction}")

    def init(self, system: AbstractSystem, start: PrimalDualPoint) -> IterationState:
        """State before anything was evaluated; `nonfinite_input` is found here."""
        dtype = start.w.dtype
        bad_input = ~(all_finite(system) & all_finite(start))
        unknown = jnp.full((), jnp.inf, dtype)
        v = Violations(unknown, unknown, unknown)
        zeros = Certificate(
            ray=jnp.zeros(system.num_primal, dtype),
            equality_dual=jnp.zeros(system.num_equality, dtype),
            cone_dual=jnp.zeros(system.cone.dim, dtype),
        )
        return IterationState(
            point=start,
            violations=v,
            steps=jnp.asarray(0),
            start=start.w,
            leaps=jnp.asarray(0 if can_leap(system) else MOST_LEAPS),
            blocked=jnp.asarray(False),
            hold_equations=jnp.asarray(False),
            hold_slack=jnp.asarray(False),
            filter=jnp.full((self.max_steps + 1, 2), jnp.inf, dtype),
            done=bad_input,
            result=first_failure((bad_input, RESULTS.nonfinite_input)),
            certificate=zeros,
            record=first_record(self.max_steps, v) if self.record else None,
        )

    def enter(self, system: AbstractSystem, state: IterationState) -> IterationState:
        """Evaluate where the iterations go on from: the start, or the end of a leap. Its filter is new.

        A complementarity system that is solved there (a warm start with the old data) takes no step.
        """
        point, dtype = state.point, state.point.w.dtype
        kappa = self._kappa(dtype)
        E, S = system.residual(point.w, point.z)
        v = violations(system.cone, point, E, S, kappa)
        measured, finite = measures(v), all_finite((E, S))
        done = state.done | ~finite
        if not system.symmetric:
            done = done | within_tolerance(measured, kappa, self._by_dtype("residual_tol", dtype))
        record = state.record
        if record is not None:
            record = tree_where(state.steps == 0, first_record(self.max_steps, v), record)
        return eqx.tree_at(
            lambda s: (s.violations, s.filter, s.done, s.result, s.record),
            state,
            (
                v,
                write_row(jnp.full_like(state.filter, jnp.inf), state.steps, measured),
                done,
                RESULTS.where(state.done | finite, state.result, RESULTS.nonfinite),
                record,
            ),
            is_leaf=lambda leaf: leaf is None,
        )

    def step(self, system: AbstractSystem, state: IterationState) -> IterationState:
        """One predictor-corrector step."""
        point, cone, dtype = state.point, system.cone, state.point.w.dtype
        kappa = self._kappa(dtype)
        tol = self._by_dtype("residual_tol", dtype)
        jacobian = system.jacobian(point.w, point.z)
        equations, slack_residual = self._left_to_close(state, jacobian, tol)
        newton = newton_system(
            system,
            eqx.tree_at(lambda jac: jac.E, jacobian, equations),
            point.s,
            point.z,
            self._by_dtype("regularization", dtype),
            self.refinement_steps,
        )
        aim = predictor_corrector(system, point, newton, slack_residual, kappa, self.boundary_fraction)
        trial = line_search(system, state, aim, newton.shift > 0, kappa, tol, self.max_backtracks)

        converged = is_converged(cone, trial.point, trial.E, trial.S, jacobian, kappa, tol)
        # A shifted Hessian means that the point may be a maximum or a saddle: not a solution yet.
        converged = converged & trial.accepted & (newton.shift == 0)
        steps = state.steps + 1
        infeasible, unbounded, found = jnp.asarray(False), jnp.asarray(False), state.certificate
        if system.symmetric:
            infeasible, unbounded, found = certificate(
                system, point, jacobian, aim.direction, self._by_dtype("certificate_tol", dtype), 10 * tol
            )
        result = first_failure(
            (converged, RESULTS.successful),
            (infeasible, RESULTS.infeasible),
            (unbounded, RESULTS.unbounded),
            (~all_finite(aim.direction), RESULTS.singular),
            (~trial.accepted & (state.leaps == MOST_LEAPS), RESULTS.stalled),
            (steps >= self.max_steps, RESULTS.max_steps_reached),
        )
        record = state.record
        if record is not None:
            record = record.write(steps, trial.violations, aim.target, trial.step_length)
        kept, short = trial.accepted, trial.step_length < 1
        return IterationState(
            point=tree_where(kept, advance(point, aim.direction, trial.step_length), point),
            violations=tree_where(kept, trial.violations, state.violations),
            steps=steps,
            start=state.start,
            leaps=state.leaps,
            blocked=is_blocked(state, trial),
            hold_equations=state.hold_equations | (short & (trial.violations.equations <= tol / 2)),
            hold_slack=state.hold_slack | (short & (trial.violations.slack <= tol / 2)),
            filter=write_row(state.filter, steps, measures(trial.violations)),
            done=converged | (result != RESULTS.successful),
            result=result,
            certificate=found,
            record=record,
        )

    def _left_to_close(self, state: IterationState, jacobian: Jacobian, tol: float) -> tuple[Array, Array]:
        """E and S - s, without the rows that are held.

        Without a strict interior there is no central path, only points within tolerance of one: closing the
        rows further would push s (no strictly feasible point) or z (an unbounded set of solutions) to the
        boundary for ever. So once a group holds within tolerance and the cone still shortens the steps, its
        rows are left alone.
        """

        def left(residual, hold):
            return jnp.where(hold & (jnp.abs(residual) <= tol / 2), 0, residual)

        return left(jacobian.E, state.hold_equations), left(jacobian.S - state.point.s, state.hold_slack)

    def run(
        self,
        system: AbstractSystem,
        start: PrimalDualPoint,
        unroll: bool = False,
        budget: Array | None = None,
    ) -> PathPoint:
        """Iterate from `start`.

        `unroll` uses a scan, so that JAX can differentiate the iterations; `budget` allows fewer steps than
        `max_steps` (a number known only at run time).
        """
        state = self.init(system, start)
        limit = self.max_steps if budget is None else budget
        leaps = can_leap(system)

        if unroll:

            def body(state, _):
                def go_on(state):
                    state = self.step(system, state)
                    return jax.lax.cond(is_due(state), again, lambda s: s, state) if leaps else state

                return jax.lax.cond(state.done, lambda s: s, go_on, state), None

            def is_due(state):
                return state.blocked & ~state.done

            def again(state):
                return self.enter(system, leap(system, state))

            return _path_point(jax.lax.scan(body, self.enter(system, state), length=self.max_steps)[0])

        def unfinished(state):
            return ~state.done & (state.steps < limit)

        def until_blocked(system, state):
            return jax.lax.while_loop(
                lambda s: unfinished(s) & ~s.blocked,
                lambda s: self.step(system, s),
                self.enter(system, state),
            )

        def iterate(system, state):
            if not leaps:
                return until_blocked(system, state)

            def attempt(state):
                state = until_blocked(system, state)
                return jax.lax.cond(unfinished(state), lambda s: leap(system, s), lambda s: s, state)

            return jax.lax.while_loop(unfinished, attempt, state)

        state = single_kernel(iterate, system, state)
        result = RESULTS.where(state.done, state.result, RESULTS.max_steps_reached)
        return _path_point(eqx.tree_at(lambda s: s.result, state, result))

    def unsolved(self, system: AbstractSystem, start: PrimalDualPoint) -> PathPoint:
        """What `run` would return had it failed at `start`: the first carry of a loop over attempts."""
        state = self.init(system, start)
        result = RESULTS.where(state.done, state.result, RESULTS.stalled)
        return _path_point(eqx.tree_at(lambda s: s.result, state, result))

    def _kappa(self, dtype) -> Array:
        return jnp.asarray(self.central_path, dtype)

    def _by_dtype(self, name: str, dtype) -> float:
        """The setting, or its default for this precision."""
        double = jnp.finfo(dtype).bits >= 64
        defaults = {
            "residual_tol": (1e-10, 2e-5),
            "regularization": (1e-13, 6e-5),
            "certificate_tol": (1e-6, 1e-3),
        }
        value = getattr(self, name)
        return defaults[name][0 if double else 1] if value is None else value


def _path_point(state: IterationState) -> PathPoint:
    return PathPoint(
        point=state.point,
        violations=state.violations,
        steps=state.steps,
        result=state.result,
        certificate=state.certificate,
        record=state.record,
    )
