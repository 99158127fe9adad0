"""What is logged: one row per iteration, and totals of the lower-level solves."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._results import RESULTS
from optdyn._typing import Array, Float, Int
from optdyn.trajopt._expansion import LinearDynamics
from optdyn.trajopt._rollout import Trajectory


class IterationRecord(eqx.Module):
    """One iteration, as rows of `History` and as the argument of `callback` (there as Python numbers)."""

    outer: Int[Array, ""]
    inner: Int[Array, ""]
    cost: Float[Array, ""]
    merit: Float[Array, ""]
    violation: Float[Array, ""]
    step_length: Float[Array, ""]
    regularization: Float[Array, ""]
    penalty: Float[Array, ""]
    smoothing: Float[Array, ""]


class History(eqx.Module):
    """Rows of all iterations so far; NaN (-1 for `outer`) beyond the last."""

    cost: Float[Array, " K"]
    violation: Float[Array, " K"]
    step_length: Float[Array, " K"]
    regularization: Float[Array, " K"]
    penalty: Float[Array, " K"]
    smoothing: Float[Array, " K"]
    outer: Int[Array, " K"]

    def write(self, row: Array, record: IterationRecord) -> "History":
        """A copy with `record` in `row`."""
        return History(
            **{
                name: getattr(self, name).at[row].set(getattr(record, name).astype(getattr(self, name).dtype))
                for name in (
                    "cost",
                    "violation",
                    "step_length",
                    "regularization",
                    "penalty",
                    "smoothing",
                    "outer",
                )
            }
        )


def blank_history(length: int, dtype) -> History:
    """No rows yet."""
    nan = jnp.full(length, jnp.nan, dtype)
    return History(nan, nan, nan, nan, nan, nan, jnp.full(length, -1))


class LowerLevelTotals(eqx.Module):
    """Lower-level solves of a whole optimization, those of rejected candidates included."""

    solves: Int[Array, ""]
    failed: Int[Array, ""]
    steps: Int[Array, ""]
    steps_max: Int[Array, ""]
    residual_max: Float[Array, ""]

    @property
    def steps_mean(self) -> Array:
        """Newton steps per solve; 0 without solves."""
        return self.steps / jnp.maximum(self.solves, 1)

    def add_rollout(self, trajectory: Trajectory) -> "LowerLevelTotals":
        """Count the solves of a rollout."""
        info = trajectory.info
        if info.warm is None:
            failed = jnp.sum(info.result != RESULTS.successful)
            return eqx.tree_at(lambda t: t.failed, self, self.failed + failed)
        solved = info.result == RESULTS.successful
        return LowerLevelTotals(
            solves=self.solves + solved.size,
            failed=self.failed + jnp.sum(~solved),
            steps=self.steps + jnp.sum(info.steps),
            steps_max=jnp.maximum(self.steps_max, jnp.max(info.steps)),
            residual_max=jnp.maximum(self.residual_max, jnp.max(jnp.where(solved, info.residual, 0))),
        )

    def add_linearization(self, linear: LinearDynamics) -> "LowerLevelTotals":
        """Count the solves at the smoothing point."""
        return LowerLevelTotals(
            solves=self.solves + linear.solves,
            failed=self.failed + linear.failed,
            steps=self.steps + linear.steps,
            steps_max=jnp.maximum(self.steps_max, linear.steps_max),
            residual_max=self.residual_max,
        )


def no_solves(dtype) -> LowerLevelTotals:
    """Nothing counted yet."""
    zero = jnp.asarray(0)
    return LowerLevelTotals(zero, zero, zero, zero, jnp.zeros((), dtype))


def report(callback: Callable | None, record: IterationRecord) -> None:
    """Hand one record to the host, in order, from inside the compiled program."""
    if callback is None:
        return

    def on_host(record):
        callback(jax.tree.map(lambda x: x.item(), record))

    jax.debug.callback(on_host, record, ordered=True)
