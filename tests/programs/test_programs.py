from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from helpers.toys import LinearComplementarity, Toy, toy_parameters
from optdyn.cones import NonnegativeOrthant, SecondOrderCone
from optdyn.programs import ravel_primal

TWO, EMPTY = jnp.ones(2), jnp.zeros(0)


class Plain(od.AbstractProgram):
    """The functions as the tests need them."""

    f: Callable = lambda w, theta: jnp.sum(w**2)
    g: Callable = lambda w, theta: EMPTY
    h: Callable = lambda w, theta: EMPTY
    cone: od.cones.AbstractCone = NonnegativeOrthant(0)

    def objective(self, w, theta):
        return self.f(w, theta)

    def equality(self, w, theta):
        return self.g(w, theta)

    def cone_constraint(self, w, theta):
        return self.h(w, theta)


class Square(od.AbstractComplementarityProblem):
    """E with a chosen number of entries, S that may use z."""

    entries: int = 2
    with_dual: bool = False
    cone: od.cones.AbstractCone = NonnegativeOrthant(2)

    def equations(self, w, z, theta):
        return jnp.resize(w, (self.entries,))

    def slack(self, w, z, theta):
        return w + 2 * z if self.with_dual else w


def test_a_program_becomes_its_optimality_conditions(rng):
    weight, theta = toy_parameters()
    program = Toy(weight=weight)
    system = program.bind(theta, program.initial_guess(theta))
    x, y, z = rng.normal(size=3), rng.normal(size=1), rng.normal(size=4)
    jac = system.jacobian(jnp.asarray(np.concatenate([x, y])), jnp.asarray(z))
    G, J = np.ones((1, 3)), np.array([[1, 0, 0], [0, 0, 0], [0.1, 1, 0], [0.1, 0, 1.0]])
    gradient = np.asarray(weight) * (x - np.asarray(theta["target"])) + 0.4 * x**3
    np.testing.assert_allclose(jac.E[:3], gradient + G.T @ y - J.T @ z, rtol=1e-14)
    np.testing.assert_allclose(jac.E[3], x.sum() - 0.8, rtol=1e-14)
    np.testing.assert_allclose(jac.S, J @ x + [0.2, 1, 0, 0], rtol=1e-14)
    H = np.diag(np.asarray(weight) + 1.2 * x**2)
    np.testing.assert_allclose(jac.E_w, np.block([[H, G.T], [G, np.zeros((1, 1))]]), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(jac.S_w, np.hstack([J, np.zeros((4, 1))]), atol=1e-15)
    np.testing.assert_allclose(jac.E_z, -np.asarray(jac.S_w).T)
    assert jac.S_z is None


def test_data_and_functions_state_the_same_system(rng):
    P, q, A, b, G, h = (jnp.asarray(rng.normal(size=s)) for s in [(3, 3), 3, (1, 3), 1, (2, 3), 2])
    data = od.QuadraticProgram(P, q, A, b, G, h)
    functions = Plain(
        f=lambda w, _: w @ P @ w / 2 + q @ w,
        g=lambda w, _: A @ w - b,
        h=lambda w, _: h - G @ w,
        cone=NonnegativeOrthant(2),
    )
    w, z = jnp.asarray(rng.normal(size=4)), jnp.asarray(rng.normal(size=2))
    left = data.bind(None, q).jacobian(w, z)
    right = functions.bind(None, q).jacobian(w, z)
    for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_dependence_of_the_slack_on_the_dual_is_seen():
    assert Square().bind(None, TWO).jacobian(TWO, TWO).S_z is None
    S_z = Square(with_dual=True).bind(None, TWO).jacobian(TWO, TWO).S_z
    np.testing.assert_array_equal(S_z, 2 * np.eye(2))


def test_infinite_right_hand_sides_become_rows_that_pull_at_nothing():
    cone = od.cones.ProductCone(NonnegativeOrthant(1), SecondOrderCone(2))
    G = jnp.ones((3, 2))
    system = od.ConicProgram(jnp.eye(2), TWO, G=G, h=[1.0, np.inf, 0.0], cone=cone).bind(None, TWO)
    np.testing.assert_array_equal(system.G, [[1, 1], [0, 0], [0, 0]])
    np.testing.assert_array_equal(system.h, [1, 1, 0])
    impossible = od.QuadraticProgram(jnp.eye(2), TWO, G=G, h=[1.0, -np.inf, 0.0]).bind(None, TWO)
    np.testing.assert_array_equal(impossible.G[1], 0)
    assert impossible.h[1] == -1


def test_decision_variables_are_any_pytree_of_floats():
    flat, unravel = ravel_primal({"a": 1.0, "b": (jnp.zeros((2, 2)), np.ones(1))})
    assert flat.shape == (6,)
    assert flat.dtype == jnp.float64
    assert unravel(flat)["b"][0].shape == (2, 2)
    with pytest.raises(TypeError, match="decision variables must be float arrays, got bool"):
        ravel_primal(jnp.asarray([True]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"q": np.ones((2, 1))}, r"q must be a vector, got shape \(2, 1\)"),
        ({"P": np.eye(3)}, r"P must have shape \(2, 2\) to match q, got \(3, 3\)"),
        ({"A": np.ones((1, 2))}, "give both A and b, or neither"),
        (
            {"A": np.ones((1, 3)), "b": np.ones(1)},
            r"A must have shape \(1, 2\) to match b and q, got \(1, 3\)",
        ),
        (
            {"G": np.ones((2, 2)), "h": np.ones(3)},
            r"G must have shape \(3, 2\) to match h and q, got \(2, 2\)",
        ),
        ({"G": np.ones((1, 2)), "h": np.ones((1, 1))}, r"h must be a vector, got shape \(1, 1\)"),
    ],
)
def test_wrong_shapes_of_data_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        od.QuadraticProgram(**({"P": np.eye(2), "q": np.ones(2)} | arguments))


def test_a_cone_that_does_not_fit_is_named():
    with pytest.raises(ValueError, match="cone has dimension 3, but h has 2 entries"):
        od.ConicProgram(np.eye(2), np.ones(2), G=np.eye(2), h=np.ones(2), cone=SecondOrderCone(3))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (Plain(f=lambda w, _: w), r"objective must return a scalar, got shape \(2,\)"),
        (Plain(g=lambda w, _: jnp.sum(w)), r"equality must return a vector, got shape \(\)"),
        (
            Plain(h=lambda w, _: w),
            r"cone_constraint must return a vector of length cone.dim = 0, got shape \(2,\)",
        ),
        (Square(entries=3), r"equations must return as many entries as there are decision variables \(2\)"),
        (
            LinearComplementarity(NonnegativeOrthant(3)),
            "length cone.dim = 3|as many entries|incompatible",
        ),
    ],
)
def test_wrong_shapes_of_functions_are_named(program, message):
    theta = (jnp.eye(3)[:2], jnp.ones(2)) if isinstance(program, LinearComplementarity) else None
    guess = jnp.zeros(0) if isinstance(program, LinearComplementarity) else TWO
    with pytest.raises((ValueError, TypeError), match=message):
        program.bind(theta, guess)


def test_a_missing_guess_is_named():
    with pytest.raises(ValueError, match=r"Plain has no initial_guess\(theta\): define it, or pass guess="):
        od.solve(Plain())


def test_a_guess_of_the_wrong_shape_is_named():
    with pytest.raises(ValueError, match=r"guess must have the shape of q, \(2,\), got \(3,\)"):
        od.solve(od.QuadraticProgram(np.eye(2), np.ones(2)), guess=jnp.zeros(3))
