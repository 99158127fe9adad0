"""Closed loops: on the host with every step timed, or as one compiled program."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from optdyn._results import RESULTS, result_name
from optdyn._typing import Array, Float
from optdyn.dynamics import AbstractDynamics
from optdyn.mpc._base import AbstractController, ControllerState, ControlReport
from optdyn.mpc._plant import AbstractPlant, ModulePlant, checked_step
from optdyn.trajopt import SingleShooting

Task = SingleShooting | Callable[[int], SingleShooting]


@dataclass(frozen=True)
class Episode:
    """What happened in a closed loop, on the host.

    Attributes:
        states: measured, x_0 .. x_T [T+1, nx]; T is smaller than asked for if the plant failed.
        controls: applied [T, nu].
        stage_costs: the task's cost at stage 0 of each step, in the measured state [T].
        merits: of the plans [T].
        results: names of the optimizer's result in each step.
        seconds: wall time of each control step [T], the plant and compilation apart.
        compile_seconds: wall time of the compilation, with one step.
        completed: every step was made and every state is finite.
    """

    states: np.ndarray
    controls: np.ndarray
    stage_costs: np.ndarray
    merits: np.ndarray
    results: tuple[str, ...]
    seconds: np.ndarray
    compile_seconds: float
    completed: bool

    @property
    def cost(self) -> float:
        """Sum of the stage costs; infinite if the episode was not completed."""
        return float(np.sum(self.stage_costs)) if self.completed else float("inf")


@eqx.filter_jit
def _control(controller: AbstractController, task: SingleShooting, state: ControllerState, x: Array):
    u, state, report = controller.step(task, state, x)
    return u, state, report, task.problem.stage_cost(x, u, jnp.asarray(0))


def closed_loop(
    controller: AbstractController,
    task: Task,
    plant: AbstractPlant | AbstractDynamics,
    x0: Float[Array, " nx"],
    steps: int,
    *,
    controls: Float[Array, "N nu"] | None = None,
    key: Array | None = None,
    callback: Callable[[int, ControlReport, float], None] | None = None,
) -> Episode:
    """Control a plant for some steps, one at a time.

    Arguments:
        controller: any of this folder.
        task: what to plan, or a function of the step k = 0, 1, .. that tells it (tasks of one structure, so
            that nothing compiles again).
        plant: a dynamics module, or an `AbstractPlant` such as `MuJoCoPlant`.
        x0: initial state [nx].
        steps: number of control steps.

    Other Arguments:
        controls: first guess of the plan [N, nu]. Default: zeros.
        key: of the controller's random numbers. Default: `jax.random.key(0)`.
        callback: called with (k, report, seconds) after each step.

    Raises:
        TypeError: for arguments of the wrong kind.
        ValueError: for shapes that do not fit, or a task that the controller cannot take.
    """
    if not isinstance(controller, AbstractController):
        raise TypeError(f"controller must be an AbstractController, got {type(controller).__name__}")
    if isinstance(plant, AbstractDynamics):
        plant = ModulePlant(plant)
    if not isinstance(plant, AbstractPlant):
        raise TypeError(f"plant must be an AbstractDynamics or an AbstractPlant, got {type(plant).__name__}")
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")

    def task_at(k: int) -> SingleShooting:
        return task if isinstance(task, SingleShooting) else task(k)

    first = task_at(0)
    state = controller.init(first, controls, key)
    x = jnp.asarray(x0, state.controls.dtype)
    nx = first.problem.dynamics.state_dim
    if x.shape != (nx,):
        raise ValueError(f"x0 must have shape ({nx},), got {x.shape}")
    began = time.perf_counter()
    jax.block_until_ready(_control(controller, first, state, x))
    compile_seconds = time.perf_counter() - began

    plant.reset(np.asarray(x))
    states, rows = [np.asarray(x)], []
    for k in range(steps):
        began = time.perf_counter()
        u, state, report, cost = jax.block_until_ready(_control(controller, task_at(k), state, x))
        seconds = time.perf_counter() - began
        rows.append((np.asarray(u), float(cost), float(report.merit), result_name(report.result), seconds))
        if callback is not None:
            callback(k, report, seconds)
        measured = plant.step(np.asarray(u), k)
        states.append(measured)
        if not np.all(np.isfinite(measured)):
            break
        x = jnp.asarray(measured, x.dtype)
    applied, costs, merits, results, times = zip(*rows, strict=True)
    return Episode(
        states=np.stack(states),
        controls=np.stack(applied),
        stage_costs=np.asarray(costs),
        merits=np.asarray(merits),
        results=results,
        seconds=np.asarray(times),
        compile_seconds=compile_seconds,
        completed=len(rows) == steps and bool(np.all(np.isfinite(states[-1]))),
    )


class ClosedLoop(eqx.Module):
    """What `simulate` returns: arrays along the steps, as in `Episode`."""

    states: Float[Array, "T+1 nx"]
    controls: Float[Array, "T nu"]
    stage_costs: Float[Array, " T"]
    merits: Float[Array, " T"]
    results: RESULTS


def simulate(
    controller: AbstractController,
    task: SingleShooting,
    plant: AbstractDynamics,
    x0: Float[Array, " nx"],
    steps: int,
    *,
    controls: Float[Array, "N nu"] | None = None,
    key: Array | None = None,
) -> ClosedLoop:
    """A closed loop with a dynamics module as a pure function: jit it, and vmap it over environments.

    Arguments are those of `closed_loop`. A failed step of the plant makes all later states NaN.
    """

    def advance(carry, k):
        state, x = carry
        u, state, report = controller.step(task, state, x)
        cost = task.problem.stage_cost(x, u, jnp.asarray(0))
        x_next = checked_step(plant, x, u, k)
        return (state, x_next), (x_next, u, cost, report.merit, report.result)

    start = (controller.init(task, controls, key), x0)
    start = eqx.tree_at(lambda c: c[0].controls, start, start[0].controls.astype(x0.dtype))
    _, (states, applied, costs, merits, results) = jax.lax.scan(advance, start, jnp.arange(steps))
    return ClosedLoop(jnp.concatenate([x0[None], states]), applied, costs, merits, results)
