"""Names of scenarios and variants, and how to load one."""

import importlib

import jax.numpy as jnp
import numpy as np

from optdyn.systems._scenario import Scenario, ScenarioError, Settings

# Variants of each scenario, the default one first. The builder is `build(variant, settings)` of the module.
_SCENARIOS: dict[str, tuple[str, ...]] = {
    "acrobot": ("joint_limits", "no_limits", "joint_limits_paper", "no_limits_paper"),
    "cartpole": (
        "friction_0.1",
        "frictionless",
        "friction_0.01",
        "friction_0.25",
        "friction_0.35",
        "friction_0.5",
        "friction_0.75",
        "friction_1.0",
        "friction_0.01_paper",
        "friction_0.1_paper",
        "friction_0.25_paper",
        "friction_0.35_paper",
        "friction_0.1_coupled",
        "friction_0.25_coupled",
        "friction_0.35_coupled",
        "friction_0.5_coupled",
    ),
    "box3d": ("slide", "tumble"),
    "hopper": ("gait_1", "gait_2", "gait_3", "gait_1_paper", "gait_2_paper", "gait_3_paper"),
    "planar_push": ("translate", "rotate", "translate_paper", "rotate_paper"),
    "rocket": ("projection", "nominal"),
    "walker": ("step",),
    "sliding_block": ("friction_0.3", "friction_0.1", "frictionless"),
}


def available() -> dict[str, tuple[str, ...]]:
    """Scenarios and their variants; the first variant is the default."""
    return dict(_SCENARIOS)


def load(
    name: str,
    variant: str | None = None,
    *,
    seed: int = 0,
    central_path: float | None = None,
    smoothing: float | None = None,
    dtype=None,
) -> Scenario:
    """Load a scenario.

    Arguments:
        name: see `available()`.
        variant: see `available()`; None is the first.

    Other Arguments:
        seed: of the random initial controls.
        central_path: kappa at which the system is simulated. Default: the scenario's.
        smoothing: constant kappa of the derivatives. Default: the scenario's schedule.
        dtype: of states and controls. Default: JAX' float type.

    Raises: ScenarioError for unknown names and for settings that make no sense.
    """
    if name not in _SCENARIOS:
        raise ScenarioError(f"unknown scenario {name!r}; choose from: {', '.join(_SCENARIOS)}")
    variants = _SCENARIOS[name]
    variant = variants[0] if variant is None else variant
    if variant not in variants:
        raise ScenarioError(f"unknown variant {variant!r} of {name}; choose from: {', '.join(variants)}")
    if seed < 0:
        raise ScenarioError(f"seed must be >= 0, got {seed}")
    for label, value in (("central_path", central_path), ("smoothing", smoothing)):
        if value is not None and not 0 < value < float("inf"):
            raise ScenarioError(f"{label} must be a positive number, got {value}")
    dtype = jnp.zeros(0, dtype or float).dtype  # without 64-bit floats JAX has only 32-bit ones
    build = importlib.import_module(f"optdyn.systems._{name}").build
    return build(variant, Settings(seed, central_path, smoothing, np.dtype(dtype)))
