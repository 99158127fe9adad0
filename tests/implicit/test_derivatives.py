import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import optdyn as od
from helpers import conic
from helpers.results import names
from helpers.toys import Friction, Projection, Toy, toy_parameters
from optdyn.implicit import sensitivity
from optdyn.interior_point import PrimalDualPoint
from reference import central_path as reference

KAPPA = 1e-3
START, UNRAVEL = ravel_pytree(toy_parameters())  # weight and theta in one vector
REVERSE = od.ImplicitAdjoint(smoothing=None)
FORWARD = od.ImplicitAdjoint(smoothing=None, mode="forward")


def toy(parameters, kappa, adjoint):
    weight, theta = UNRAVEL(parameters)
    solver = eqx.tree_at(lambda s: s.central_path, od.InteriorPoint(residual_tol=1e-12), kappa)
    solution = od.solve(Toy(weight=weight), theta, solver=solver, adjoint=adjoint, throw=False)
    out = ravel_pytree((solution.primal, solution.equality_dual, solution.slack, solution.cone_dual))[0]
    return out, out


# Derivative and value from one compiled program.
reverse = jax.jit(jax.jacrev(lambda p, kappa=KAPPA: toy(p, kappa, REVERSE), has_aux=True))
forward = jax.jit(jax.jacfwd(lambda p: toy(p, KAPPA, FORWARD), has_aux=True))


def central_differences(fn, at, step):
    columns = [(fn(at + d) - fn(at - d)) / (2 * step) for d in step * jnp.eye(at.size)]
    return np.stack(columns, axis=-1)


def test_central_differences_of_the_same_map():
    # step 1e-5: truncation about 1e-10, cancellation about 1e-12 / 1e-5
    differences = central_differences(lambda p: reverse(p)[1], START, 1e-5)
    np.testing.assert_allclose(reverse(START)[0], differences, rtol=1e-6, atol=2e-7)


