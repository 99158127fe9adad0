"""Optimization-based dynamics in JAX: declare a step as a constrained program, solve it, differentiate it."""

from optdyn import cones, implicit, interior_point, programs
from optdyn._results import RESULTS, result_name
from optdyn.implicit import ImplicitAdjoint, Solution, UnrolledAdjoint, solve
from optdyn.interior_point import InteriorPoint
from optdyn.programs import AbstractComplementarityProblem, AbstractProgram, ConicProgram, QuadraticProgram
