"""A contact system of your own: a driven wheel on a slippery floor, from its energies to a plan.

Only the energies, the distance from the floor and the slip at the contact are written down. The time
stepping, the contact forces and their derivatives follow. The wheel shall roll one metre in a second and
stop; the floor gives it at most mu m g, so it must not be driven too hard. Run it with
`python examples/contact_system_of_your_own.py`.
"""

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
import optdyn as od
from optdyn.dynamics import Friction, Mechanism, frictional_dynamics
from optdyn.trajopt import Equality

MASS, RADIUS, INERTIA, GRAVITY, MU, STEP, HORIZON = 1.0, 0.2, 0.03, 9.81, 0.5, 0.05, 20


# q = (x, z of the centre in m, angle in rad, counterclockwise); the control is a torque in N m.
wheel = Mechanism(
    kinetic_energy=lambda q, v: 0.5 * (MASS * (v[0] ** 2 + v[1] ** 2) + INERTIA * v[2] ** 2),
    potential_energy=lambda q: MASS * GRAVITY * q[1],
    input_map=lambda q: jnp.array([[0.0], [0.0], [1.0]]),
    gap=lambda q: q[1:2] - RADIUS,
    num_positions=3,
    num_inputs=1,
    num_gaps=1,
)
floor = Friction(
    slip=lambda q, v: v[0:1] + RADIUS * v[2:3],
    normal_impulse=lambda motion, gap_impulse: gap_impulse,
    coefficient=jnp.array([MU]),
    dims=(1,),
)
dynamics = frictional_dynamics(wheel, floor, STEP, solver=od.InteriorPoint(central_path=1e-5))


@jax.jit
def simulate(x, torques):
    def step(x, torque):
        x_next, info = dynamics.advance(x, torque, jnp.array(0))
        return x_next, (x_next, info.outputs)

    return jax.lax.scan(step, x, torques)[1]


start = jnp.array([0.0, RADIUS, 0.0] * 2)
for torque in (-0.4, -3.0):
    states, outputs = simulate(start, jnp.full((HORIZON, 1), torque))
    grip = np.abs(outputs["friction_impulse"]).max() / (MU * MASS * GRAVITY * STEP)
    way, rim = states[-1, 3], -RADIUS * states[-1, 5]
    print(f"torque {torque} N m for a second: {way:.2f} m far, {rim:.2f} m of rim unrolled,", end=" ")
    print(f"{100 * grip:.0f} percent of the grip used")

problem = od.TrajectoryProblem(
    dynamics,
    HORIZON,
    stage_cost=lambda x, u, t: 0.5 * STEP * jnp.sum(u**2),
    terminal_cost=lambda x: 0.0,
    terminal_constraint=Equality(lambda x: jnp.stack([x[3] - 1.0, (x[3] - x[0]) / STEP])),
    control_bounds=(-3.0, 3.0),
)
plan = od.optimize_trajectory(problem, start, jnp.full((HORIZON, 1), -0.2))
x, angle = np.asarray(plan.states)[:, 3], np.asarray(plan.states)[:, 5]
print(f"plan: {od.result_name(plan.result)} after {int(plan.stats.inner_iterations)} iterations,", end=" ")
print(f"stops at {x[-1]:.3f} m, torques from {np.min(plan.controls):.2f} to {np.max(plan.controls):.2f} N m")
slipped = 1000 * np.abs(x + RADIUS * angle).max()
print(f"on the edge of slipping: rim and way differ by at most {slipped:.1f} mm")
