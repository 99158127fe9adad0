"""One CPU kernel for a computation on small arrays: same numbers, and only where the compiler can."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from optdyn._kernel import map_in_kernel, single_kernel

A = jnp.asarray(np.random.default_rng(0).normal(size=(5, 5)))
X = jnp.asarray(np.random.default_rng(1).normal(size=(3, 5)))


def iterate(x):
    """A loop with products, updates, selections, a branch and an inner loop."""

    def body(carry):
        x, count = carry
        y = jnp.tanh(A @ x) + jnp.sum(A.T @ A, axis=0)
        y = y.at[1].set(jnp.max(x)).at[count % 5].add(0.5)
        y = jax.lax.cond(count % 2 == 0, lambda y: y, jnp.flip, y)
        y = jax.lax.fori_loop(0, 3, lambda i, y: y - 0.1 * i * y[i], y)
        return jnp.where(y > 3, 1 / y, y), count + 1

    return jax.lax.while_loop(lambda carry: carry[1] < 20, body, (x, 0))[0]


def compiled(fn, x):
    """(value, whether the compiler was asked for one kernel)."""
    lowered = jax.jit(lambda x: single_kernel(fn, x)).lower(x)
    return lowered.compile()(x), "xla_cpu_small_call" in lowered.as_text()


def test_same_numbers_in_one_kernel():
    value, single = compiled(iterate, X[0])
    assert single
    np.testing.assert_allclose(value, iterate(X[0]), rtol=1e-12)


def test_outside_of_jit():
    np.testing.assert_allclose(single_kernel(iterate, X[0]), iterate(X[0]), rtol=1e-12)


@pytest.mark.parametrize("batch", [3, 1000])
def test_in_a_batch(batch):
    many = jnp.tile(X, (batch // 3 + 1, 1))[:batch]
    values = jax.jit(jax.vmap(lambda x: single_kernel(iterate, x)))(many)
    np.testing.assert_allclose(values[:3], jax.vmap(iterate)(X), rtol=1e-12)


def test_kernels_nest():
    value, single = compiled(lambda x: single_kernel(iterate, 2 * x) + 1, X[0])
    assert single
    np.testing.assert_allclose(value, iterate(2 * X[0]) + 1, rtol=1e-12)


def test_derivatives_go_through_the_operations():
    def fn(x):
        return jnp.sum(jnp.sin(A @ x) ** 2)

    for derivative in (jax.grad, jax.jacfwd, jax.hessian):
        np.testing.assert_allclose(
            derivative(lambda x: single_kernel(fn, x))(X[0]), derivative(fn)(X[0]), rtol=1e-12
        )


def test_closed_over_tracers_are_inputs():
    def fn(x, scale):
        return single_kernel(lambda x: x * scale, x)

    np.testing.assert_allclose(jax.jit(fn)(X[0], 3.0), 3 * X[0])


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: jnp.linalg.solve(A, x),
        lambda x: jnp.sort(x),
        lambda x: x + jax.random.normal(jax.random.key(0), x.shape),
        lambda x: jax.pure_callback(np.sin, x, x),
        lambda x: x.at[jnp.array([0, 2])].set(0),
        lambda x: jnp.sum(jnp.outer(jnp.tile(x, 20), jnp.tile(x, 20)), axis=0),
    ],
    ids=["lapack", "sort", "random", "callback", "scatter", "large"],
)
def test_what_cannot_be_one_kernel_compiles_as_usual(fn):
    value, single = compiled(lambda x: jax.lax.fori_loop(0, 2, lambda _, x: fn(x)[:5], x), X[0])
    assert not single
    np.testing.assert_allclose(value, fn(fn(X[0])[:5])[:5], rtol=1e-12)


def test_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("OPTDYN_SINGLE_KERNEL", "0")
    value, single = compiled(iterate, X[1])
    assert not single
    np.testing.assert_allclose(value, iterate(X[1]), rtol=1e-12)


@pytest.mark.parametrize(
    ("spec", "left", "right"),
    [
        ("ij,jk->ik", (2, 3), (3, 4)),
        ("ij,kj->ik", (2, 3), (4, 3)),
        ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
        ("ijb,jkb->bik", (2, 3, 5), (3, 4, 5)),
        ("ij,ij->", (2, 3), (2, 3)),
        ("i,j->ij", (2,), (3,)),
        ("abcd,cdab->ab", (2, 3, 4, 5), (4, 5, 2, 3)),
        ("ij,jk->ik", (30, 20), (20, 25)),
        ("bij,bkj->bik", (7, 30, 20), (7, 25, 20)),
        ("bi,bi->b", (0, 3), (0, 3)),
    ],
)
def test_matrix_products_of_any_layout(spec, left, right):
    rng = np.random.default_rng(2)
    left, right = rng.normal(size=left), rng.normal(size=right)
    value, single = compiled(lambda x: jnp.einsum(spec, x[0], x[1]), (left, right))
    assert single
    np.testing.assert_allclose(value, np.einsum(spec, left, right), rtol=1e-12)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, n, flag: x + 1,
        lambda x, n, flag: (x, n, flag),
        lambda x, n, flag: jnp.zeros(3),
        lambda x, n, flag: jnp.where(flag, n, -n),
        lambda x, n, flag: jax.lax.fori_loop(
            0,
            3,
            lambda i, c: jax.lax.cond(
                flag,
                lambda: c,
                lambda: x,
            ),
            x,
        ),
    ],
)
def test_operands_that_nothing_reads(fn):
    args = (X[0], jnp.int32(-7), jnp.asarray(True))
    value = jax.jit(lambda *args: single_kernel(fn, *args))(*args)
    jax.tree.map(np.testing.assert_array_equal, value, fn(*args))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int8", "uint32", "bool"])
def test_every_type_arrives_bit_for_bit(dtype):
    x = jnp.asarray([0, 1, 2, 100]).astype(dtype)
    value = jax.jit(lambda x: single_kernel(lambda x: jnp.flip(x), x))(x)
    assert value.dtype == dtype
    np.testing.assert_array_equal(value, x[::-1])


def test_special_numbers_arrive():
    x = jnp.asarray([np.nan, np.inf, -np.inf, -0.0, 5e-324])
    value = np.asarray(jax.jit(lambda x: single_kernel(lambda x: jnp.flip(x), x))(x))
    np.testing.assert_array_equal(value.view("int64"), np.asarray(x)[::-1].view("int64"))


@pytest.mark.parametrize("switch", ["1", "0"])
def test_map_is_a_loop_in_a_kernel_and_a_batch_otherwise(switch, monkeypatch):
    monkeypatch.setenv("OPTDYN_SINGLE_KERNEL", switch)
    shift = jnp.asarray(0.5)

    def fn(x, index):
        return {"value": iterate(x + shift), "index": index}

    lowered = jax.jit(lambda x: map_in_kernel(fn, x, jnp.arange(3))).lower(X)
    out = lowered.compile()(X)
    assert ("xla_cpu_small_call" in lowered.as_text()) == (switch == "1")
    np.testing.assert_allclose(out["value"], jax.vmap(iterate)(X + shift), rtol=1e-12)
    np.testing.assert_array_equal(out["index"], np.arange(3))


def test_map_inside_of_other_transformations():
    def fn(x):
        return jnp.sum(jnp.cos(A @ x))

    def total(x):
        return jnp.sum(map_in_kernel(fn, x))

    np.testing.assert_allclose(jax.grad(total)(X), jax.vmap(jax.grad(fn))(X), rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(total)(X[None]), jnp.sum(jax.vmap(fn)(X))[None], rtol=1e-12)
    np.testing.assert_allclose(single_kernel(total, X), jnp.sum(jax.vmap(fn)(X)), rtol=1e-12)


def test_without_jit():
    with jax.disable_jit():
        np.testing.assert_allclose(single_kernel(jnp.sin, X[0]), jnp.sin(X[0]))
        np.testing.assert_allclose(map_in_kernel(jnp.sin, X), jnp.sin(X))


def test_nan_is_found_where_it_arises():
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jax.jit(lambda x: single_kernel(jnp.log, x))(-jnp.ones(2))


def test_numbers_smaller_than_a_byte():
    x = jnp.asarray([0, 1, 2, 7], jnp.int4)
    np.testing.assert_array_equal(jax.jit(lambda x: single_kernel(jnp.flip, x))(x), x[::-1])


def test_named_axis_of_a_batch():
    centred = jax.vmap(lambda x: single_kernel(lambda x: x - jax.lax.pmean(x, "i"), x), axis_name="i")
    np.testing.assert_allclose(jax.jit(centred)(X), X - X.mean(0, keepdims=True), rtol=1e-12)


def test_batch_on_several_devices():
    code = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from optdyn._kernel import single_kernel
sharding = NamedSharding(Mesh(jax.devices(), ("i",)), PartitionSpec("i"))
x = jax.device_put(jnp.ones((8, 3)), sharding)
fn = lambda x: jax.lax.fori_loop(0, 4, lambda i, x: jnp.sin(jnp.ones((3, 3)) @ x) + i, x)
out = jax.jit(jax.vmap(lambda x: single_kernel(fn, x)))(x)
np.testing.assert_allclose(out, jax.vmap(fn)(x), rtol=1e-4)
"""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", code], env=os.environ | flags, check=True)
