"""Swing up a pole on a cart whose rail and hinge rub, with less and with more friction.

Run it with `python examples/cartpole.py`, or with `--quick` for the first row only.
"""

import sys

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
import optdyn as od

variants = ["frictionless", "friction_0.1", "friction_0.35"]
print("variant          result      iterations    cost   largest push   lost to friction")
for variant in variants[:1] if "--quick" in sys.argv else variants:
    scenario = od.systems.load("cartpole", variant)
    plan = od.optimize_trajectory(
        scenario.problem, scenario.x0, scenario.controls, solver=scenario.solver, throw=False
    )
    states, push = np.asarray(plan.states), np.asarray(plan.controls)
    velocity = (states[1:, 2:] - states[:-1, 2:]) / scenario.dt
    outputs = plan.step_info.outputs
    # Friction impulse times slip is energy; without friction there is no such output.
    lost = (
        -np.sum(np.asarray(outputs["friction_impulse"]) * velocity) if "friction_impulse" in outputs else 0.0
    )
    print(
        f"{variant:15}  {od.result_name(plan.result):10}  {int(plan.stats.inner_iterations):10d}"
        f"  {float(plan.cost):6.2f}  {np.abs(push).max():8.2f} N s   {lost:12.2f} J"
    )
