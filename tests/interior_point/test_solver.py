import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn as od
from helpers import conic
from helpers.results import member, names
from helpers.toys import Bounded, LinearComplementarity
from optdyn.cones import NonnegativeOrthant
from reference import central_path as reference

KAPPA = jnp.asarray(1e-6)
COUNT = 24  # members of every batch, so that all tests share one compiled program


def batch(items):
    items = list(items)
    assert len(items) <= COUNT
    return conic.stack(items + items[:1] * (COUNT - len(items)))


def check_honest(items, solution, kappa):
    """Whatever is called successful satisfies the equations, recomputed here, inside the cone."""
    for i, name in enumerate(names(solution.result)[: len(items)]):
        if name != "successful":
            continue
        one = member(solution, i)
        point = (one.primal, one.equality_dual, one.slack, one.cone_dual)
        E, S, gap = reference.conic_residual(items[i], conic.BLOCKS, *point, kappa)
        assert max(E, S) <= 2e-10
        assert gap <= min(1e-10, 1e-3 * kappa) * 1.01
        assert reference.min_eigenvalue(conic.BLOCKS, one.slack) > 0
        assert reference.min_eigenvalue(conic.BLOCKS, one.cone_dual) > 0


@pytest.mark.parametrize("kappa", [1e-1, 1e-4, 1e-8])
def test_the_point_of_the_central_path_is_found(rng, kappa):
    problems = [conic.on_path(rng, kappa) for _ in range(COUNT)]
    data = [problem[0] for problem in problems]
    solution = conic.solve_batch(batch(data), jnp.asarray(kappa))
    assert set(names(solution.result)) == {"successful"}
    check_honest(data, solution, kappa)
    for i, (_, answer) in enumerate(problems):
        np.testing.assert_allclose(solution.slack[i], answer.s, rtol=1e-4, atol=1e-5)
    assert np.median(solution.stats.steps) <= 9
    assert np.max(solution.stats.steps) <= 20


def test_random_feasible_programs_agree_with_clarabel(rng):
    clarabel, sparse = pytest.importorskip("clarabel"), pytest.importorskip("scipy.sparse")
    data = [conic.feasible(rng) for _ in range(COUNT)]
    solution = conic.solve_batch(batch(data), KAPPA)
    assert set(names(solution.result)) == {"successful"}
    check_honest(data, solution, 1e-6)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [
        clarabel.ZeroConeT(conic.P),
        clarabel.NonnegativeConeT(2),
        clarabel.SecondOrderConeT(3),
        clarabel.NonnegativeConeT(1),
    ]
    for i, d in enumerate(data):
        P, rows = sparse.triu(sparse.csc_matrix(d.P)).tocsc(), sparse.csc_matrix(np.vstack([d.A, d.G]))
        other = clarabel.DefaultSolver(P, d.q, rows, np.concatenate([d.b, d.h]), cones, settings).solve()
        x = np.asarray(solution.primal[i])
        gap = 1e-6 * reference.degree(conic.BLOCKS)
        assert abs(x @ d.P @ x / 2 + d.q @ x - other.obj_val) <= 1.01 * gap + 1e-6 * (1 + abs(other.obj_val))


def infeasible(rng):
    data = conic.feasible(rng)
    z = conic.interior(rng)
    G = data.G - np.outer(z, z @ data.G) / (z @ z)
    return data._replace(G=G, h=data.h - z * (z @ data.h + 1) / (z @ z))


def unbounded(rng):
    data = conic.feasible(rng)
    ray = np.linalg.svd(data.A)[2][-1]
    ray /= np.linalg.norm(ray)
    along = np.eye(conic.N) - np.outer(ray, ray)
    G = data.G @ along - np.outer(conic.interior(rng), ray)
    return data._replace(P=along @ data.P @ along, G=G, q=data.q @ along - ray)


def test_infeasible_programs_come_with_a_certificate(rng):
    data = [infeasible(rng) for _ in range(COUNT)]
    solution = conic.solve_batch(batch(data), KAPPA)
    found = names(solution.result)
    assert "successful" not in found
    assert found.count("infeasible") >= 0.75 * COUNT
    for i, d in enumerate(data):
        if found[i] != "infeasible":
            continue
        proof = member(solution.stats.certificate, i)
        y, z = np.asarray(proof.equality_dual), np.asarray(proof.cone_dual)
        assert reference.min_eigenvalue(conic.BLOCKS, z) >= -1e-12 * np.max(np.abs(z))
        np.testing.assert_allclose(d.A.T @ y + d.G.T @ z, 0, atol=2e-6)
        np.testing.assert_allclose(-(d.b @ y + d.h @ z), 1, atol=1e-4)


