"""Linear-quadratic model along a trajectory. The only caller of the dynamics' linearization."""

import equinox as eqx
import jax.numpy as jnp

from optdyn._kernel import map_in_kernel
from optdyn._results import RESULTS
from optdyn._typing import Array, Bool, Float, Int
from optdyn.dynamics import AbstractDynamics
from optdyn.trajopt._rollout import Trajectory


class LinearDynamics(eqx.Module):
    """Linearized dynamics at every knot, and how the lower-level solves at the smoothing point went."""

    A: Float[Array, "N ndx ndx"]
    B: Float[Array, "N ndx nu"]
    valid: Bool[Array, ""]
    solves: Int[Array, ""]
    failed: Int[Array, ""]
    steps: Int[Array, ""]
    steps_max: Int[Array, ""]


def linearize_dynamics(
    dynamics: AbstractDynamics, trajectory: Trajectory, smoothing: Array | None
) -> LinearDynamics:
    """All knots together: they are independent once the trajectory is known."""
    N = trajectory.controls.shape[0]

    def knot(x, u, t, warm):
        return dynamics.sensitivities(x, u, t, warm, smoothing)

    knots = (trajectory.states[:-1], trajectory.controls, jnp.arange(N), trajectory.info.warm)
    local = map_in_kernel(knot, *knots)
    solved = local.info.result == RESULTS.successful
    finite = jnp.all(jnp.isfinite(local.A)) & jnp.all(jnp.isfinite(local.B))
    has_lower_level = trajectory.info.warm is not None
    return LinearDynamics(
        A=local.A,
        B=local.B,
        valid=jnp.all(solved) & finite,
        solves=jnp.sum(local.solves) if has_lower_level else jnp.asarray(0),
        failed=jnp.sum(~solved),
        steps=jnp.sum(local.info.steps),
        steps_max=jnp.max(local.info.steps, initial=0),
    )