def test_forward_reverse_and_unrolled_agree():
    adjoint = od.UnrolledAdjoint()
    unrolled = jax.jit(jax.jacfwd(lambda p: toy(p, KAPPA, adjoint), has_aux=True))(START)
    np.testing.assert_allclose(forward(START)[0], reverse(START)[0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(unrolled[0], reverse(START)[0], rtol=1e-8, atol=1e-8)


def pick(out):
    return jnp.sum(jnp.sin(out)) + out[0] * out[-1]


def test_second_derivatives():
    """Reverse over reverse, and `jax.hessian` in forward mode, against differences of the gradient."""
    over = jax.jit(jax.jacrev(jax.grad(lambda p: pick(toy(p, KAPPA, REVERSE)[0]))))(START)
    hessian = jax.jit(jax.hessian(lambda p: pick(toy(p, KAPPA, FORWARD)[0])))(START)
    np.testing.assert_allclose(over, hessian, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(over, over.T, rtol=1e-7, atol=1e-7)

    def gradient(p):
        jacobian, out = reverse(p)
        return jax.grad(pick)(out) @ jacobian

    np.testing.assert_allclose(over, central_differences(gradient, START, 1e-5), rtol=1e-5, atol=1e-5)


def test_the_derivative_is_taken_at_the_smoothing_point_of_the_same_path():
    adjoint = od.ImplicitAdjoint(smoothing=1e-1)
    derivative, out = jax.jit(jax.jacrev(lambda p: toy(p, 1e-6, adjoint), has_aux=True))(START)
    np.testing.assert_allclose(out, reverse(START, 1e-6)[1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(derivative, reverse(START, 1e-1)[0], rtol=1e-8, atol=1e-8)


def test_one_factor_many_right_hand_sides_against_the_dense_system(rng):
    data, point = conic.on_path(rng, 1e-2)
    data = conic.Data(*map(jnp.asarray, data))
    system = od.ConicProgram(*data, cone=conic.CONE).bind(None, data.q)
    local = sensitivity(
        system, PrimalDualPoint(*map(jnp.asarray, (np.r_[point.x, point.y], point.z, point.s)))
    )
    E_dot, S_dot = rng.normal(size=conic.N + conic.P), rng.normal(size=conic.M)
    r_dot = np.concatenate([E_dot, S_dot, np.zeros(conic.M)])
    dense = reference.conic_derivative(data, conic.BLOCKS, *point[:2], point.s, point.z, r_dot)
    out = local.forward(jnp.asarray(E_dot), jnp.asarray(S_dot))
    np.testing.assert_allclose(np.concatenate([out.w, out.z, out.s]), dense, rtol=1e-8, atol=1e-8)
    # <cotangent, forward> = <reverse, input>
    bar = PrimalDualPoint(*(jnp.asarray(rng.normal(size=part.shape)) for part in (out.w, out.z, out.s)))
    E_bar, S_bar = local.reverse(bar)
    left = sum(float(a @ b) for a, b in zip(jax.tree.leaves(bar), jax.tree.leaves(out), strict=True))
    np.testing.assert_allclose(left, float(E_bar @ E_dot + S_bar @ S_dot), rtol=1e-9)


def test_gradients_of_all_data_of_a_conic_program(rng):
    data, point = conic.on_path(rng, 1e-2)
    data = conic.Data(*map(jnp.asarray, data))

    def objective(data):
        solver = od.InteriorPoint(central_path=1e-2)
        program = od.ConicProgram(*data, cone=conic.CONE)
        solution = od.solve(program, solver=solver, adjoint=REVERSE, throw=False)
        return jnp.sum(solution.primal)

    gradient = jax.jit(jax.grad(objective))(data)
    n, p, m = conic.N, conic.P, conic.M
    directions = conic.Data(*(rng.normal(size=part.shape) for part in data))
    x, y, s, z = point
    E_dot = (directions.P + directions.P.T) @ x / 2 + directions.q + directions.A.T @ y + directions.G.T @ z
    r_dot = np.concatenate(
        [E_dot, directions.A @ x - directions.b, directions.h - directions.G @ x, np.zeros(m)]
    )
    dense = reference.conic_derivative(data, conic.BLOCKS, x, y, s, z, r_dot)
    along = sum(np.sum(np.asarray(a) * b) for a, b in zip(gradient, directions, strict=True))
    np.testing.assert_allclose(along, dense[:n].sum(), rtol=1e-6)
    assert dense.size == n + p + 2 * m


def test_soft_threshold_of_the_sliding_block():
    mass, impulse = 2.0, 1.0
    velocity = jnp.asarray([-3.0, -0.4, 0.0, 0.45, 0.7, 2.0])

    def block(theta):
        solver = od.InteriorPoint(central_path=1e-9)
        program = Friction(mass=jnp.asarray(mass), impulse=jnp.asarray(impulse))
        return od.solve(program, theta, solver=solver, adjoint=REVERSE).primal[0]

    out, slope = jax.jit(jax.vmap(jax.value_and_grad(block)))(velocity)
    expected = np.sign(velocity) * np.maximum(np.abs(velocity) - impulse / mass, 0)
    np.testing.assert_allclose(out, expected, atol=1e-7)
    np.testing.assert_allclose(slope, np.abs(velocity) > impulse / mass, atol=1e-6)


def test_projection_onto_the_second_order_cone_and_its_tip():
    points = jnp.asarray([[2.0, 0.5, -0.3], [-2.0, 0.5, 0.5], [0.5, 1.5, -2.0], [-0.3, 0.0, 1.0]])

    def project(c):
        solver = od.InteriorPoint(central_path=1e-10)
        out = od.solve(Projection(), c, solver=solver, adjoint=REVERSE).primal
        return out, out

    def formula(c):
        head, tail = c[0], c[1:]
        norm = jnp.linalg.norm(tail)
        edge = (head + norm) / 2 * jnp.concatenate([jnp.ones(1), tail / norm])
        return jnp.where(norm <= head, c, jnp.where(norm <= -head, jnp.zeros(3), edge))

    jacobian, out = jax.jit(jax.vmap(jax.jacrev(project, has_aux=True)))(points)
    np.testing.assert_allclose(out, jax.vmap(formula)(points), atol=1e-8)
    np.testing.assert_allclose(jacobian, jax.vmap(jax.jacrev(formula))(points), atol=2e-6)


@pytest.mark.parametrize("policy", ["nan", "zero", "best_effort"])
def test_the_derivative_after_a_failure_is_a_choice(policy):
    def objective(h):
        program = od.QuadraticProgram(jnp.eye(1), jnp.ones(1), G=jnp.asarray([[1.0], [-1.0]]), h=h)
        adjoint = od.ImplicitAdjoint(smoothing=None, on_failure=policy)
        solution = od.solve(program, adjoint=adjoint, throw=False)
        return solution.primal[0], solution.result

    both = jax.vmap(jax.grad(objective, has_aux=True))
    gradient, result = both(jnp.asarray([[1.0, 1.0], [-1.0, -1.0]]))
    assert names(result) == ["successful", "infeasible"]
    assert np.all(np.isfinite(gradient[0]))
    if policy == "nan":
        assert np.all(np.isnan(gradient[1]))
    elif policy == "zero":
        np.testing.assert_array_equal(gradient[1], 0)
    else:
        assert np.all(np.isfinite(gradient[1]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"smoothing": 0.0}, "smoothing must be a positive number or None, got 0.0"),
        ({"mode": "sideways"}, "mode must be 'reverse' or 'forward', got 'sideways'"),
        ({"on_failure": "pray"}, "on_failure must be 'nan', 'zero' or 'best_effort', got 'pray'"),
    ],
)
def test_bad_settings_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        od.ImplicitAdjoint(**arguments)


def test_an_adjoint_of_another_kind_is_refused():
    class Other(eqx.Module):
        pass

    with pytest.raises(TypeError, match="adjoint must be ImplicitAdjoint or UnrolledAdjoint, got Other"):
        od.solve(od.QuadraticProgram(np.eye(1), np.ones(1)), adjoint=Other())  # pyright: ignore[reportArgumentType]
