"""Slide a box in space over a plane, and tip it onto its next face. Eight corners touch, with friction.

Run it with `python examples/box3d.py`, or with `--quick` for the sliding only.
"""

import sys

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
import optdyn as od

for variant in ["slide"] if "--quick" in sys.argv else ["slide", "tumble"]:
    scenario = od.systems.load("box3d", variant)
    plan = od.optimize_trajectory(scenario.problem, scenario.x0, scenario.controls, solver=scenario.solver)
    states, load = np.asarray(plan.states), np.asarray(plan.step_info.outputs["impulse"])
    center, attitude = states[:, 7:10], states[:, 10:]
    turn = 2 * np.arccos(min(abs(attitude[-1] @ attitude[0]), 1.0))
    down = (load > 1e-2).sum(axis=1)
    print(f"{variant}: {scenario.description.lower()}")
    print(f"  {od.result_name(plan.result)} after {int(plan.stats.inner_iterations)} iterations")
    x, y, _ = center[-1]
    print(f"  the centre ends at ({x:.2f}, {y:.2f}) m and is up to {center[:, 2].max():.3f} m high")
    print(f"  the box turns by {np.rad2deg(turn):.1f} degrees")
    print("  corners on the ground, step by step:", "".join(str(count) for count in down))
    print(f"  quaternions stay of unit length to {np.abs(np.linalg.norm(attitude, axis=1) - 1).max():.0e}")
