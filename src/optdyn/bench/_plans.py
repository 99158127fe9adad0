"""Planning from several seeds, and the figures of it that every method reports."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np

from optdyn._results import RESULTS
from optdyn.dynamics import ProgramDynamics
from optdyn.interior_point import InteriorPoint
from optdyn.systems import load
from optdyn.systems._scenario import Scenario
from optdyn.trajopt import Continuation, Plan, optimize_trajectory

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
    runs = [
        Run(
            bool(plan.result == RESULTS.successful),
            int(plan.stats.inner_iterations),
            float(plan.cost),
            float(plan.constraint_violation),
            cpu_s,
        )
        for plan, cpu_s in zip(plans, times, strict=True)
    ]
    lower = [plan.stats.lower_level for plan in plans]
    return {
        **summary(runs),
        "lower_level_solves": _median([int(totals.solves) for totals in lower]),
        "lower_level_failed": sum(int(totals.failed) for totals in lower),
        "compile_cpu_s": max(compile_s - times[0], 0.0),
        **also([plan for plan, run in zip(plans, runs, strict=True) if run.solved]),
    }


@dataclass(frozen=True)
class Run:
    """One run of a method."""

    solved: bool
    iterations: int
    cost: float
    violation: float
    cpu_s: float


def summary(runs: list[Run]) -> dict[str, Any]:
    """Medians, and the largest violation, of the solved runs; CPU time of all."""
    solved = [run for run in runs if run.solved]
    return {
        "solved": len(solved),
        "seeds": len(runs),
        "iterations": _median([run.iterations for run in solved]),
        "cost": _median([run.cost for run in solved]),
        "violation": max((run.violation for run in solved), default=None),
        "cpu_s": _median([run.cpu_s for run in runs]),
    }


def with_smoothing(scenario: Scenario, smoothing: Continuation | None) -> tuple[Any, Any]:
    """The scenario's problem, and its solver with another schedule of smoothing."""
    solver = eqx.tree_at(lambda s: s.smoothing, scenario.solver, smoothing, is_leaf=lambda leaf: leaf is None)
    return scenario.problem, solver


def lower_level_solver(scenario: Scenario) -> InteriorPoint:
    """What solves the steps of the scenario."""
    dynamics = scenario.problem.dynamics
    assert isinstance(dynamics, ProgramDynamics), "the scenario has no lower level"
    return dynamics.solver


def _median(values: list) -> float | None:
    return float(np.median(values)) if values else None
