"""Push a block over a rough floor and stop it: the smallest system whose step is an optimization problem.

Run it with `python examples/sliding_block.py`.
"""

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
import optdyn as od

scenario = od.systems.load("sliding_block", "friction_0.3")
plan = od.optimize_trajectory(scenario.problem, scenario.x0, scenario.controls, solver=scenario.solver)

position, velocity = np.asarray(plan.states).T
force = np.asarray(plan.controls)[:, 0]
print(f"{od.result_name(plan.result)} after {int(plan.stats.inner_iterations)} iterations")
print(f"the block stops at {position[-1]:.4f} m, pushed with {force.min():.1f} to {force.max():.1f} N")

# Every step solved a small program. Its answer has a closed form to compare with: the soft threshold of the
# velocity that the block would have without friction.
mass, weight_impulse, step = 1.0, 9.81 * scenario.dt, scenario.dt
free = velocity[:-1] + step * force / mass
exact = np.sign(free) * np.maximum(np.abs(free) - 0.3 * weight_impulse / mass, 0)
print(f"largest difference from the closed form: {np.abs(velocity[1:] - exact).max():.1e} m/s")

friction = np.asarray(plan.step_info.outputs["friction_impulse"])
sliding = np.abs(velocity[1:]) > 1e-3
print(f"it slides in {sliding.sum()} of {sliding.size} steps; friction is then", end=" ")
print(f"{np.abs(friction[sliding]).mean():.4f} N s of at most {0.3 * weight_impulse:.4f} N s")
