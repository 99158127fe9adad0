"""Receding horizons by sampling: DIAL-MPC and MPPI, with the same cost as the others."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from optdyn._results import RESULTS
from optdyn._typing import Array, Float
from optdyn.mpc._base import AbstractController, ControlReport, resampled
from optdyn.trajopt._shooting import Shooting


class DIALMPC(AbstractController):
    """Sampling with noise that shrinks along the iterations and towards the first knots.

    In iteration i = 0 .. n-1 the noise of knot h = 0 .. H has the standard deviation

        spread exp(-i / (iteration_factor n) - (H - h) / (knot_factor H)) ,

    and the new mean is weighted by exp(-(C - C_mean) / (std(C) temperature)), where C_mean is the cost of the
    mean so far, which is one of the samples (Xue et al., 'Full-Order Sampling-Based MPC for Torque-Level
    Locomotion Control via Diffusion-Style Annealing', 2024, section IV). Samples whose simulation fails have
    no weight; where all fail, the plan stays.

    Arguments:
        spread: standard deviation before shrinking, in the unit of the controls; a number or [nu].
        num_samples: samples of an iteration, the mean included.
        iterations: n, of one step.
        temperature: relative to the standard deviation of the costs.
        iteration_factor, knot_factor: as above; larger ones shrink less.
        first_solves: how often the first step repeats its work.
    """

    spread: Float[Array, " nu"] | float
    num_samples: int = eqx.field(static=True, default=128)
    iterations: int = eqx.field(static=True, default=4)
    temperature: float = 0.05
    iteration_factor: float = eqx.field(static=True, default=0.8)
    knot_factor: float = eqx.field(static=True, default=1.0)
    first_solves: int = eqx.field(static=True, default=4)

    def __check_init__(self):
        _check_counts(self.num_samples, self.iterations)
        if not (self.iteration_factor > 0 and self.knot_factor > 0):
            raise ValueError("iteration_factor and knot_factor must be positive")

    def schedule(self, num_knots: int) -> Float[np.ndarray, "n K"]:
        """Standard deviations of the noise, in units of `spread`."""
        i = np.arange(self.iterations)[:, None] / self.iterations
        left = np.arange(num_knots - 1, -1, -1) / max(num_knots - 1, 1)
        return np.exp(-i / self.iteration_factor - left / self.knot_factor)

    def improve(self, task, shooting, controls, key):
        def weights(merits):
            finite = jnp.isfinite(merits)
            count = jnp.maximum(jnp.sum(finite), 1).astype(merits.dtype)
            some = jnp.where(finite, merits, 0)
            deviation = jnp.where(finite, some - jnp.sum(some) / count, 0)
            scale = jnp.sqrt(jnp.sum(deviation**2) / count) * self.temperature
            scores = -some / jnp.maximum(scale, jnp.finfo(merits.dtype).tiny)
            # A softmax does not change when all scores do: the cost of the mean needs no subtraction.
            return jax.nn.softmax(jnp.where(finite, scores, -jnp.inf))

        knots = resampled(task, shooting, controls)
        shrinking = jnp.asarray(self.schedule(knots.shape[0]), knots.dtype)
        return _anneal(shooting, knots, self.spread, shrinking, self.num_samples, weights, key)


class MPPI(AbstractController):
    """Model predictive path integral control: constant noise, weights exp(-(C - min C) / temperature).

    After Williams et al., 'Information theoretic MPC for model-based reinforcement learning', 2017, without
    the term for the cost of the noise.

    Arguments:
        spread: standard deviation of the noise, in the unit of the controls; a number or [nu].
        num_samples: samples of an iteration, the mean included.
        iterations: of one step.
        temperature: in the unit of the cost.
        first_solves: how often the first step repeats its work.
    """

    spread: Float[Array, " nu"] | float
    temperature: float
    num_samples: int = eqx.field(static=True, default=128)
    iterations: int = eqx.field(static=True, default=1)
    first_solves: int = eqx.field(static=True, default=4)

    def __check_init__(self):
        _check_counts(self.num_samples, self.iterations)

    def improve(self, task, shooting, controls, key):
        def weights(merits):
            return jax.nn.softmax(jnp.where(jnp.isfinite(merits), -merits / self.temperature, -jnp.inf))

        knots = resampled(task, shooting, controls)
        constant = jnp.ones((self.iterations, knots.shape[0]), knots.dtype)
        return _anneal(shooting, knots, self.spread, constant, self.num_samples, weights, key)


def _check_counts(num_samples: int, iterations: int) -> None:
    if num_samples < 2:
        raise ValueError(f"num_samples must be at least 2 (one of them is the mean), got {num_samples}")
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, got {iterations}")


def _anneal(
    shooting: Shooting, knots: Array, spread, schedule: Array, num_samples: int, weights, key: Array
) -> ControlReport:
    """Sample around the mean, move the mean, for every row of the schedule."""
    spread = jnp.broadcast_to(jnp.asarray(spread).astype(knots.dtype), knots.shape[1:])

    def iterate(knots, inputs):
        shrinking, key = inputs
        noise = jax.random.normal(key, (num_samples, *knots.shape), knots.dtype).at[0].set(0)
        samples = knots[None] + noise * (shrinking[:, None] * spread[None])[None]
        samples = jax.vmap(shooting.inside)(samples)
        merits = jax.vmap(lambda p: shooting.merit(shooting.simulate(p))[0])(samples)
        mean = jnp.tensordot(weights(merits), samples, 1)
        return shooting.inside(jnp.where(jnp.any(jnp.isfinite(merits)), mean, knots)), None

    knots, _ = jax.lax.scan(iterate, knots, (schedule, jax.random.split(key, len(schedule))))
    trajectory = shooting.simulate(knots)
    merit, _, _ = shooting.merit(trajectory)
    result = RESULTS.where(jnp.isfinite(merit), RESULTS.successful, RESULTS.nonfinite)
    return ControlReport(merit, result, trajectory.controls)
