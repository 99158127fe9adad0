"""A network as the dynamics of a system."""

import equinox as eqx
import jax.numpy as jnp

from optdyn._typing import Array, Float
from optdyn.dynamics import AbstractDynamics
from optdyn.neural._networks import AbstractNetwork
from optdyn.neural._normalization import Normalization


class NeuralDynamics(AbstractDynamics):
    """The next state is the last one plus `residual_scale` times what the network says, in normalised units.

    With a window of H > 1 the state is a history: H states, oldest first, then the H - 1 controls between
    them, so that a history of a partly observed system is an ordinary state for planners and rollouts.
    `step` drops the oldest of both and appends the prediction. Normalised histories and the control are the
    network's input.

    Arguments:
        network: from `window * n + window * m` to n numbers.
        normalization: of single states [n] and controls [m]; not trained.
        window: number H of states in a history.
        residual_scale: weight of the network's output; small values keep long rollouts of a fresh network
            tame.

    Raises:
        ValueError: for a network that does not fit.
    """

    network: AbstractNetwork
    normalization: Normalization
    window: int = eqx.field(static=True)
    residual_scale: float = eqx.field(static=True)
    state_dim: int = eqx.field(static=True)
    control_dim: int = eqx.field(static=True)

    def __init__(
        self,
        network: AbstractNetwork,
        normalization: Normalization,
        *,
        window: int = 1,
        residual_scale: float = 0.1,
    ):
        n, m = normalization.state_center.size, normalization.control_center.size
        if window < 1:
            raise ValueError(f"window must be at least 1, got {window}")
        if (network.in_size, network.out_size) != (window * (n + m), n):
            raise ValueError(
                f"the network maps {network.in_size} to {network.out_size} numbers; {window} states of {n} "
                f"and controls of {m} need {window * (n + m)} to {n}"
            )
        self.network, self.normalization = network, normalization
        self.window, self.residual_scale = window, residual_scale
        self.state_dim, self.control_dim = window * n + (window - 1) * m, m

    @property
    def single_dim(self) -> int:
        """Length n of one state of the history."""
        return self.normalization.state_center.size

    def step(self, x, u, t):
        scales = self.normalization
        n, m, H = self.single_dim, self.control_dim, self.window
        states, controls = x[: H * n].reshape(H, n), jnp.append(x[H * n :], u).reshape(H, m)
        z = (states - scales.state_center[None]) / scales.state_scale[None]
        v = (controls - scales.control_center[None]) / scales.control_scale[None]
        change = self.residual_scale * self.network(jnp.concatenate([z.ravel(), v.ravel()]))
        after = states[-1] + scales.state_scale * change
        return jnp.concatenate([states[1:].ravel(), after, controls[1:].ravel()])

    def latest(self, x: Float[Array, "... nx"]) -> Float[Array, "... n"]:
        """The newest state of a history, or of several."""
        n, H = self.single_dim, self.window
        return x[..., (H - 1) * n : H * n]

    def history(
        self, states: Float[Array, "T n"], controls: Float[Array, "T-1 m"], t: int | Array
    ) -> Float[Array, " nx"]:
        """The history that ends with the state at index t >= window - 1 of a trajectory."""
        rows = t - self.window + 1 + jnp.arange(self.window)
        return jnp.concatenate([states[rows].ravel(), controls[rows[:-1]].ravel()])

    def freeze(self) -> "NeuralDynamics":
        """The same dynamics with a frozen network, cheaper to call (see `AbstractNetwork.freeze`)."""
        return eqx.tree_at(lambda d: d.network, self, self.network.freeze())
