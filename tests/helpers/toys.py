"""Small programs and complementarity problems given by functions."""

import jax.numpy as jnp
from jax import Array

import optdyn as od
from optdyn.cones import AbstractCone, NonnegativeOrthant, ProductCone, SecondOrderCone


class Toy(od.AbstractProgram):
    """Convex, not quadratic, every kind of constraint active or close to it; variables are a dictionary."""

    weight: Array
    cone: AbstractCone = ProductCone(NonnegativeOrthant(1), SecondOrderCone(3))
    convex = True

    def initial_guess(self, theta):
        return {"a": jnp.zeros(1), "b": jnp.zeros(2)}

    def objective(self, w, theta):
        x = jnp.concatenate([w["a"], w["b"]])
        return jnp.sum(self.weight * (x - theta["target"]) ** 2) / 2 + jnp.sum(x**4) / 10

    def equality(self, w, theta):
        return (w["a"] + jnp.sum(w["b"]) - theta["total"]).reshape(1)

    def cone_constraint(self, w, theta):
        return jnp.concatenate([w["a"] + 0.2, jnp.ones(1), w["b"] + 0.1 * w["a"]])


def toy_parameters():
    return jnp.asarray([1.0, 2.0, 0.5]), {
        "target": jnp.asarray([-1.0, 0.9, 0.7]),
        "total": jnp.asarray(0.8),
    }


class Projection(od.AbstractProgram):
    """Nearest point of a second-order cone."""

    cone: AbstractCone = SecondOrderCone(3)
    convex = True

    def initial_guess(self, theta):
        return jnp.zeros(3)

    def objective(self, w, theta):
        return jnp.sum((w - theta) ** 2) / 2

    def cone_constraint(self, w, theta):
        return w


class Friction(od.AbstractProgram):
    """Sliding block: `min m/2 (v - theta)^2 + p t, |v| <= t`, with the soft threshold of theta as answer."""

    mass: Array
    impulse: Array
    cone: AbstractCone = SecondOrderCone(2)

    def initial_guess(self, theta):
        return jnp.asarray([0.0, 1.0])

    def objective(self, w, theta):
        return self.mass * (w[0] - theta) ** 2 / 2 + self.impulse * w[1]

    def cone_constraint(self, w, theta):
        return w[::-1]


class LinearComplementarity(od.AbstractComplementarityProblem):
    """`s = M z + q`, without decision variables."""

    cone: AbstractCone

    def initial_guess(self, theta):
        return jnp.zeros(0)

    def equations(self, w, z, theta):
        return jnp.zeros(0)

    def slack(self, w, z, theta):
        M, q = theta
        return M @ z + q


class Bounded(od.AbstractProgram):
    """Minimize a function of two variables over a box; theta selects a maximum, a saddle or two minima."""

    cone: AbstractCone = NonnegativeOrthant(4)

    def objective(self, w, theta):
        maximum, saddle = -jnp.sum(w**2) / 2, w[0] * w[1]
        two_minima = jnp.sum(w**4 / 4 - w**2 / 2) + 0.05 * w[0]
        return jnp.dot(theta, jnp.stack([maximum, saddle, two_minima]))

    def cone_constraint(self, w, theta):
        return jnp.concatenate([2 - w, w + 2])
