"""What a trajectory optimizer needs to know of a system."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._results import RESULTS
from optdyn._tree import as_float_arrays, trace_function
from optdyn._typing import Array, Float, Int, PyTree


class StepInfo(eqx.Module):
    """What happened inside one step.

    Attributes:
        result: worst result of the lower-level solves of the step; `successful` for explicit dynamics.
        steps: lower-level Newton steps.
        residual: largest violation of the lower-level equations.
        warm: what a later step from a nearby state may start from (None: nothing to reuse).
        outputs: named arrays for the user, such as contact impulses.
    """

    result: RESULTS
    steps: Int[Array, ""]
    residual: Float[Array, ""]
    warm: PyTree = None
    outputs: dict[str, Array] = eqx.field(default_factory=dict)


class Linearization(eqx.Module):
    """`x_next ~ x_next + A dx + B du`, and how its lower-level solve went."""

    A: Float[Array, "nx nx"]
    B: Float[Array, "nx nu"]
    info: StepInfo


class AbstractDynamics(eqx.Module):
    """`x_next = step(x, u, t)`, with t the index of the stage (an integer array)."""

    state_dim: eqx.AbstractVar[int]
    control_dim: eqx.AbstractVar[int]

    @abc.abstractmethod
    def step(self, x: Float[Array, " nx"], u: Float[Array, " nu"], t: Int[Array, ""]) -> Float[Array, " nx"]:
        """The next state (differentiable)."""

    def linearize(
        self, x: Float[Array, " nx"], u: Float[Array, " nu"], t: Int[Array, ""]
    ) -> tuple[Float[Array, " nx"], Float[Array, "nx nx"], Float[Array, "nx nu"]]:
        """`(x_next, A, B)` with A = dx_next/dx, B = dx_next/du."""
        x_next, _ = self.advance(x, u, t)
        local = self.sensitivities(x, u, t)
        return x_next, local.A, local.B

    def advance(self, x: Array, u: Array, t: Array, warm: PyTree = None) -> tuple[Array, StepInfo]:
        """`step` without derivative, with information; `warm` is the `StepInfo.warm` of a nearby step."""
        return self.step(x, u, t), no_lower_level(x.dtype)

    def first_guess(self, x: Array, u: Array, t: Array) -> PyTree:
        """A `StepInfo.warm` to start from when there is no earlier step (None: nothing to start from)."""
        return None

    def sensitivities(
        self, x: Array, u: Array, t: Array, warm: PyTree = None, smoothing=None
    ) -> Linearization:
        """A and B alone. `smoothing` overrides the kappa of the derivative where there is one."""
        (A, B) = jax.jacfwd(self.step, argnums=(0, 1))(x, u, t)
        return Linearization(A, B, no_lower_level(x.dtype))

    def traced(self, x: PyTree, u: PyTree, t: PyTree) -> "AbstractDynamics":
        """The same dynamics with the user's functions run once and replayed afterwards.

        The arguments tell shapes and types only (arrays or `jax.ShapeDtypeStruct`).
        """
        return self


def no_lower_level(dtype) -> StepInfo:
    """Information of a step that solves nothing."""
    return StepInfo(RESULTS.successful, jnp.asarray(0), jnp.zeros((), dtype))


class DiscreteDynamics(AbstractDynamics):
    """Dynamics given as a function `fn(x, u, t) -> x_next` in JAX (a function or a callable module)."""

    fn: PyTree
    state_dim: int = eqx.field(static=True)
    control_dim: int = eqx.field(static=True)

    def __init__(self, fn, state_dim: int, control_dim: int):
        check_dims(state_dim, control_dim)
        self.fn, self.state_dim, self.control_dim = fn, state_dim, control_dim

    def step(self, x, u, t):
        return check_next_state(self.fn(x, u, t), x)

    def traced(self, x, u, t):
        return DiscreteDynamics(trace_function(self.fn, x, u, t), self.state_dim, self.control_dim)


def check_dims(state_dim: int, control_dim: int) -> None:
    """One clear error for dimensions that cannot be meant."""
    if state_dim < 1 or control_dim < 0:
        raise ValueError(f"state_dim must be >= 1 and control_dim >= 0, got {state_dim} and {control_dim}")


def check_next_state(x_next: Array, x: Array) -> Array:
    """The next state must look like the state."""
    x_next = jnp.asarray(as_float_arrays(x_next))
    if x_next.shape != x.shape:
        raise ValueError(f"the dynamics returned a next state of shape {x_next.shape}, expected {x.shape}")
    return x_next.astype(x.dtype)
