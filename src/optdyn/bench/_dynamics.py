"""Ways to differentiate or to transcribe the same constrained dynamics.

Same system, cost, tolerance and starts. The methods:

- implicit: the scenario as it is, derivatives at its smoothing.
- hard: derivatives at the simulated kappa, without smoothing.
- bundle eps: `GradientBundle` around the simulated steps, four samples per coordinate.
- MuJoCo: the acrobot in MuJoCo's C engine with central differences.
- IPOPT: all states, impulses and controls as variables of one program (casadi).
"""

from functools import partial

import equinox as eqx

from optdyn.bench._direct import measure_direct
from optdyn.bench._mujoco import measure_mujoco
from optdyn.bench._plans import lower_level_solver, measure_plans, with_smoothing
from optdyn.bench._task import Options, Task
from optdyn.dynamics import GradientBundle
from optdyn.systems._scenario import Scenario
from optdyn.trajopt import Continuation

CASES = (
    ("acrobot", "joint_limits"),
    ("planar_push", "translate"),
    ("planar_push", "rotate"),
    ("hopper", "gait_1"),
)
SAMPLES = 4  # per coordinate of state and control; about the published number for the push
SPREADS = (1e-4, 1e-2)


def hard(scenario: Scenario):
    """Derivatives at the kappa of the simulation."""
    kappa = lower_level_solver(scenario).central_path
    return with_smoothing(scenario, Continuation(kappa, kappa))


def bundled(scenario: Scenario, spread: float):
    """Derivatives by randomized smoothing."""
    problem, solver = with_smoothing(scenario, None)
    dynamics = problem.dynamics
    size = dynamics.state_space.tangent_dim(dynamics.state_dim) + dynamics.control_dim
    bundle = GradientBundle(dynamics, SAMPLES * size, spread)
    return eqx.tree_at(lambda p: p.dynamics, problem, bundle), solver


def tasks(options: Options) -> list[Task]:
    """All methods on all cases (quick: two methods on one case)."""
    if options.quick:
        case = ("acrobot", "joint_limits_paper")
        return [
            Task("/".join(case), "implicit", partial(measure_plans, *case, 1)),
            Task("/".join(case), "hard", partial(measure_plans, *case, 1, hard)),
        ]
    found = []
    for name, variant in CASES:
        label, seeds = f"{name}/{variant}", options.seeds
        found.append(Task(label, "implicit", partial(measure_plans, name, variant, seeds)))
        found.append(Task(label, "hard", partial(measure_plans, name, variant, seeds, hard)))
        for spread in SPREADS:
            measure = partial(measure_plans, name, variant, seeds, partial(bundled, spread=spread))
            found.append(Task(label, f"bundle {spread:.0e}", measure))
        if name == "acrobot" and options.allows("mujoco"):
            found.append(
                Task(label, "MuJoCo differences", partial(measure_mujoco, variant, seeds), ("mujoco",))
            )
        if name != "acrobot" and options.allows("casadi"):
            found.append(Task(label, "IPOPT", partial(measure_direct, name, variant, seeds), ("casadi",)))
    return found
