"""Learn a coefficient of friction by gradient descent through an optimization problem.

A block is pushed twenty times, and how fast it is after each push is measured. We start with a floor that is
so rough that nothing moves. There the velocity does not depend on the coefficient, the exact derivative is
zero, and gradient descent is stuck. With derivatives taken further up the central path (`smoothing`) the
same solves, with the same values, show the way. Run it with
`python examples/differentiate_through_a_solve.py`.
"""

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
import optdyn as od


class Push(od.AbstractProgram):
    """Velocity v after a push: minimize 1/2 (v - v_free)^2 + mu p t over (v, t), subject to |v| <= t."""

    friction: jax.Array
    cone = od.cones.SecondOrderCone(2)
    convex = True

    def objective(self, w, v_free):
        v, t = w
        return 0.5 * (v - v_free) ** 2 + self.friction * 0.981 * t  # p = m g h of 1 kg in 0.1 s

    def cone_constraint(self, w, v_free):
        v, t = w
        return jnp.stack([t, v])


def velocity(friction, v_free, smoothing):
    guess = (v_free, jnp.abs(v_free) + 1)
    adjoint = od.ImplicitAdjoint(smoothing=smoothing)
    return od.solve(Push(friction=friction), v_free, guess=guess, adjoint=adjoint).primal[0]


def loss(friction, pushes, measured, smoothing):
    moved = jax.vmap(lambda v_free: velocity(friction, v_free, smoothing))(pushes)
    return jnp.mean((moved - measured) ** 2)


TRUE = 0.3
pushes = jnp.linspace(0.1, 1.0, 20)  # m/s, as it would be without friction
measured = jnp.maximum(pushes - TRUE * 0.981, 0)  # the closed form stands in for the experiment
value_and_slope = jax.jit(jax.value_and_grad(loss))

for smoothing in (1e-8, 1e-2):
    friction = jnp.array(1.2)
    _, first_slope = value_and_slope(friction, pushes, measured, smoothing)
    for _ in range(400):
        _, slope = value_and_slope(friction, pushes, measured, smoothing)
        friction = friction - 0.5 * slope
    print(f"smoothing {smoothing:.0e}: first slope {first_slope: .1e},", end=" ")
    print(f"friction 1.2 -> {friction:.4f} (true: {TRUE})")
