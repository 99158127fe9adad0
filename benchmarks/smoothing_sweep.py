"""How the smoothing of the derivatives changes the planning of the published acrobot.

Every smoothing is held constant over all rounds, with settings like those of the authors' code: penalties
that start at 1 and grow tenfold in every round, and inner solves to a relative 1e-4 without a small limit.
Prints a Markdown table: successes, iterations over all rounds (mean, standard deviation and median of the
solved ones) and the median cost. All runs share one compiled program.

    python benchmarks/smoothing_sweep.py --seeds 5
    python benchmarks/smoothing_sweep.py --quick
"""

import argparse
from dataclasses import dataclass

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

import optdyn as od  # noqa: E402 (the precision comes before the first array)
from optdyn.trajopt import Continuation  # noqa: E402

SMOOTHINGS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


@dataclass(frozen=True)
class Run:
    """One solve."""

    solved: bool
    iterations: int
    cost: float


def solver(smoothing: float) -> od.AugmentedLagrangian:
    """The settings of the table."""
    return od.AugmentedLagrangian(
        od.ILQR(max_iterations=100, cost_tol=1e-4),
        constraint_tol=1e-3,
        max_rounds=10,
        initial_penalty=1.0,
        penalty_factor=10.0,
        sufficient_progress=0.0,  # every row above its tolerance gets the larger penalty, in every round
        smoothing=Continuation(start=smoothing, end=smoothing, factor=1.0),
    )


def run(variant: str, smoothing: float, seed: int) -> Run:
    """Plan from the first controls of a seed."""
    scenario = od.systems.load("acrobot", variant, seed=seed)
    plan = od.optimize_trajectory(
        scenario.problem, scenario.x0, scenario.controls, solver=solver(smoothing), throw=False
    )
    solved = od.result_name(plan.result) == "successful"
    return Run(solved, int(plan.stats.inner_iterations), float(plan.cost))


def row(smoothing: float, runs: list[Run]) -> str:
    """A line of the table."""
    solved = [run for run in runs if run.solved]
    counts = f"| {smoothing:.0e} | {len(solved)} of {len(runs)} "
    if not solved:
        return counts + "| | | |"
    iterations = [run.iterations for run in solved]
    cost = float(np.median([run.cost for run in solved]))
    spread = f"{np.mean(iterations):.0f} ± {np.std(iterations):.0f}"
    return counts + f"| {spread} | {np.median(iterations):g} | {cost:.1f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="runs per smoothing (default 5)")
    parser.add_argument("--quick", action="store_true", help="one seed, the three middle values")
    parser.add_argument("--variant", default="joint_limits_paper", help="of the acrobot")
    arguments = parser.parse_args()
    seeds = 1 if arguments.quick else arguments.seeds
    print("| smoothing | solved | iterations | median | cost |\n|---|---|---|---|---|", flush=True)
    for smoothing in SMOOTHINGS[1:-1] if arguments.quick else SMOOTHINGS:
        print(row(smoothing, [run(arguments.variant, smoothing, seed) for seed in range(seeds)]), flush=True)


if __name__ == "__main__":
    main()
