"""Statements of problems, and their translation to the system that the interior-point core solves."""

from optdyn.programs._program import (
    AbstractComplementarityProblem,
    AbstractProblem,
    AbstractProgram,
    ravel_primal,
)
from optdyn.programs._quadratic import ConicProgram, QuadraticProgram
from optdyn.programs._system import AbstractSystem, Jacobian

__all__ = [
    "AbstractComplementarityProblem",
    "AbstractProblem",
    "AbstractProgram",
    "AbstractSystem",
    "ConicProgram",
    "Jacobian",
    "QuadraticProgram",
    "ravel_primal",
]
