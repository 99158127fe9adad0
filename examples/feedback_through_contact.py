"""The gains of a plan are a feedback through contact: disturb a pushed block, with and without them.

The block is first put half a millimetre to the side of where the plan expects it. The planned controls alone
let the error grow; the gains, which come from derivatives through contact and friction, correct it. Run it
with `python examples/feedback_through_contact.py`.
"""

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
import optdyn as od

scenario = od.systems.load("planar_push", "translate")
plan = od.optimize_trajectory(scenario.problem, scenario.x0, scenario.controls, solver=scenario.solver)
print(f"{od.result_name(plan.result)} after {int(plan.stats.inner_iterations)} iterations")


@jax.jit
def follow(x, feedback):
    def step(x, planned):
        reference, control, gain, t = planned
        x_next, _ = scenario.dynamics.advance(x, control + feedback * gain @ (x - reference), t)
        return x_next, None

    times = jnp.arange(len(plan.controls))
    return jax.lax.scan(step, x, (plan.states[:-1], plan.controls, plan.gains, times))[0]


aside = np.zeros(10)
aside[[1, 6]] = 5e-4  # y of the block in m, one step ago and now
for name, feedback in (("controls alone", 0.0), ("with the gains", 1.0)):
    x, y, angle = np.asarray(follow(scenario.x0 + aside, feedback) - plan.states[-1])[5:8]
    print(f"{name}: the block ends {1e3 * np.hypot(x, y):5.1f} mm and {np.rad2deg(angle):5.1f} degrees off")
