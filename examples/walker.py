"""Let a biped take a step. Which foot stands when is not told to the dynamics: contact decides.

Run it with `python examples/walker.py`.
"""

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
import optdyn as od

scenario = od.systems.load("walker")
plan = od.optimize_trajectory(scenario.problem, scenario.x0, scenario.controls, solver=scenario.solver)

states, torque = np.asarray(plan.states)[:, 7:], np.asarray(plan.controls)
load = np.asarray(plan.step_info.outputs["impulse"])[:, :2] / scenario.dt
standing = load > 1.0  # N

print(f"{od.result_name(plan.result)} after {int(plan.stats.inner_iterations)} iterations")
print(f"the hip moves by {states[-1, 0] - states[0, 0]:.3f} m in {scenario.times[-1]:.2f} s")
for name, down in zip(("a", "b"), standing.T, strict=True):
    print(f"foot {name} on the ground (#) or in the air (.):", "".join("#" if one else "." for one in down))
print(f"largest load on a foot: {load.max():.0f} N, of a weight of {32.0 * 9.81:.0f} N")
print(f"largest torque: {np.abs(torque).max():.0f} N m")
