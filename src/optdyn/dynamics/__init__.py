"""Systems as Equinox modules: `step`, `linearize`, and information about what happened inside."""

from optdyn.dynamics._base import (
    AbstractDynamics,
    DiscreteDynamics,
    Linearization,
    StepInfo,
    tangent_jacobians,
)
from optdyn.dynamics._bundle import GradientBundle
from optdyn.dynamics._continuous import (
    RK4,
    AbstractIntegrator,
    ContinuousDynamics,
    Euler,
    ImplicitMidpoint,
    Midpoint,
)
from optdyn.dynamics._friction import Friction, FrictionalContactProblem, Motion, frictional_dynamics
from optdyn.dynamics._mechanics import DiscreteMechanics, ImpactProblem, Mechanism, mechanical_dynamics
from optdyn.dynamics._program import ProgramDynamics
from optdyn.dynamics._space import StateSpace, rotation_matrix

__all__ = [
    "RK4",
    "AbstractDynamics",
    "AbstractIntegrator",
    "ContinuousDynamics",
    "DiscreteDynamics",
    "DiscreteMechanics",
    "Euler",
    "Friction",
    "FrictionalContactProblem",
    "GradientBundle",
    "ImpactProblem",
    "ImplicitMidpoint",
    "Linearization",
    "Mechanism",
    "Midpoint",
    "Motion",
    "ProgramDynamics",
    "StateSpace",
    "StepInfo",
    "frictional_dynamics",
    "mechanical_dynamics",
    "rotation_matrix",
    "tangent_jacobians",
]
