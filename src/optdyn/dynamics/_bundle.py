"""Derivatives by randomized smoothing: least squares over disturbed steps."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from optdyn._results import first_failed
from optdyn._typing import Array, Float
from optdyn.dynamics._base import AbstractDynamics, Linearization, StepInfo


class GradientBundle(AbstractDynamics):
    """Any dynamics, with A and B estimated from `samples` disturbed steps instead of derivatives.

    At (x, u) the step is repeated with disturbances eta_i of (x, u) in tangent coordinates, and
    (A, B) = argmin of sum_i |f(z + eta_i) - f(z) - (A, B) eta_i|^2 (Suh, Pang and Tedrake, 'Bundled gradients
    through contact via randomized smoothing', 2022, first-order bundle by least squares). The disturbances
    are drawn once, so that the derivative is the same every time it is asked for. The steps are solved side
    by side; a linearization costs `samples` + 1 of them. `step` and `advance` are those of `dynamics`.

    Arguments:
        dynamics: what is simulated.
        samples: number N of disturbances, at least ndx + nu.
        spread: standard deviation epsilon of a disturbance, in units of states and controls.
        seed: of the disturbances.
        directions: "gaussian": every coordinate is disturbed; "coordinate": a single one by each sample, in
            turn (as in 'Trajectory Optimization with Optimization-Based Dynamics', 2021, where it is drawn).

    Raises:
        ValueError: for too few samples or a spread that is not positive.
    """

    dynamics: AbstractDynamics
    disturbances: Float[Array, "N nd"]
    estimator: Float[Array, "nd N"]  # pseudoinverse of the disturbances
    state_dim: int = eqx.field(static=True)
    control_dim: int = eqx.field(static=True)

    def __init__(
        self,
        dynamics: AbstractDynamics,
        samples: int = 100,
        spread: float = 1e-4,
        *,
        seed: int = 0,
        directions: Literal["gaussian", "coordinate"] = "gaussian",
    ):
        size = dynamics.state_space.tangent_dim(dynamics.state_dim) + dynamics.control_dim
        if samples < size:
            raise ValueError(
                f"samples must be at least {size} (coordinates of state and control), got {samples}"
            )
        if not 0 < spread < float("inf"):
            raise ValueError(f"spread must be a positive number, got {spread}")
        if directions not in ("gaussian", "coordinate"):
            raise ValueError(f"directions must be 'gaussian' or 'coordinate', got {directions!r}")
        rng = np.random.default_rng(seed)
        disturbances = spread * rng.normal(size=(samples, size))
        if directions == "coordinate":
            disturbances *= np.eye(size)[np.arange(samples) % size]
        dtype = jnp.result_type(float)
        self.dynamics = dynamics
        self.disturbances = jnp.asarray(disturbances, dtype)
        self.estimator = jnp.asarray(np.linalg.pinv(disturbances), dtype)
        self.state_dim, self.control_dim = dynamics.state_dim, dynamics.control_dim

    @property
    def state_space(self):
        """That of `dynamics`."""
        return self.dynamics.state_space

    def step(self, x, u, t):
        return self.dynamics.step(x, u, t)

    def advance(self, x, u, t, warm=None):
        return self.dynamics.advance(x, u, t, warm)

    def first_guess(self, x, u, t):
        return self.dynamics.first_guess(x, u, t)

    def traced(self, x, u, t):
        return eqx.tree_at(lambda d: d.dynamics, self, self.dynamics.traced(x, u, t))

    def sensitivities(self, x, u, t, warm=None, smoothing=None):
        """The estimate; the spread is its smoothing, so `smoothing` has no part in it."""
        space = self.state_space
        n = space.tangent_dim(x.size)
        disturbances = jnp.concatenate(
            [jnp.zeros((1, n + u.size), x.dtype), self.disturbances.astype(x.dtype)]
        )

        def disturbed(eta):
            return self.dynamics.advance(space.retract(x, eta[:n]), u + eta[n:], t, warm)

        x_next, info = jax.vmap(disturbed)(disturbances)
        change = jax.vmap(lambda there: space.difference(there, x_next[0]))(x_next[1:])
        slopes = (self.estimator.astype(x.dtype) @ change).T
        return Linearization(slopes[:, :n], slopes[:, n:], _worst(info), jnp.asarray(len(disturbances)))


def _worst(info: StepInfo) -> StepInfo:
    """One `StepInfo` for all of a batch: the first failure there is, and the sum of the steps."""
    return StepInfo(first_failed(info.result), jnp.sum(info.steps), jnp.max(info.residual))
