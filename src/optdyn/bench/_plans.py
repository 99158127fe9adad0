"""Planning from several seeds, and the figures of it that every method reports."""

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from optdyn._results import RESULTS
from optdyn.systems import load
from optdyn.systems._scenario import Scenario
from optdyn.trajopt import Plan, optimize_trajectory

Change = Callable[[Scenario], tuple[Any, Any]]


def unchanged(scenario: Scenario) -> tuple[Any, Any]:
    """Problem and solver of a scenario as they are."""
    return scenario.problem, scenario.solver


def measure_plans(
    name: str,
    variant: str,
    seeds: int,
    change: Change = unchanged,
    also: Callable[[list[Plan]], dict[str, Any]] = lambda solved: {},
) -> dict[str, Any]:
    """Solve a scenario for seeds 0, 1, ...

    Medians are over the solved plans; CPU time is that of compiled code, the compilation apart.

    Arguments:
        name: of the scenario.
        variant: of the scenario.
        seeds: how many.
        change: `scenario -> (problem, solver)`, the method.
        also: `solved plans -> named numbers`, further figures of the method.
    """
    compile_s = 0.0
    plans, times = [], []
    for seed in range(seeds):
        scenario = load(name, variant, seed=seed)
        problem, solver = change(scenario)

        def run(scenario=scenario, problem=problem, solver=solver) -> tuple[Plan, float]:
            began = time.process_time()
            plan = optimize_trajectory(problem, scenario.x0, scenario.controls, solver=solver, throw=False)
            return jax.block_until_ready(plan), time.process_time() - began

        if seed == 0:
            _, compile_s = run()
        plan, cpu_s = run()
        plans.append(plan)
        times.append(cpu_s)
    solved = [plan for plan in plans if plan.result == RESULTS.successful]
    lower = [plan.stats.lower_level for plan in plans]
    return {
        "solved": len(solved),
        "seeds": seeds,
        "iterations": _median([int(plan.stats.inner_iterations) for plan in solved]),
        "cost": _median([float(plan.cost) for plan in solved]),
        "violation": max((float(plan.constraint_violation) for plan in solved), default=None),
        "lower_level_solves": _median([int(totals.solves) for totals in lower]),
        "lower_level_failed": sum(int(totals.failed) for totals in lower),
        "cpu_s": float(np.median(times)),
        "compile_cpu_s": max(compile_s - times[0], 0.0),
        **also(solved),
    }


def _median(values: list) -> float | None:
    return float(np.median(values)) if values else None
