"""Simulating a trajectory, open or closed loop."""

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._results import RESULTS
from optdyn._typing import Array, Bool, Float
from optdyn.dynamics import AbstractDynamics, StepInfo


class Trajectory(eqx.Module):
    """States x_0 .. x_N, controls u_0 .. u_{N-1}, and what happened in each step (stacked over time)."""

    states: Float[Array, "N+1 nx"]
    controls: Float[Array, "N nu"]
    info: StepInfo

    @property
    def valid(self) -> Bool[Array, ""]:
        """Every lower-level solve succeeded and every number is finite."""
        solved = jnp.all(self.info.result == RESULTS.successful)
        return solved & jnp.all(jnp.isfinite(self.states)) & jnp.all(jnp.isfinite(self.controls))


class Policy(eqx.Module):
    """`u = nominal u + step_length feedforward + gains (x - nominal x)`."""

    nominal: Trajectory
    gains: Float[Array, "N nu nx"]
    feedforward: Float[Array, "N nu"]

    def rollout(self, dynamics: AbstractDynamics, step_length: Array) -> Trajectory:
        """Simulate from the nominal initial state; each lower-level solve starts at its nominal answer."""

        def advance(x, knot):
            t, x_nominal, u_nominal, K, k, warm = knot
            u = u_nominal + step_length * k + K @ (x - x_nominal)
            x_next, info = dynamics.advance(x, u, t, warm)
            return x_next, (x_next, u, info)

        nominal = self.nominal
        N = nominal.controls.shape[0]
        knots = (
            jnp.arange(N),
            nominal.states[:-1],
            nominal.controls,
            self.gains,
            self.feedforward,
            nominal.info.warm,
        )
        x0 = nominal.states[0]
        _, (states, controls, info) = jax.lax.scan(advance, x0, knots)
        return Trajectory(jnp.concatenate([x0[None], states]), controls, info)


def rollout(
    dynamics: AbstractDynamics, x0: Float[Array, " nx"], controls: Float[Array, "N nu"]
) -> Trajectory:
    """Open-loop simulation; each lower-level solve starts at the answer of the step before.

    Arguments:
        dynamics: any `AbstractDynamics`.
        x0: initial state.
        controls: one row per step.
    """

    def advance(carry, knot):
        x, warm = carry
        t, u = knot
        x_next, info = dynamics.advance(x, u, t, warm)
        return (x_next, info.warm), (x_next, info)

    N = controls.shape[0]
    warm = dynamics.first_guess(x0, controls[0], jnp.asarray(0))
    _, (states, info) = jax.lax.scan(advance, (x0, warm), (jnp.arange(N), controls))
    return Trajectory(jnp.concatenate([x0[None], states]), controls, info)
