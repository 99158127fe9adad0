"""The rule alone, on small random contact problems whose solution comes from a plain Newton iteration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import optdyn.mjx as om

DOFS, STEP = 4, 1e-6
# One equality, two rows of friction loss, three one-sided rows, two cones.
LAYOUT = om.Layout(equalities=1, frictions=2, rows=13, dofs=DOFS, cones=((6, 3), (9, 4)))
RULES = {
    "reverse": om.ImplicitSolve(),
    "reverse-unrefined": om.ImplicitSolve(refinements=0),
    "reverse-cg": om.ImplicitSolve(linear_solve="cg"),
    "forward": om.ImplicitSolve("forward"),
    "forward-cg": om.ImplicitSolve("forward", linear_solve="cg"),
}


def random_terms(rng) -> om.Terms:
    root = rng.normal(size=(DOFS, DOFS))
    slopes = np.array([[0.8, 0.8, 0.8, 0, 0, 0], [0.5, 0.5, 0.5, 0.2, 0, 0]])
    data = (
        root @ root.T + np.eye(DOFS),
        rng.normal(size=(LAYOUT.rows, DOFS)),
        rng.normal(size=LAYOUT.rows),
        rng.uniform(0.5, 2, size=LAYOUT.rows),
        rng.uniform(0.1, 0.5, size=2),
        rng.normal(size=DOFS),
        slopes,
    )
    return om.Terms(*(jnp.asarray(value) for value in data))


def solve(terms: om.Terms) -> jax.Array:
    """Damped Newton on the cost."""

    def iterate(_, a):
        r = om.residual(LAYOUT, a, terms)
        step = -jnp.linalg.solve(om.hessian(LAYOUT, a, terms), r)
        lengths = 0.5 ** jnp.arange(8.0)
        values = jax.vmap(lambda length: om.cost(LAYOUT, a + length * step, terms))(lengths)
        return a + lengths[jnp.argmin(values)] * step

    return jax.lax.fori_loop(0, 40, iterate, jnp.zeros(DOFS))


@pytest.fixture(scope="module")
def problems():
    """A batch of problems, the shift of all terms along one direction, and the derivative by differences."""
    rng = np.random.default_rng(3)
    batch = [random_terms(rng) for _ in range(12)]
    ways = [jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)), batch[0]) for _ in batch]
    stack = lambda trees: jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)  # noqa: E731
    terms, way = stack(batch), stack(ways)
    run = jax.jit(jax.vmap(solve))

    def shifted(size):
        return run(jax.tree.map(lambda leaf, change: leaf + size * change, terms, way))

    solution = run(terms)
    residuals = jax.jit(jax.vmap(lambda a, t: om.relative_residual(LAYOUT, a, t)))(solution, terms)
    assert np.max(residuals) < 1e-12
    return terms, way, solution, (shifted(STEP) - shifted(-STEP)) / (2 * STEP)


@pytest.mark.parametrize("name", [name for name in RULES if name.startswith("forward")])
def test_forward_mode(problems, name):
    terms, way, solution, differences = problems
    found = jax.jit(
        jax.vmap(lambda t, a, d: jax.jvp(lambda t: RULES[name].attach(LAYOUT, t, a), (t,), (d,))[1])
    )(terms, solution, way)
    np.testing.assert_allclose(found, differences, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", [name for name in RULES if name != "forward-cg"])
def test_reverse_mode(problems, name):
    terms, way, solution, differences = problems
    weights = jnp.asarray(np.random.default_rng(4).normal(size=solution.shape))

    def pulled(t, a, w):
        return jax.vjp(lambda t: RULES[name].attach(LAYOUT, t, a), t)[1](w)[0]

    bars = jax.jit(jax.vmap(pulled))(terms, solution, weights)
    found = sum(
        jnp.sum((bar * change).reshape(solution.shape[0], -1), axis=1)
        for bar, change in zip(jax.tree.leaves(bars), jax.tree.leaves(way), strict=True)
    )
    np.testing.assert_allclose(found, jnp.sum(weights * differences, axis=1), rtol=1e-6, atol=1e-7)


def test_reverse_mode_saves_the_terms_and_the_solution_only(problems):
    terms, _, solution, _ = problems
    one, a = jax.tree.map(lambda leaf: leaf[0], (terms, solution))
    saved = jax.eval_shape(
        lambda t, a: jax.vjp(lambda t: RULES["reverse"].attach(LAYOUT, t, a), t)[1], one, a
    )
    size = sum(leaf.size for leaf in jax.tree.leaves(saved))
    assert size == sum(leaf.size for leaf in jax.tree.leaves((one, a)))


def test_gradient_of_a_rollout_with_checkpoint(problems):
    """The rule inside scan, checkpoint and grad: a chain of solves, each under the last one's force."""
    terms = jax.tree.map(lambda leaf: leaf[0], problems[0])

    def chain(force, rule):
        def link(force, _):
            t = om.Terms(**{**vars(terms), "force": force})
            a = solve(jax.lax.stop_gradient(t))
            return force + 0.1 * (a if rule is None else rule.attach(LAYOUT, t, a)), None

        body = link if rule is None else jax.checkpoint(link)
        return jnp.sum(jax.lax.scan(body, force, length=3)[0] ** 2)

    found = jax.jit(jax.grad(lambda f: chain(f, RULES["reverse"])))(terms.force)
    value = jax.jit(jax.vmap(lambda f: chain(f, None)))
    shifts = STEP * jnp.eye(DOFS)
    want = (value(terms.force[None] + shifts) - value(terms.force[None] - shifts)) / (2 * STEP)
    np.testing.assert_allclose(found, want, rtol=1e-7)


def test_inertia_may_be_stored_by_nonzeros():
    layout = om.Layout(0, 0, 0, 3, sparsity=((0, 1, 1, 2), (0, 0, 1, 2)))
    np.testing.assert_array_equal(
        layout.dense(jnp.array([2.0, 0.5, 3.0, 4.0])), [[2, 0.5, 0], [0.5, 3, 0], [0, 0, 4]]
    )


@pytest.mark.parametrize(
    "settings",
    [{"mode": "both"}, {"linear_solve": "lu"}, {"refinements": -1}],
    ids=["mode", "solve", "steps"],
)
def test_settings_that_make_no_sense(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        om.ImplicitSolve(**settings)
