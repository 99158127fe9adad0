"""A program of your own: the smallest forces with which three fingers hold a disc against its weight.

Each finger presses with a force inside its friction cone, the forces balance the weight, and the sum of their
squares is as small as it can be. If the fingers are too slippery there is no such grasp, and the result
says so. Run it with `python examples/define_your_own_program.py`.
"""

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
import optdyn as od

# Where the fingers touch the rim of the disc, as angles from the right.
FINGERS = jnp.deg2rad(jnp.array([20.0, 140.0, 185.0]))
INWARD = -jnp.stack([jnp.cos(FINGERS), jnp.sin(FINGERS)], axis=1)
ALONG = jnp.stack([-jnp.sin(FINGERS), jnp.cos(FINGERS)], axis=1)


class Grasp(od.AbstractProgram):
    """Decision variables: `press` and `rub`, the normal and the tangential force of each finger in N [3]."""

    weight: jax.Array  # N
    friction: jax.Array
    cone = od.cones.ProductCone(*[od.cones.SecondOrderCone(2)] * 3)
    convex = True  # saves a check of the curvature in every step

    def initial_guess(self, theta):
        return {"press": jnp.ones(3), "rub": jnp.zeros(3)}

    def objective(self, w, theta):
        return 0.5 * jnp.sum(w["press"] ** 2 + w["rub"] ** 2)

    def equality(self, w, theta):
        force = w["press"] @ INWARD + w["rub"] @ ALONG
        torque = jnp.sum(w["rub"])  # times the radius
        return jnp.concatenate([force - jnp.array([0.0, 1.0]) * self.weight, torque[None]])

    def cone_constraint(self, w, theta):
        # (mu press, rub) of each finger in a second-order cone: |rub| <= mu press
        return jnp.stack([self.friction * w["press"], w["rub"]], axis=1).reshape(-1)


def hold(friction):
    return od.solve(Grasp(weight=jnp.array(10.0), friction=friction), throw=False)


# One call solves all cases: a solve is a JAX function like any other.
frictions = jnp.array([0.1, 0.2, 0.3, 0.5, 1.0])
answers = jax.jit(jax.vmap(hold))(frictions)
print("friction   result        finger 1   finger 2   finger 3   (normal forces in N)")
for i, friction in enumerate(frictions):
    answer = jax.tree.map(lambda leaf, i=i: leaf[i], answers)
    name = od.result_name(answer.result)
    forces = "   ".join(f"{force:8.3f}" for force in answer.primal["press"]) if name == "successful" else ""
    print(f"{friction:8.2f}   {name:12}  {forces}")
