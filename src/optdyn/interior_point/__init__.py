"""The lower-level solver: path following to a point on the central path."""

from optdyn.interior_point._attempts import run_attempts
from optdyn.interior_point._factorization import coarse_regularization, factor_general, factor_symmetric
from optdyn.interior_point._initialization import cold_start, warm_start
from optdyn.interior_point._newton_system import NewtonSystem, condensed_matrix, newton_system
from optdyn.interior_point._solver import InteriorPoint
from optdyn.interior_point._state import Certificate, PathPoint, PrimalDualPoint, Record, Violations

__all__ = [
    "Certificate",
    "InteriorPoint",
    "NewtonSystem",
    "PathPoint",
    "PrimalDualPoint",
    "Record",
    "Violations",
    "coarse_regularization",
    "cold_start",
    "condensed_matrix",
    "factor_general",
    "factor_symmetric",
    "newton_system",
    "run_attempts",
    "warm_start",
]
