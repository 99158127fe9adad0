"""The JSON document of a solved scenario. Other tools read it: its keys are a contract (docs/cli.md)."""

import json
import math
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optdyn._versions import installed_version


@dataclass(frozen=True)
class Timing:
    """Wall times of one run of the command, in seconds.

    Arguments:
        compile_s: the first call less the second: tracing and compiling.
        solve_s: the second call, which runs the program that the first one compiled.
        first_result_s: from the start of the process to the first result: import, trace, compile, solve.
    """

    compile_s: float
    solve_s: float
    first_result_s: float


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    packages = ("optdyn", "jax", "jaxlib", "equinox", "lineax", "optimistix", "numpy")
    return {
        "python": platform.python_version(),
        **{name: installed_version(name) or "unknown" for name in packages},
    }


def document(
    scenario: Any, plan: Any, *, result: str, goal_error: float, timing: Timing, dtype: str
) -> dict[str, Any]:
    """Everything about a solved scenario as plain Python values."""
    lower = plan.stats.lower_level
    return {
        "scenario": scenario.name,
        "variant": scenario.variant,
        "result": result,
        "cost": float(plan.cost),
        "goal_error": float(goal_error),
        "constraint_violation": float(plan.constraint_violation),
        "iterations": {
            "outer": int(plan.stats.outer_iterations),
            "inner": int(plan.stats.inner_iterations),
        },
        "lower_level": {
            "solves": int(lower.solves),
            "failed": int(lower.failed),
            "steps_mean": float(lower.steps_mean),
            "steps_max": int(lower.steps_max),
            "residual_max": float(lower.residual_max),
        },
        "time": asdict(timing),
        "dtype": dtype,
        "versions": versions(),
        "states": np.asarray(plan.states, dtype=float).tolist(),
        "controls": np.asarray(plan.controls, dtype=float).tolist(),
        "times": np.asarray(scenario.times, dtype=float).tolist(),
        "outputs": {
            name: np.asarray(value, dtype=float).tolist() for name, value in plan.step_info.outputs.items()
        },
    }


def write(content: dict[str, Any], path: Path) -> None:
    """Write `content` as JSON; numbers that are not finite, which JSON cannot hold, become null."""
    text = json.dumps(_finite(content), allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
