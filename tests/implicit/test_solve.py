import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from helpers.results import names
from optdyn.cones import NonnegativeOrthant

CALLS = {"objective": 0, "equality": 0, "cone_constraint": 0}


class Counted(od.AbstractProgram):
    """Nearest point to theta on a segment; counts how often Python runs its functions."""

    scale: jax.Array
    cone: od.cones.AbstractCone = NonnegativeOrthant(2)

    def initial_guess(self, theta):
        return jnp.zeros(2)

    def objective(self, w, theta):
        CALLS["objective"] += 1
        return self.scale * jnp.sum((w - theta) ** 2) / 2

    def equality(self, w, theta):
        CALLS["equality"] += 1
        return jnp.sum(w).reshape(1) - 1.0

    def cone_constraint(self, w, theta):
        CALLS["cone_constraint"] += 1
        return w


def test_functions_are_traced_once_and_not_again_for_other_numbers():
    CALLS.update(dict.fromkeys(CALLS, 0))
    program = Counted(scale=jnp.asarray(1.0))
    first = od.solve(program, jnp.asarray([0.7, 0.1]))
    np.testing.assert_allclose(first.primal, [0.8, 0.2], atol=1e-5)
    assert dict.fromkeys(CALLS, 1) == CALLS
    settings = od.InteriorPoint(central_path=1e-5)
    second = od.solve(Counted(scale=jnp.asarray(2.0)), jnp.asarray([3.0, 0.0]), solver=settings)
    np.testing.assert_allclose(second.primal, [1.0, 0.0], atol=1e-4)
    assert dict.fromkeys(CALLS, 1) == CALLS


def test_solution_has_the_structure_of_the_guess_and_plain_numbers_do():
    program = od.QuadraticProgram(np.eye(2), [1, 1], [[1, 0]], [1], [[0, -1]], [0])
    solution = od.solve(program)
    np.testing.assert_allclose(solution.primal, [1, 0], atol=2e-6)
    assert solution.equality_dual.shape == solution.slack.shape == solution.cone_dual.shape == (1,)
    assert float(solution.stats.residual) <= 1e-10
    assert float(solution.stats.central_path) == 1e-6
    np.testing.assert_allclose(solution.slack * solution.cone_dual, 1e-6, rtol=1e-3)


def test_jit_scan_and_vmap_give_the_plain_answer():
    def smallest(q):
        program = od.QuadraticProgram(jnp.eye(2), q, G=-jnp.eye(2), h=jnp.zeros(2))
        return od.solve(program, throw=False).primal

    q = jnp.asarray([[1.0, -2.0], [-3.0, 0.5], [-1.0, -1.0]])
    expected = np.maximum(-np.asarray(q), 0)
    np.testing.assert_allclose(jax.vmap(smallest)(q), expected, atol=1e-5)
    _, scanned = jax.lax.scan(lambda carry, q: (carry, smallest(q)), 0, q)
    np.testing.assert_allclose(scanned, expected, atol=1e-5)
    np.testing.assert_allclose(jax.jit(smallest)(q[0]), expected[0], atol=1e-5)


def test_numbers_that_are_not_finite_are_named_before_iterating():
    data = (np.eye(2), np.array([np.nan, 1.0]))
    solution = od.solve(od.QuadraticProgram(*data), throw=False)
    assert names(solution.result) == ["nonfinite_input"]
    assert int(solution.stats.steps) == 0
    with pytest.raises(RuntimeError, match="problem data or the guess contains NaN or infinity"):
        od.solve(od.QuadraticProgram(*data))
    bad_guess = od.solve(od.QuadraticProgram(np.eye(2), np.ones(2)), guess=jnp.full(2, jnp.nan), throw=False)
    assert names(bad_guess.result) == ["nonfinite_input"]


def test_something_that_is_no_problem_is_named():
    with pytest.raises(TypeError, match=r"solve\(\) takes a program or complementarity problem, got list"):
        od.solve([1, 2])  # pyright: ignore[reportArgumentType]
