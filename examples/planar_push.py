"""Turn and move a block on a table with a point that can only push. Nobody says where to touch, or when.

Run it with `python examples/planar_push.py`.
"""

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
import optdyn as od

scenario = od.systems.load("planar_push", "rotate")
plan = od.optimize_trajectory(scenario.problem, scenario.x0, scenario.controls, solver=scenario.solver)

block, pusher = np.asarray(plan.states)[:, 5:8], np.asarray(plan.states)[:, 8:]
push = np.asarray(plan.step_info.outputs["impulse"])[:, 0]
rub = np.abs(np.asarray(plan.step_info.outputs["friction_impulse"])[:, 8])
touching = push > 1e-2
sticking = touching & (rub < 0.95 * 0.5 * push)
marks = np.where(sticking, "#", np.where(touching, "~", "."))

print(f"{od.result_name(plan.result)} after {int(plan.stats.inner_iterations)} iterations")
for name, (x, y, angle) in (("block from", block[0]), ("        to", block[-1])):
    print(f"{name} x {x:.2f} m, y {y:.2f} m, angle {np.rad2deg(angle):.0f} degrees")
print("pusher sticks (#), slides along the block (~), is away (.):", "".join(marks))
way = np.linalg.norm(np.diff(pusher, axis=0), axis=1).sum()
print(f"it moves {way:.2f} m and pushes with {push.sum():.2f} N s in total")
