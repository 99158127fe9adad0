"""What a trajectory optimizer needs to know of a system."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._results import RESULTS
from optdyn._tree import as_float_arrays, trace_function
from optdyn._typing import Array, Float, Int, PyTree
from optdyn.dynamics._space import StateSpace


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
    """`x_next ~ x_next + A dx + B du` in tangent coordinates, and how its lower-level solves went.

    `solves` counts them; it means nothing for dynamics without a lower level.
    """

    A: Float[Array, "ndx ndx"]
    B: Float[Array, "ndx nu"]
    info: StepInfo
    solves: Int[Array, ""] = eqx.field(default_factory=lambda: jnp.asarray(1))


class AbstractDynamics(eqx.Module):
    """`x_next = step(x, u, t)`, with t the index of the stage (an integer array).

    `state_space` tells which parts of a state are unit quaternions (default: none). Derivatives are in
    tangent coordinates, ndx = `state_space.tangent_dim(state_dim)` of them.
    """

    state_dim: eqx.AbstractVar[int]
    control_dim: eqx.AbstractVar[int]
    state_space = StateSpace()

    @abc.abstractmethod
    def step(self, x: Float[Array, " nx"], u: Float[Array, " nu"], t: Int[Array, ""]) -> Float[Array, " nx"]:
        """The next state (differentiable)."""

    def linearize(
        self, x: Float[Array, " nx"], u: Float[Array, " nu"], t: Int[Array, ""]
    ) -> tuple[Float[Array, " nx"], Float[Array, "ndx ndx"], Float[Array, "ndx nu"]]:
        """`(x_next, A, B)` with A = dx_next/dx, B = dx_next/du, in tangent coordinates."""
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
        A, B, _ = tangent_jacobians(
            self.state_space, lambda x, u: (self.step(x, u, t), no_lower_level(x.dtype)), x, u
        )
        return Linearization(A, B, no_lower_level(x.dtype))

    def traced(self, x: PyTree, u: PyTree, t: PyTree) -> "AbstractDynamics":
        """The same dynamics with the user's functions run once and replayed afterwards.

        The arguments tell shapes and types only (arrays or `jax.ShapeDtypeStruct`).
        """
        return self


def tangent_jacobians(
    space: StateSpace, step: Callable[[Array, Array], tuple[Array, PyTree]], x: Array, u: Array
) -> tuple[Array, Array, PyTree]:
    """`(A, B, aux)` of `step(x, u) -> (x_next, aux)` by forward mode, in tangent coordinates."""
    n = space.tangent_dim(x.size)

    def move(v):
        x_next, aux = step(space.retract(x, v[:n]), u + v[n:])
        return space.difference(x_next, jax.lax.stop_gradient(x_next)), aux

    jacobian, aux = jax.jacfwd(move, has_aux=True)(jnp.zeros(n + u.size, x.dtype))
    return jacobian[:, :n], jacobian[:, n:], aux


def no_lower_level(dtype) -> StepInfo:
    """Information of a step that solves nothing."""
    return StepInfo(RESULTS.successful, jnp.asarray(0), jnp.zeros((), dtype))


class DiscreteDynamics(AbstractDynamics):
    """Dynamics given as a function `fn(x, u, t) -> x_next` in JAX (a function or a callable module)."""

    fn: PyTree
    state_dim: int = eqx.field(static=True)
    control_dim: int = eqx.field(static=True)
    state_space: StateSpace

    def __init__(self, fn, state_dim: int, control_dim: int, state_space: StateSpace | None = None):
        self.state_space = check_dims(state_dim, control_dim, state_space)
        self.fn, self.state_dim, self.control_dim = fn, state_dim, control_dim

    def step(self, x, u, t):
        return check_next_state(self.fn(x, u, t), x)

    def traced(self, x, u, t):
        return eqx.tree_at(lambda d: d.fn, self, trace_function(self.fn, x, u, t))


def check_dims(state_dim: int, control_dim: int, space: StateSpace | None = None) -> StateSpace:
    """One clear error for dimensions that cannot be meant; returns the space (None: Euclidean)."""
    if state_dim < 1 or control_dim < 0:
        raise ValueError(f"state_dim must be >= 1 and control_dim >= 0, got {state_dim} and {control_dim}")
    space = StateSpace() if space is None else space
    if not isinstance(space, StateSpace):
        raise TypeError(f"state_space must be a StateSpace, got {type(space).__name__}")
    if space.quaternions and space.quaternions[-1] + 4 > state_dim:
        raise ValueError(f"a quaternion at {space.quaternions[-1]} does not fit a state of size {state_dim}")
    return space


def check_next_state(x_next: Array, x: Array) -> Array:
    """The next state must look like the state."""
    x_next = jnp.asarray(as_float_arrays(x_next))
    if x_next.shape != x.shape:
        raise ValueError(f"the dynamics returned a next state of shape {x_next.shape}, expected {x.shape}")
    return x_next.astype(x.dtype)
