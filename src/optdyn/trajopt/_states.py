"""The states of a trajectory as a function of its controls, differentiable in forward and reverse mode.

Dynamics that bring a linearization of their own are asked for it once for each stage; the derivative of the
states is then a linear recursion, which JAX can run in either direction. Dynamics given as plain functions
are differentiated through.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._kernel import single_kernel
from optdyn._tree import stop_gradient
from optdyn._typing import Array, Float
from optdyn.dynamics import AbstractDynamics
from optdyn.trajopt._expansion import linearize_dynamics
from optdyn.trajopt._rollout import Trajectory

Derivatives = Literal["auto", "rollout", "linearize"]


def open_loop(
    dynamics: AbstractDynamics, nominal: Trajectory, controls: Float[Array, "N nu"], chained: bool
) -> Trajectory:
    """Simulate from the first state of `nominal`; no derivative.

    Each lower-level solve starts at its answer in `nominal` or, if `chained`, at that of the step before.
    """

    def advance(carry, knot):
        x, previous = carry
        t, u, warm = knot
        x_next, info = dynamics.advance(x, u, t, previous if chained else warm)
        return (x_next, info.warm), (x_next, info)

    warm = nominal.info.warm
    start = (nominal.states[0], jax.tree.map(lambda leaf: leaf[0], warm))

    def simulate(start, knots):
        return jax.lax.scan(advance, start, knots)[1]

    states, info = single_kernel(simulate, start, (jnp.arange(len(controls)), controls, warm))
    return Trajectory(jnp.concatenate([start[0][None], states]), controls, info)


def differentiable_states(
    dynamics: AbstractDynamics, trajectory: Trajectory, controls: Float[Array, "N nu"], how: Derivatives
) -> Float[Array, "N+1 nx"]:
    """The states of `trajectory`, with a derivative by `controls`, which must be those of the trajectory."""
    if how == "auto":
        inherited = type(dynamics).sensitivities is AbstractDynamics.sensitivities
        how = "rollout" if inherited else "linearize"
    if how == "linearize":
        return _attached(*stop_gradient((dynamics, trajectory)), controls)

    def step(x, knot):
        x_next = dynamics.step(x, *knot)
        return x_next, x_next

    first = jax.lax.stop_gradient(trajectory.states[0])
    _, states = jax.lax.scan(step, first, (controls, jnp.arange(len(controls))))
    return jnp.concatenate([first[None], states])


@eqx.filter_custom_jvp
def _attached(dynamics: AbstractDynamics, trajectory: Trajectory, controls: Array) -> Array:
    return trajectory.states


@_attached.def_jvp
def _attached_jvp(primals, tangents):
    dynamics, trajectory, _ = primals
    linear, space = linearize_dynamics(dynamics, trajectory, None), dynamics.state_space

    def follow(d, knot):
        A, B, u_dot = knot
        d_next = A @ d + B @ u_dot
        return d_next, d_next

    n = space.tangent_dim(trajectory.states.shape[1])
    first = jnp.zeros(n, trajectory.states.dtype)
    _, moves = jax.lax.scan(follow, first, (linear.A, linear.B, tangents[2]))
    moves = jnp.concatenate([first[None], moves])
    return trajectory.states, jax.vmap(lambda x, d: _ambient(space, x, d))(trajectory.states, moves)


def _ambient(space, x: Array, d: Array) -> Array:
    """The tangent `d` at `x` in coordinates of the state."""
    return jax.jvp(lambda v: space.nudge(x, v), (jnp.zeros_like(d),), (d,))[1]
