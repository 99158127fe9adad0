import jax.numpy as jnp
import numpy as np
import pytest

from helpers.conic import interior
from optdyn.cones import NonnegativeOrthant, ProductCone, SecondOrderCone
from reference import central_path as reference

ORTHANT, SECOND = "orthant", "second_order"
CASES = {
    "orthant": (NonnegativeOrthant(3), [(ORTHANT, 3)]),
    "empty orthant": (NonnegativeOrthant(0), [(ORTHANT, 0)]),
    "half line": (SecondOrderCone(1), [(SECOND, 1)]),
    "quadrant": (SecondOrderCone(2), [(SECOND, 2)]),
    "second order 3": (SecondOrderCone(3), [(SECOND, 3)]),
    "second order 5": (SecondOrderCone(5), [(SECOND, 5)]),
    "empty second order": (SecondOrderCone(0), [(SECOND, 0)]),
    "interleaved": (
        ProductCone(SecondOrderCone(3), NonnegativeOrthant(1), SecondOrderCone(3), NonnegativeOrthant(2)),
        [(SECOND, 3), (ORTHANT, 1), (SECOND, 3), (ORTHANT, 2)],
    ),
    "nested, with empty blocks": (
        ProductCone(
            NonnegativeOrthant(0), ProductCone(SecondOrderCone(2), SecondOrderCone(0)), SecondOrderCone(2)
        ),
        [(SECOND, 2), (SECOND, 2)],
    ),
    "empty product": (ProductCone(), []),
}


@pytest.fixture(params=CASES.values(), ids=list(CASES))
def case(request, rng):
    cone, blocks = request.param
    empty = np.zeros(0)
    s = interior(rng, blocks) if blocks else empty
    z = interior(rng, blocks) if blocks else empty
    return cone, blocks, jnp.asarray(s), jnp.asarray(z)


def test_dimension_degree_and_unit(case):
    cone, blocks, s, _ = case
    assert cone.dim == sum(dim for _, dim in blocks)
    assert cone.degree == reference.degree(blocks)
    e = cone.identity(s.dtype)
    np.testing.assert_array_equal(e, reference.identity(blocks))
    np.testing.assert_allclose(cone.product(e, s), s, rtol=1e-15)


def test_product_and_divide(case):
    cone, blocks, s, z = case
    expected = reference.product_matrix(blocks, s) @ np.asarray(z)
    np.testing.assert_allclose(cone.product(s, z), expected, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(cone.product(s, cone.divide(s, z)), z, rtol=1e-12, atol=1e-12)


def test_smallest_eigenvalue_and_violation(case, rng):
    cone, blocks, s, _ = case
    for a in (s, -s, jnp.asarray(rng.normal(size=cone.dim))):
        expected = reference.min_eigenvalue(blocks, a)
        np.testing.assert_allclose(cone.min_eigenvalue(a), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(cone.violation(a), max(0.0, -expected), rtol=1e-12, atol=1e-12)
        assert bool(cone.contains(a)) == (expected >= 0)


def test_step_to_the_boundary(case, rng):
    cone, blocks, s, z = case
    for direction in (z, -s, jnp.asarray(3 * rng.normal(size=cone.dim))):
        step = float(cone.max_step(s, direction))
        if np.isinf(step):
            assert reference.min_eigenvalue(blocks, direction) >= -1e-12
        else:
            at = reference.min_eigenvalue(blocks, s + step * direction)
            np.testing.assert_allclose(at, 0, atol=1e-10 * (1 + step * np.max(np.abs(direction))))
            assert reference.min_eigenvalue(blocks, s + 0.999 * step * direction) > 0


def test_scaling_maps_both_to_one_point(case):
    cone, _, s, z = case
    W = cone.scaling(s, z)
    np.testing.assert_allclose(cone.scale(W, z), cone.unscale(W, s), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(cone.unscale(W, cone.scale(W, z)), z, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(cone.scale_twice(W, z), s, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(cone.unscale_twice(W, s), z, rtol=1e-12, atol=1e-12)
    matrix = cone.scale(W, jnp.eye(cone.dim))
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12, atol=1e-12)


def test_scaling_stays_accurate_next_to_the_boundary(case):
    cone, blocks, s, z = case
    if not cone.dim:
        return
    near = s - (reference.min_eigenvalue(blocks, s) - 1e-9) * cone.identity(s.dtype)
    W = cone.scaling(near, z)
    np.testing.assert_allclose(cone.scale(W, z), cone.unscale(W, near), rtol=1e-5, atol=1e-8)


def test_leading_axes_broadcast(case, rng):
    cone, _, s, z = case
    rows = jnp.asarray(rng.normal(size=(4, cone.dim)))
    W = cone.scaling(s, z)
    for method in (
        lambda a: cone.product(s, a),
        lambda a: cone.divide(s, a),
        lambda a: cone.max_step(s, a),
        lambda a: cone.scale(W, a),
        lambda a: cone.unscale(W, a),
        cone.min_eigenvalue,
    ):
        batched = method(rows)
        for i, row in enumerate(rows):
            np.testing.assert_allclose(batched[i], method(row), rtol=1e-12, atol=1e-14)


def test_second_order_cones_of_dimension_one_and_two_are_orthants(rng):
    s, z = jnp.exp(jnp.asarray(rng.normal(size=(2, 1))))
    half, line = SecondOrderCone(1), NonnegativeOrthant(1)
    np.testing.assert_allclose(half.product(s, z), line.product(s, z))
    np.testing.assert_allclose(half.scaling(s, z).eta, line.scaling(s, z)[0], rtol=1e-14)
    np.testing.assert_allclose(half.max_step(s, -z), line.max_step(s, -z), rtol=1e-14)
    turn = jnp.asarray([[1.0, 1.0], [1.0, -1.0]])  # (a0, a1) -> eigenvalues
    a, d = jnp.asarray([2.0, 0.5]), jnp.asarray([-1.0, 0.3])
    expected = NonnegativeOrthant(2).max_step(turn @ a, turn @ d)
    np.testing.assert_allclose(SecondOrderCone(2).max_step(a, d), expected, rtol=1e-14)


def test_equal_cones_are_batched_and_the_order_is_kept():
    cone = ProductCone(SecondOrderCone(3), NonnegativeOrthant(2), SecondOrderCone(3))
    assert [(group.cone, group.count) for group in cone.groups] == [
        (SecondOrderCone(3), 2),
        (NonnegativeOrthant(2), 1),
    ]
    again = ProductCone(cone, NonnegativeOrthant(1))
    np.testing.assert_array_equal(again.identity(jnp.float64), [1, 0, 0, 1, 1, 1, 0, 0, 1])


@pytest.mark.parametrize("cone", [NonnegativeOrthant, SecondOrderCone])
def test_a_negative_dimension_is_refused(cone):
    with pytest.raises(ValueError, match="dimension >= 0, got -1"):
        cone(-1)
