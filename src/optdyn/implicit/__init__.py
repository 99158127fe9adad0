"""Solving with derivatives: `solve`, the implicit rule, and sensitivities with one factor."""

from optdyn.implicit._adjoint import AbstractAdjoint, ImplicitAdjoint, UnrolledAdjoint
from optdyn.implicit._sensitivity import Sensitivity, sensitivity
from optdyn.implicit._solve import Solution, Stats, solve, solve_system

__all__ = [
    "AbstractAdjoint",
    "ImplicitAdjoint",
    "Sensitivity",
    "Solution",
    "Stats",
    "UnrolledAdjoint",
    "sensitivity",
    "solve",
    "solve_system",
]
