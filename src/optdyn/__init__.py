"""Optimization-based dynamics in JAX: declare a step as a constrained program, solve it, differentiate it.

Names are imported on first use (PEP 562): `import optdyn` itself loads nothing, not even JAX.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optdyn import (
        cones,
        dynamics,
        implicit,
        interior_point,
        mjx,
        mpc,
        neural,
        programs,
        systems,
        trajopt,
        viz,
    )
    from optdyn._results import RESULTS, result_name
    from optdyn.dynamics import AbstractDynamics
    from optdyn.implicit import ImplicitAdjoint, Solution, UnrolledAdjoint, solve
    from optdyn.interior_point import InteriorPoint
    from optdyn.programs import (
        AbstractComplementarityProblem,
        AbstractProgram,
        ConicProgram,
        QuadraticProgram,
    )
    from optdyn.systems import ScenarioError
    from optdyn.trajopt import ILQR, AugmentedLagrangian, Plan, TrajectoryProblem, optimize_trajectory

_HOME = {
    "AbstractComplementarityProblem": "programs",
    "AbstractDynamics": "dynamics",
    "AbstractProgram": "programs",
    "AugmentedLagrangian": "trajopt",
    "ConicProgram": "programs",
    "ILQR": "trajopt",
    "ImplicitAdjoint": "implicit",
    "InteriorPoint": "interior_point",
    "Plan": "trajopt",
    "QuadraticProgram": "programs",
    "RESULTS": "_results",
    "ScenarioError": "systems",
    "Solution": "implicit",
    "TrajectoryProblem": "trajopt",
    "UnrolledAdjoint": "implicit",
    "optimize_trajectory": "trajopt",
    "result_name": "_results",
    "solve": "implicit",
}
_FOLDERS = (
    "cones",
    "dynamics",
    "implicit",
    "interior_point",
    "mjx",
    "mpc",
    "neural",
    "programs",
    "systems",
    "trajopt",
    "viz",
)

__all__ = [
    "ILQR",
    "RESULTS",
    "AbstractComplementarityProblem",
    "AbstractDynamics",
    "AbstractProgram",
    "AugmentedLagrangian",
    "ConicProgram",
    "ImplicitAdjoint",
    "InteriorPoint",
    "Plan",
    "QuadraticProgram",
    "ScenarioError",
    "Solution",
    "TrajectoryProblem",
    "UnrolledAdjoint",
    "cones",
    "dynamics",
    "implicit",
    "interior_point",
    "mjx",
    "mpc",
    "neural",
    "optimize_trajectory",
    "programs",
    "result_name",
    "solve",
    "systems",
    "trajopt",
    "viz",
]


def __getattr__(name: str) -> Any:
    if name in _FOLDERS:
        return importlib.import_module(f"optdyn.{name}")
    if name in _HOME:
        value = getattr(importlib.import_module(f"optdyn.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'optdyn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
