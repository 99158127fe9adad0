"""Generalized Gauss-Newton over the knots of a control spline."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from optdyn._kernel import map_in_kernel
from optdyn._results import RESULTS
from optdyn._tree import all_finite, tree_where, write_row
from optdyn._typing import Array, Bool, Float, Int
from optdyn.trajopt._regularization import Regularization, RegularizationRule
from optdyn.trajopt._riccati import solve_positive_definite
from optdyn.trajopt._rollout import Trajectory
from optdyn.trajopt._shooting import QuadraticModel, Shooting

_LONG_STEP = 0.5  # accepted steps from here on lower the damping


class GaussNewtonState(eqx.Module):
    """Carry of the loop."""

    knots: Float[Array, "K nu"]
    trajectory: Trajectory
    merit: Float[Array, ""]
    damping: Regularization  # relative to the mean of the diagonal
    key: Array
    checking: Bool[Array, ""]  # damping was taken away to see whether a small decrease was due to it
    # counted
    iterations: Int[Array, ""]
    fallbacks: Int[Array, ""]
    merits: Float[Array, " I"]
    step_lengths: Float[Array, " I"]
    # set once
    done: Bool[Array, ""]
    result: RESULTS


class Direction(eqx.Module):
    """Step of the damped model."""

    step: Float[Array, "K nu"]
    decrease: Float[Array, ""]  # that the model predicts, >= 0
    damping: Regularization
    usable: Bool[Array, ""]  # there was a Cholesky factor, and every number is finite


class GaussNewton(eqx.Module):
    """Solves `SingleShooting` problems whose costs are `ResidualCost`.

    In every iteration: the model J' (curvature of the losses and barriers) J with Levenberg damping, one
    Cholesky factorization, and the best of all step lengths between none and the full step, simulated as one
    batch. As no step is among them, the cost with barriers never rises. Knots at a bound that the gradient
    pushes outwards are held. Where the step is not finite, random candidates around the knots take its place.

    Arguments:
        max_iterations: iterations before giving up; 1 is enough in a receding horizon.
        cost_tol: converged when the model predicts, or the last step brought, a decrease below
            `cost_tol max(1, |merit|)`: with little damping, or first with and then again without.
        num_steps: step lengths in a batch, evenly spread over [0, 1], both included.

    Other Arguments:
        initial_damping: added to the diagonal, times the mean of the diagonal.
        min_damping, max_damping: its range; it is zero below the minimum.
        damping_factor: first factor of its changes; it grows while they go in the same direction.
        small_damping: largest damping with which convergence is believed at once.
        fallback_spread: standard deviation of random candidates, in the unit of the controls; it falls as
            1 / (iteration + 1).
        seed: of the random candidates.

    Raises:
        ValueError: for settings out of range.
    """

    max_iterations: int = eqx.field(static=True, default=100)
    cost_tol: float = eqx.field(static=True, default=1e-8)
    num_steps: int = eqx.field(static=True, default=16)
    initial_damping: float = eqx.field(static=True, default=0.0)
    min_damping: float = eqx.field(static=True, default=1e-8)
    max_damping: float = eqx.field(static=True, default=1e8)
    damping_factor: float = eqx.field(static=True, default=3.0)
    small_damping: float = eqx.field(static=True, default=1e-4)
    fallback_spread: float = eqx.field(static=True, default=0.1)
    seed: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        if self.max_iterations < 1:
            raise ValueError(f"max_iterations must be at least 1, got {self.max_iterations}")
        if self.num_steps < 2:
            raise ValueError(f"num_steps must be at least 2 (none and the full step), got {self.num_steps}")
        if not self.cost_tol >= 0:
            raise ValueError(f"cost_tol must be >= 0, got {self.cost_tol}")
        if not 0 < self.min_damping <= self.max_damping:
            raise ValueError("min_damping must be positive and at most max_damping")
        if not 0 <= self.initial_damping <= self.max_damping:
            raise ValueError("initial_damping must be at least 0 and at most max_damping")
        if not self.damping_factor > 1:
            raise ValueError(f"damping_factor must be above 1, got {self.damping_factor}")
        if not self.fallback_spread >= 0:
            raise ValueError(f"fallback_spread must be >= 0, got {self.fallback_spread}")

    def init(self, shooting: Shooting, knots: Float[Array, "K nu"]) -> GaussNewtonState:
        """State after the first rollout."""
        knots, dtype = shooting.inside(knots), knots.dtype
        trajectory = shooting.simulate(knots)
        blank = jnp.full(self.max_iterations, jnp.nan, dtype)
        return GaussNewtonState(
            knots=knots,
            trajectory=trajectory,
            merit=shooting.merit(trajectory)[0],
            damping=Regularization(jnp.asarray(self.initial_damping, dtype), jnp.ones((), dtype)),
            key=jax.random.key_data(jax.random.key(self.seed)),
            checking=jnp.asarray(False),
            iterations=jnp.asarray(0),
            fallbacks=jnp.asarray(0),
            merits=blank,
            step_lengths=blank,
            done=jnp.asarray(False),
            result=RESULTS.max_steps_reached,
        )

    def step(self, shooting: Shooting, state: GaussNewtonState) -> GaussNewtonState:
        """Model, direction, best candidate."""
        knots = state.knots
        direction = self._direction(shooting, shooting.model(state.trajectory, knots), state)
        candidates = self._candidates(shooting, direction, state)

        def evaluate(knots):
            trajectory = shooting.simulate(knots, state.trajectory)
            return trajectory, shooting.merit(trajectory)[0]

        trajectories, merits = map_in_kernel(evaluate, candidates)
        # The first candidate is where we are; what is known of it stays as it is, to the last bit.
        merits = merits.at[0].set(state.merit)
        best = jnp.argmin(merits)
        moved = merits[best] < state.merit
        chosen = jax.tree.map(lambda leaf: leaf[best], (candidates, trajectories))
        knots, trajectory = tree_where(moved, chosen, (knots, state.trajectory))
        merit = merits[best]

        length = jnp.where(moved, self._lengths(merit.dtype)[best], 0)
        small = self.cost_tol * jnp.maximum(1, jnp.abs(merit))
        settled = moved & (state.merit - merit <= small)
        flat = direction.decrease <= small
        believed = direction.usable & (direction.damping.value <= self.small_damping)
        damping = self._rule.after_search(direction.damping, moved, length)
        damping = tree_where(direction.usable, damping, direction.damping)
        exhausted = ~moved & (damping.value > self.max_damping)
        # A decrease may be small for the damping alone: look once more without.
        again = (flat | settled) & ~believed & direction.usable & ~state.checking
        damping = tree_where(again, Regularization(0 * damping.value, damping.growth), damping)

        converged = (believed & (flat | settled)) | (state.checking & direction.usable & (~moved | settled))
        result = state.result
        for condition, member in (
            (exhausted, RESULTS.stalled),
            (converged, RESULTS.successful),
            (~jnp.isfinite(merit), RESULTS.nonfinite),
        ):
            result = RESULTS.where(condition, member, result)
        return GaussNewtonState(
            knots=knots,
            trajectory=trajectory,
            merit=merit,
            damping=damping,
            key=state.key,
            checking=again,
            iterations=state.iterations + 1,
            fallbacks=state.fallbacks + jnp.where(direction.usable, 0, 1),
            merits=write_row(state.merits, state.iterations, merit),
            step_lengths=write_row(state.step_lengths, state.iterations, length),
            done=converged | exhausted | (state.iterations + 1 >= self.max_iterations),
            result=result,
        )

    def run(self, shooting: Shooting, knots: Float[Array, "K nu"]) -> GaussNewtonState:
        """Iterate until done."""
        return jax.lax.while_loop(
            lambda state: ~state.done,
            lambda state: self.step(shooting, state),
            self.init(shooting, knots),
        )

    @property
    def _rule(self) -> RegularizationRule:
        shortest = 1 / (self.num_steps - 1)
        return RegularizationRule(self.damping_factor, self.min_damping, 1.5 * shortest, _LONG_STEP)

    def _lengths(self, dtype) -> Array:
        return jnp.asarray(np.linspace(0, 1, self.num_steps), dtype)

    def _direction(self, shooting: Shooting, model: QuadraticModel, state: GaussNewtonState) -> Direction:
        """Minimizer of the damped model, with more damping until there is a Cholesky factor."""
        knots, rule = state.knots, self._rule
        gradient = model.gradient.reshape(knots.shape)
        held = ((knots <= shooting.lower[None]) & (gradient > 0)) | (
            (knots >= shooting.upper[None]) & (gradient < 0)
        )
        free = jnp.where(held, 0, 1).astype(knots.dtype).ravel()
        q, H = free * model.gradient, free[:, None] * model.hessian * free[None, :]
        scale = jnp.trace(H) / jnp.maximum(jnp.sum(free), 1)
        scale = jnp.where(scale > 0, scale, 1)
        finite = all_finite((q, H))

        def indefinite(carry):
            _, definite, damping, tries = carry
            allowed = finite & (damping.value <= self.max_damping)
            return (tries == 0) | (~definite & allowed)

        def attempt(carry):
            _, _, damping, tries = carry
            damping = tree_where(tries == 0, damping, rule.raised(damping))
            diagonal = jnp.diag(damping.value * scale + (1 - free) * scale)
            solution, definite = solve_positive_definite(H + diagonal, q[:, None])
            return solution[:, 0], definite & all_finite(solution), damping, tries + 1

        start = (jnp.zeros_like(q), jnp.asarray(False), state.damping, jnp.asarray(0))
        solution, definite, damping, _ = jax.lax.while_loop(indefinite, attempt, start)
        damping = tree_where(finite, damping, state.damping)
        return Direction(
            step=-solution.reshape(knots.shape),
            decrease=(q @ solution) / 2,
            damping=damping,
            usable=definite & finite & jnp.isfinite(state.merit),
        )

    def _candidates(self, shooting: Shooting, direction: Direction, state: GaussNewtonState) -> Array:
        knots, lengths = state.knots, self._lengths(state.knots.dtype)
        along = knots[None] + lengths[:, None, None] * direction.step[None]
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), state.iterations)
        noise = jax.random.normal(key, along.shape, knots.dtype)
        spread = self.fallback_spread / (state.iterations + 1).astype(knots.dtype)
        around = knots[None] + jnp.where(lengths == 0, 0, spread)[:, None, None] * noise
        return jax.vmap(shooting.inside)(jnp.where(direction.usable, along, around))
