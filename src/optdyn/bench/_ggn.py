"""Generalized Gauss-Newton against DIAL-MPC and MPPI in closed loop on the chain of pendulums.

All see the same cost, model and knots. Cases: the number of knots (decision variables), the effort of each
method (for cost against time), and the number of environments (time of one batch of solves).
"""

import time
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from optdyn.bench._task import Options, Task
from optdyn.mpc import DIALMPC, MPPI, AbstractController, GaussNewtonMPC, simulate
from optdyn.systems import ControlTask, load_task
from optdyn.trajopt import GaussNewton

TASK = "chain"
KNOTS = (2, 3, 6, 10, 16, 25)
EFFORTS = ((1, 32), (1, 128), (4, 32), (4, 128), (4, 512))  # rounds and samples of DIAL
ITERATIONS = (1, 2, 4)
ENVIRONMENTS = (1, 4, 16, 64, 256, 1024)


def ggn(given: ControlTask, iterations: int = 1) -> AbstractController:
    """Gauss-Newton with 16 step lengths."""
    return GaussNewtonMPC(GaussNewton(max_iterations=iterations, num_steps=16))


def dial(given: ControlTask, iterations: int = 4, num_samples: int = 128) -> AbstractController:
    """DIAL-MPC with the published schedule."""
    return DIALMPC(given.spread, num_samples, iterations)


def mppi(given: ControlTask, num_samples: int = 512) -> AbstractController:
    """MPPI with as many samples in one round as DIAL has in four."""
    return MPPI(given.spread, given.temperature, num_samples)


@eqx.filter_jit
def _episodes(controller, task, plant, starts, keys, controls, steps: int):
    def one(x0, key):
        return simulate(controller, task, plant, x0, steps, controls=controls, key=key)

    return jax.lax.map(lambda inputs: one(*inputs), (starts, keys))


def measure_episodes(make, knots: int, seeds: int, steps: int | None = None) -> dict[str, Any]:
    """Closed loops from several starts, one after the other; CPU time of compiled code."""
    given = [load_task(TASK, seed=seed, num_knots=knots) for seed in range(seeds)]
    first = given[0]
    steps = first.steps if steps is None else steps
    starts = jnp.stack([each.x0 for each in given])
    keys = jax.vmap(jax.random.key)(jnp.arange(seeds))
    run = partial(_episodes, make(first), first.task, first.plant, starts, keys, first.controls, steps)
    began = time.process_time()
    jax.block_until_ready(run())
    compiled = time.process_time()
    loops = jax.block_until_ready(run())
    cpu_s = time.process_time() - compiled
    costs = np.sum(np.asarray(loops.stage_costs), axis=1)
    finite = np.all(np.isfinite(np.asarray(loops.states)), axis=(1, 2))
    return {
        "seeds": seeds,
        "variables": knots * first.controls.shape[1],
        "environments": 1,
        "steps": steps,
        "completed": int(np.sum(finite)),
        "cost": float(np.median(np.where(finite, costs, np.inf))),
        "costs": costs.tolist(),
        "cpu_s": cpu_s,
        "cpu_s_per_solve": cpu_s / (seeds * steps),
        "compile_cpu_s": max(compiled - began - cpu_s, 0.0),
    }


@eqx.filter_jit
def _batch(controller, task, states, starts):
    return jax.vmap(lambda state, x: controller.step(task, state, x))(states, starts)


def measure_batch(make, environments: int) -> dict[str, Any]:
    """Time of one control step of many environments together, after their first."""
    given = load_task(TASK)
    noise = np.random.default_rng(0).uniform(-0.3, 0.3, (environments, given.x0.size))
    starts = given.x0[None] + jnp.asarray(noise, given.x0.dtype)
    controller = make(given)
    keys = jax.vmap(jax.random.key)(jnp.arange(environments))
    states = jax.vmap(lambda key: controller.init(given.task, given.controls, key))(keys)
    _, states, _ = jax.block_until_ready(_batch(controller, given.task, states, starts))
    times = []
    for _ in range(3):
        began = time.process_time(), time.perf_counter()
        jax.block_until_ready(_batch(controller, given.task, states, starts))
        times.append((time.process_time() - began[0], time.perf_counter() - began[1]))
    cpu_s, wall_s = (float(np.median(column)) for column in zip(*times, strict=True))
    return {
        "seeds": 1,
        "variables": given.task.spline.size(given.task.problem.horizon) * given.controls.shape[1],
        "environments": environments,
        "cpu_s": cpu_s,
        "wall_s": wall_s,
        "cpu_s_per_solve": cpu_s / environments,
    }


def tasks(options: Options) -> list[Task]:
    """All cases (quick: one dimension, short episodes, four environments)."""
    methods = (("GGN 1x16", ggn), ("DIAL 4x128", dial), ("MPPI 1x512", mppi))
    if options.quick:
        short = [Task("knots 6", n, partial(measure_episodes, m, 6, 1, 10)) for n, m in methods[:2]]
        return short + [Task("environments 4", n, partial(measure_batch, m, 4)) for n, m in methods[:2]]
    found = []
    for knots in KNOTS:
        for name, make in methods:
            found.append(Task(f"knots {knots}", name, partial(measure_episodes, make, knots, options.seeds)))
    for n in ITERATIONS[1:]:
        make = partial(ggn, iterations=n)
        found.append(Task("effort", f"GGN {n}x16", partial(measure_episodes, make, 6, options.seeds)))
    for rounds, samples in EFFORTS:
        make = partial(dial, iterations=rounds, num_samples=samples)
        measure = partial(measure_episodes, make, 6, options.seeds)
        found.append(Task("effort", f"DIAL {rounds}x{samples}", measure))
    for environments in ENVIRONMENTS:
        for name, make in methods[:2]:
            found.append(
                Task(f"environments {environments}", name, partial(measure_batch, make, environments))
            )
    return found