def test_unbounded_programs_come_with_a_ray(rng):
    data = [unbounded(rng) for _ in range(COUNT)]
    solution = conic.solve_batch(batch(data), KAPPA)
    found = names(solution.result)
    assert "successful" not in found
    assert found.count("unbounded") >= 0.75 * COUNT
    for i, d in enumerate(data):
        if found[i] != "unbounded":
            continue
        ray = np.asarray(solution.stats.certificate.ray[i])
        np.testing.assert_allclose(d.q @ ray, -1, rtol=1e-4)
        np.testing.assert_allclose(d.P @ ray, 0, atol=2e-6)
        np.testing.assert_allclose(d.A @ ray, 0, atol=2e-6)
        assert reference.min_eigenvalue(conic.BLOCKS, -d.G @ ray) >= -2e-6


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_no_scaling_of_the_data_makes_a_solvable_program_infeasible_or_unbounded(rng, scale):
    base = [conic.feasible(rng) for _ in range(COUNT)]
    constraints = [
        d._replace(A=d.A * scale, b=d.b * scale, G=d.G * scale, h=d.h * scale) for d in base[: COUNT // 2]
    ]
    sides = [d._replace(q=d.q * scale, b=d.b * scale, h=d.h * scale) for d in base[COUNT // 2 :]]
    found = names(conic.solve_batch(batch(constraints + sides), KAPPA).result)
    assert not {"infeasible", "unbounded"} & set(found)
    # Right-hand sides of 1e3 and more leave too few digits for the tolerance in second-order cones.
    solvable = found if scale < 1 else found[: COUNT // 2]
    assert solvable.count("successful") >= 0.9 * len(solvable)


def degenerate(rng):
    """Programs with zero rows, without any curvature, with the answer at the tip of the cone."""
    base = conic.feasible(rng)
    zero_row = base._replace(A=0 * base.A, b=0 * base.b)
    flat = conic.on_path(rng, 1.0, rank=0)[0]
    point = rng.normal(size=conic.N)
    tip = base._replace(
        h=base.G @ point, b=base.A @ point, q=-(base.P @ point + base.G.T @ conic.interior(rng))
    )
    empty_row = base._replace(G=base.G * np.array([[0.0], [1], [1], [1], [1], [1]]))
    empty_row.h[0] = 1.0
    return {"zero row": zero_row, "linear": flat, "tip": tip, "empty row": empty_row}


def test_degenerate_programs(rng):
    kinds = degenerate(rng)
    solution = conic.solve_batch(batch(kinds.values()), KAPPA)
    assert dict(zip(kinds, names(solution.result), strict=False)) == dict.fromkeys(kinds, "successful")
    check_honest(list(kinds.values()), solution, 1e-6)


def test_the_members_of_a_mixed_batch_equal_their_single_solves(rng):
    nan = conic.feasible(rng)
    nan.q[0] = np.nan
    data = [conic.feasible(rng), infeasible(rng), nan, unbounded(rng), degenerate(rng)["tip"]]
    solution = conic.solve_batch(batch(data), KAPPA)
    found = names(solution.result)
    assert found[:1] + found[2:3] == ["successful", "nonfinite_input"]
    assert int(solution.stats.steps[2]) == 0
    for i, d in enumerate(data):
        alone = conic.solve_one(conic.Data(*map(jnp.asarray, d)), KAPPA)
        assert names(alone.result) == [found[i]]
        if found[i] == "successful":
            np.testing.assert_allclose(alone.primal, solution.primal[i], rtol=1e-7, atol=1e-7)


def test_infinite_right_hand_sides(rng):
    data = conic.feasible(rng)
    absent, impossible = data._replace(h=data.h.copy()), data._replace(h=data.h.copy())
    absent.h[0], impossible.h[0] = np.inf, -np.inf
    far = data._replace(h=data.h.copy())
    far.h[0] = 1e9
    solution = conic.solve_batch(batch([absent, impossible, far]), KAPPA)
    assert names(solution.result)[:2] == ["successful", "infeasible"]
    np.testing.assert_allclose(solution.primal[0], solution.primal[2], atol=1e-4)


def test_a_warm_start_takes_few_steps(rng):
    data = conic.Data(*map(jnp.asarray, conic.feasible(rng)))
    cold = conic.solve_one(data, KAPPA)
    again = conic.solve_one(data, KAPPA, cold)
    near = conic.solve_one(data._replace(q=data.q * (1 + 1e-3)), KAPPA, cold)
    assert names(again.result) + names(near.result) == ["successful"] * 2
    assert int(again.stats.steps) <= 3
    assert int(near.stats.steps) < int(cold.stats.steps)
    np.testing.assert_allclose(again.primal, cold.primal, rtol=1e-6)


def test_record_has_one_row_per_step():
    program = od.QuadraticProgram(np.eye(2), np.ones(2), G=-np.eye(2), h=np.zeros(2))
    solution = od.solve(program, solver=od.InteriorPoint(record=True, max_steps=30))
    steps, record = int(solution.stats.steps), solution.stats.record
    assert record is not None
    assert record.residual.shape == (31,)
    np.testing.assert_array_equal(np.isfinite(record.residual), np.arange(31) <= steps)
    np.testing.assert_array_equal(
        np.isfinite(record.step_length), (np.arange(31) >= 1) & (np.arange(31) <= steps)
    )
    assert float(record.residual[steps]) <= 1e-10
    np.testing.assert_allclose(record.target[steps], 1e-6)


def test_stationary_points_that_are_no_minima_are_not_returned(rng):
    program = Bounded()
    starts = jnp.asarray(np.vstack([np.zeros((3, 2)), rng.uniform(-1.9, 1.9, (33, 2))]))
    kinds = jnp.asarray(np.tile(np.eye(3), (12, 1)))
    solution = jax.vmap(lambda guess, kind: od.solve(program, kind, guess=guess, throw=False))(starts, kinds)
    found = names(solution.result)
    assert found.count("successful") >= 28
    for i, name in enumerate(found):
        if name == "successful":
            one = member(solution, i)
            H = np.asarray(jax.hessian(program.objective)(one.primal, kinds[i]))
            d = np.asarray(one.cone_dual / one.slack)
            assert np.linalg.eigvalsh(H + np.diag(d[:2] + d[2:])).min() > 0


def test_complementarity_problems_without_decision_variables(rng):
    n = 4
    problem = LinearComplementarity(NonnegativeOrthant(n))
    root, K = rng.normal(size=(12, n, n)), rng.normal(size=(12, n, n))
    M = root[:, :, :2] @ np.swapaxes(root[:, :, :2], 1, 2) + K - np.swapaxes(K, 1, 2)
    s, z = np.exp(rng.normal(size=(2, 12, n)))
    q = s - np.einsum("bij,bj->bi", M, z)
    solution = jax.vmap(lambda M, q: od.solve(problem, (M, q), throw=False))(jnp.asarray(M), jnp.asarray(q))
    assert set(names(solution.result)) == {"successful"}
    assert np.max(solution.stats.steps) <= 15
    np.testing.assert_allclose(solution.slack, np.einsum("bij,bj->bi", M, solution.cone_dual) + q, atol=2e-10)
    np.testing.assert_allclose(solution.slack * solution.cone_dual, 1e-6, rtol=2e-3)


def test_single_precision(rng):
    data = [conic.on_path(rng, 1e-3)[0] for _ in range(8)]
    single = conic.Data(*(part.astype(jnp.float32) for part in conic.stack(data)))
    solution = conic.solve_batch(single, jnp.asarray(1e-3, jnp.float32))
    assert solution.primal.dtype == jnp.float32
    assert set(names(solution.result)) == {"successful"}
    double = conic.solve_batch(batch(data), jnp.asarray(1e-3))
    np.testing.assert_allclose(solution.primal, double.primal[:8], rtol=0.05, atol=0.02)


@pytest.mark.parametrize("shape", [(0, 0), (1, 0), (0, 2)])
def test_blocks_of_size_zero(shape):
    p, m = shape
    A, b = np.ones((p, 2)), np.full(p, 0.5)
    G, h = -np.eye(m, 2), np.zeros(m)
    solution = od.solve(od.QuadraticProgram(np.eye(2), np.ones(2), A, b, G, h))
    assert solution.slack.shape == (m,)
    assert solution.equality_dual.shape == (p,)
    expected = {(0, 0): [-1, -1], (1, 0): [0.25, 0.25], (0, 2): [0, 0]}[shape]
    np.testing.assert_allclose(solution.primal, expected, atol=2e-6)


def test_running_out_of_steps_is_said(rng):
    program = od.QuadraticProgram(np.eye(2), np.ones(2), G=-np.eye(2), h=np.zeros(2))
    solution = od.solve(program, solver=od.InteriorPoint(max_steps=1), throw=False)
    assert names(solution.result) == ["max_steps_reached"]
    with pytest.raises(eqx.EquinoxRuntimeError, match="maximum number of solver steps"):
        od.solve(program, solver=od.InteriorPoint(max_steps=1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"central_path": -1.0}, "central_path must be a positive number, got -1.0"),
        ({"central_path": float("nan")}, "central_path must be a positive number"),
        ({"residual_tol": 0.0}, "residual_tol must be positive"),
        ({"max_steps": 0}, "max_steps must be at least 1"),
        ({"boundary_fraction": 1.0}, "boundary_fraction must lie between 0 and 1"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        od.InteriorPoint(**settings)
