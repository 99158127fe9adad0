"""Simulating a trajectory, open or closed loop."""

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._kernel import single_kernel
from optdyn._results import RESULTS
from optdyn._tree import tree_where
from optdyn._typing import Array, Bool, Float
from optdyn.dynamics import AbstractDynamics, StepInfo
from optdyn.trajopt._parameters import FreeStart


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
    """`u = nominal u + step_length feedforward + gains (x - nominal x)`.

    With a free start the parameters change by `step_length parameter_step`, and the first state with them.
    """

    nominal: Trajectory
    gains: Float[Array, "N nu ndx"]
    feedforward: Float[Array, "N nu"]
    start: FreeStart | None = None
    parameter_step: Float[Array, " np"] | None = None

    def rollout(self, dynamics: AbstractDynamics, step_length: Array, chained: Array | bool) -> Trajectory:
        """Simulate from the nominal initial state, or from where the parameters put it.

        Each lower-level solve starts at its nominal answer or, if `chained` (scalar bool), at the answer of
        the step before.
        """

        def advance(carry, knot):
            x, previous = carry
            t, x_nominal, u_nominal, K, k, warm = knot
            u = u_nominal + step_length * k + K @ dynamics.state_space.difference(x, x_nominal)
            x_next, info = dynamics.advance(x, u, t, tree_where(jnp.asarray(chained), previous, warm))
            return (x_next, info.warm), (x_next, u, info)

        nominal = self.nominal
        N = nominal.controls.shape[0]
        warm = nominal.info.warm
        knots = (jnp.arange(N), nominal.states[:-1], nominal.controls, self.gains, self.feedforward, warm)
        first = nominal.states[0]
        if self.start is not None and self.parameter_step is not None:
            first = self.start.state(self.start.dynamics.split(first)[1] + step_length * self.parameter_step)
        start = (first, jax.tree.map(lambda leaf: leaf[0], warm))

        def simulate(start, knots):
            return jax.lax.scan(advance, start, knots)[1]

        states, controls, info = single_kernel(simulate, start, knots)
        return Trajectory(jnp.concatenate([start[0][None], states]), controls, info)


def not_simulated(
    dynamics: AbstractDynamics, x0: Float[Array, " nx"], controls: Float[Array, "N nu"]
) -> Trajectory:
    """What stands in for a nominal trajectory before the first rollout.

    It is not valid, its states are all x0, and its lower-level answers are all the first guess.
    """
    N, t = controls.shape[0], jnp.asarray(0)
    warm = dynamics.first_guess(x0, controls[0], t)
    _, info = jax.eval_shape(dynamics.advance, x0, controls[0], t, warm)
    info = jax.tree.map(lambda leaf: jnp.zeros((N, *leaf.shape), leaf.dtype), info)
    failed = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, N), RESULTS.stalled)
    repeated = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (N, *leaf.shape)), warm)
    info = StepInfo(failed, info.steps, info.residual, repeated, info.outputs)
    return Trajectory(jnp.broadcast_to(x0, (N + 1, x0.size)), controls, info)


def rollout(
    dynamics: AbstractDynamics, x0: Float[Array, " nx"], controls: Float[Array, "N nu"]
) -> Trajectory:
    """Open-loop simulation; each lower-level solve starts at the answer of the step before.

    Arguments:
        dynamics: any `AbstractDynamics`.
        x0: initial state [nx].
        controls: one row per step [N, nu].
    """
    law = Policy(
        not_simulated(dynamics, x0, controls),
        gains=jnp.zeros((*controls.shape, dynamics.state_space.tangent_dim(x0.size)), controls.dtype),
        feedforward=jnp.zeros_like(controls),
    )
    return law.rollout(dynamics, jnp.zeros((), controls.dtype), chained=True)
