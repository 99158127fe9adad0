"""Find a gait of a hopping robot: the motion is periodic, and where it starts is for the optimizer to choose.

Run it with `python examples/hopper.py`.
"""

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
import optdyn as od

scenario = od.systems.load("hopper", "gait_1")
plan = od.optimize_trajectory(scenario.problem, scenario.x0, scenario.controls, solver=scenario.solver)

x, height, pitch, leg = np.asarray(plan.states)[:, 4:].T
ground = np.asarray(plan.step_info.outputs["impulse"])[:, 1]
friction = np.asarray(plan.step_info.outputs["friction_impulse"])[:, 1]
standing = ground > 1e-2

print(f"{od.result_name(plan.result)} after {int(plan.stats.inner_iterations)} iterations")
way, duration = x[-1] - x[0], scenario.times[-1]
print(f"it travels {way:.3f} m in {duration:.1f} s; periodic to {scenario.goal_error(plan):.1e}")
print("chosen start: x {:.3f} m, height {:.3f} m, pitch {:.3f} rad, leg {:.3f} m".format(*plan.parameters))
print("foot on the ground (#) or in the air (.):", "".join("#" if down else "." for down in standing))
print(f"the body rises to {height.max():.2f} m, the leg is {leg.min():.2f} to {leg.max():.2f} m long")
grip = (np.abs(friction) / (0.5 * ground))[standing]
print(f"friction takes {grip.min():.2f} to {grip.max():.2f} of what the load of the foot allows")
