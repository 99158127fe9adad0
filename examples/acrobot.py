"""Swing up a double pendulum whose only motor is at the elbow, and whose elbow hits hard stops.

Run it with `python examples/acrobot.py`.
"""

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
import optdyn as od

scenario = od.systems.load("acrobot", "joint_limits", seed=0)
plan = od.optimize_trajectory(scenario.problem, scenario.x0, scenario.controls, solver=scenario.solver)

elbow = np.rad2deg(np.asarray(plan.states)[:, 3])
impulse = np.asarray(plan.step_info.outputs["impulse"])
hits = np.flatnonzero(impulse.max(axis=1) > 0.05)
lower = plan.stats.lower_level

print(f"{od.result_name(plan.result)} after {int(plan.stats.inner_iterations)} iterations")
print(f"upright to {scenario.goal_error(plan):.1e} rad after {scenario.times[-1]:.0f} s")
print(f"the elbow turns from {elbow.min():.2f} to {elbow.max():.2f} degrees; its stops are at -90 and 90")
print(
    f"it touches a stop in {hits.size} of {len(impulse)} steps, first at {scenario.times[hits[0] + 1]:.2f} s"
)
motor = np.abs(np.asarray(plan.controls)).max()
print(f"the hardest hit takes {impulse.max():.2f} N m s; the motor gives at most {motor:.2f} N m s in a step")
print(f"{int(lower.solves)} steps were solved, {int(lower.failed)} of them without success")
