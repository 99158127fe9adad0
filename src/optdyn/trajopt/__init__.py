"""The upper level: trajectory optimization problems and their solvers."""

from optdyn.trajopt._adapters import JaxoptSolver, OptaxSolver, OptimistixSolver
from optdyn.trajopt._augmented_lagrangian import AugmentedLagrangian, Continuation
from optdyn.trajopt._barrier import RelaxedBarrier
from optdyn.trajopt._constraints import Equality, Inequality
from optdyn.trajopt._costs import ResidualCost
from optdyn.trajopt._gauss_newton import GaussNewton
from optdyn.trajopt._history import History, IterationRecord, LowerLevelTotals
from optdyn.trajopt._ilqr import ILQR
from optdyn.trajopt._objective import Multipliers
from optdyn.trajopt._optimize import Plan, TrajectoryStats, optimize_trajectory
from optdyn.trajopt._optimize_shooting import ShootingPlan, ShootingStats, optimize_shooting
from optdyn.trajopt._problem import TrajectoryProblem
from optdyn.trajopt._rollout import Policy, Trajectory, rollout
from optdyn.trajopt._shooting import SingleShooting
from optdyn.trajopt._spline import ControlSpline

__all__ = [
    "ILQR",
    "AugmentedLagrangian",
    "Continuation",
    "ControlSpline",
    "Equality",
    "GaussNewton",
    "History",
    "Inequality",
    "IterationRecord",
    "JaxoptSolver",
    "LowerLevelTotals",
    "Multipliers",
    "OptaxSolver",
    "OptimistixSolver",
    "Plan",
    "Policy",
    "RelaxedBarrier",
    "ResidualCost",
    "ShootingPlan",
    "ShootingStats",
    "SingleShooting",
    "Trajectory",
    "TrajectoryProblem",
    "TrajectoryStats",
    "optimize_shooting",
    "optimize_trajectory",
    "rollout",
]
