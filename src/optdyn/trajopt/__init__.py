"""The upper level: trajectory optimization problems and their solvers."""

from optdyn.trajopt._augmented_lagrangian import AugmentedLagrangian, Continuation
from optdyn.trajopt._constraints import Equality, Inequality
from optdyn.trajopt._costs import ResidualCost
from optdyn.trajopt._history import History, IterationRecord, LowerLevelTotals
from optdyn.trajopt._ilqr import ILQR
from optdyn.trajopt._objective import Multipliers
from optdyn.trajopt._optimize import Plan, TrajectoryStats, optimize_trajectory
from optdyn.trajopt._problem import TrajectoryProblem
from optdyn.trajopt._rollout import Policy, Trajectory, rollout

__all__ = [
    "ILQR",
    "AugmentedLagrangian",
    "Continuation",
    "Equality",
    "History",
    "Inequality",
    "IterationRecord",
    "LowerLevelTotals",
    "Multipliers",
    "Plan",
    "Policy",
    "ResidualCost",
    "Trajectory",
    "TrajectoryProblem",
    "TrajectoryStats",
    "optimize_trajectory",
    "rollout",
]
