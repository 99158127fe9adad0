"""Land a rocket whose engine can neither turn far nor push hard: its thrust is a projection onto a cone.

The optimizer may ask for any thrust. Each step of the dynamics flies the nearest one that the engine can
give, which is the solution of an optimization problem. Run it with `python examples/rocket.py`.
"""

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
import optdyn as od

scenario = od.systems.load("rocket", "projection")
plan = od.optimize_trajectory(scenario.problem, scenario.x0, scenario.controls, solver=scenario.solver)

asked, flown = np.asarray(plan.controls), np.asarray(plan.step_info.outputs["thrust"])
side, axial = np.linalg.norm(flown[:, :2], axis=1), flown[:, 2]
position, velocity = np.asarray(plan.states)[:, :3], np.asarray(plan.states)[:, 6:9]

print(f"{od.result_name(plan.result)} after {int(plan.stats.inner_iterations)} iterations")
print("time [s]   x [m]   y [m]   z [m]   speed [m/s]")
for k in range(0, len(position), 15):
    x, y, z = position[k]
    print(f"{scenario.times[k]:8.2f} {x:7.2f} {y:7.2f} {z:7.2f} {np.linalg.norm(velocity[k]):10.2f}")
for name, thrust in (("asked for", asked[:, 2]), ("flown", axial)):
    print(f"thrust along the axis, {name}: {thrust.min():.2f} to {thrust.max():.2f} N")
print(f"largest sideways thrust / axial thrust: {(side / axial).max():.3f} (the cone allows 1)")
