"""What every receding-horizon controller has in common."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp

from optdyn._results import RESULTS
from optdyn._typing import Array, Float, Int
from optdyn.trajopt import SingleShooting
from optdyn.trajopt._shooting import Shooting, trace_shooting


class ControllerState(eqx.Module):
    """What a controller remembers: the plan for the next step, and how many steps there were."""

    controls: Float[Array, "N nu"]
    steps: Int[Array, ""]
    key: Array


class ControlReport(eqx.Module):
    """How one step went.

    Attributes:
        merit: cost of the plan with barriers (for `ILQRMPC` without); infinite if a step of it failed.
        result: of the optimizer. `max_steps_reached` is usual, as a controller stops after few iterations;
            sampling claims `successful` only of having a finite plan.
        controls: the plan.
    """

    merit: Float[Array, ""]
    result: RESULTS
    controls: Float[Array, "N nu"]


class AbstractController(eqx.Module):
    """A pure pair: `init` makes a state, `step` maps (state, measured x) to (u, next state, report).

    The task is an argument of `step`, so a cost may change from one step to the next as long as its arrays
    keep their shapes. Each step starts from the last plan, one stage later; the first one repeats its work
    `first_solves` times.
    """

    # A property and not an abstract field: type checkers take those for the first argument of subclasses.
    @property
    @abc.abstractmethod
    def first_solves(self) -> int:
        """How often the first step repeats its work."""

    @abc.abstractmethod
    def improve(
        self, task: SingleShooting, shooting: Shooting, controls: Float[Array, "N nu"], key: Array
    ) -> ControlReport:
        """A better plan from the state `shooting.x0` on."""

    def check(self, task: SingleShooting) -> None:
        """Raise for a task that the controller cannot take."""

    def init(
        self, task: SingleShooting, controls: Float[Array, "N nu"] | None = None, key: Array | None = None
    ) -> ControllerState:
        """State before the first step.

        Arguments:
            task: problem and spline.
            controls: first guess of the plan [horizon, control_dim]. Default: zeros.
            key: of the random numbers. Default: `jax.random.key(0)`.

        Raises:
            TypeError: for a task that is not a `SingleShooting`.
            ValueError: for a task that the controller cannot take, or controls of another shape.
        """
        if not isinstance(task, SingleShooting):
            raise TypeError(f"task must be a SingleShooting, got {type(task).__name__}")
        self.check(task)
        shape = (int(task.problem.horizon), task.problem.dynamics.control_dim)
        controls = jnp.zeros(shape) if controls is None else jnp.asarray(controls)
        if controls.shape != shape:
            raise ValueError(f"controls must have shape {shape}, got {controls.shape}")
        return ControllerState(controls, jnp.asarray(0), jax.random.key(0) if key is None else key)

    def step(
        self, task: SingleShooting, state: ControllerState, x: Float[Array, " nx"]
    ) -> tuple[Float[Array, " nu"], ControllerState, ControlReport]:
        """Improve the plan from the measured state `x` and apply its first control."""
        shooting = trace_shooting(task, x)
        controls = state.controls.astype(x.dtype)
        key = jax.random.fold_in(state.key, state.steps)

        def improve(i, controls):
            return self.improve(task, shooting, controls, jax.random.fold_in(key, i))

        shapes = jax.eval_shape(improve, jnp.asarray(0), controls)
        blank = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
        start = eqx.tree_at(lambda r: r.controls, blank, controls)
        repeats = jnp.where(state.steps == 0, self.first_solves, 1)
        report = jax.lax.fori_loop(0, repeats, lambda i, r: improve(i, r.controls), start)
        following = ControllerState(task.spline.shift(report.controls), state.steps + 1, state.key)
        return report.controls[0], following, report


def resampled(
    task: SingleShooting, shooting: Shooting, controls: Float[Array, "N nu"]
) -> Float[Array, "K nu"]:
    """Knots of a plan, within the bounds."""
    matrix = jnp.asarray(task.spline.resampling(controls.shape[0]), controls.dtype)
    return shooting.inside(matrix @ controls)
