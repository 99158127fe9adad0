"""Success and iterations against the smoothing of the derivatives, held constant over all rounds.

Twice: derivatives on the central path, and at the point where the published code stops (see `_stop_below`).
The acrobot is planned with settings like those of the published code: penalties that start at 1 and grow
tenfold in every round, and inner solves to a relative 1e-4 without a small limit. The others keep theirs.
"""

from functools import partial

import equinox as eqx

from optdyn.bench._plans import lower_level_solver, measure_plans, with_smoothing
from optdyn.bench._stop_below import StopBelow
from optdyn.bench._task import Options, Task
from optdyn.systems._scenario import Scenario
from optdyn.trajopt import ILQR, AugmentedLagrangian, Continuation

SMOOTHINGS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
CASES = (
    ("acrobot", "joint_limits_paper"),
    ("cartpole", "friction_0.35_paper"),
    ("planar_push", "rotate_paper"),
)
RULES = ("on the path", "below")


def sweep(scenario: Scenario, smoothing: float, rule: str):
    """The problem with derivatives at a constant smoothing, by one of the rules."""
    constant = Continuation(start=smoothing, end=smoothing, factor=1.0)
    problem, solver = with_smoothing(scenario, constant)
    if scenario.name == "acrobot":
        solver = AugmentedLagrangian(
            ILQR(max_iterations=100, cost_tol=1e-4),
            constraint_tol=1e-3,
            max_rounds=10,
            initial_penalty=1.0,
            penalty_factor=10.0,
            sufficient_progress=0.0,  # every row above its tolerance gets the larger penalty, in every round
            smoothing=constant,
        )
    if rule == "below":
        inner = lower_level_solver(scenario)
        problem = eqx.tree_at(lambda p: p.dynamics.solver, problem, StopBelow(inner.central_path, inner))
    return problem, solver


def tasks(options: Options) -> list[Task]:
    """Every smoothing under both rules on every case (quick: two smoothings of the acrobot, one seed)."""
    cases = CASES[:1] if options.quick else CASES
    smoothings = (1e-3, 1e-2) if options.quick else SMOOTHINGS
    seeds = 1 if options.quick else options.seeds
    return [
        Task(
            f"{name}/{variant}",
            f"{rule}, {smoothing:.0e}",
            partial(measure_plans, name, variant, seeds, partial(sweep, smoothing=smoothing, rule=rule)),
        )
        for name, variant in cases
        for rule in RULES
        for smoothing in smoothings
    ]
