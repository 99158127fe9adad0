"""Runner of cases about calling the library: kinds of input, sizes under one `jit`, has_aux, masks."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import optdyn as od
from cases import settings
from cases.bank import Case
from cases.checking import Findings, as_array, check, close, finite, named
from cases.formulas import Formula

_KINDS = {
    "python lists of int": lambda data: data,
    "int32 arrays": lambda data: {name: jnp.asarray(value, jnp.int32) for name, value in data.items()},
    "float32 arrays": lambda data: {name: jnp.asarray(value, jnp.float32) for name, value in data.items()},
    "float64 arrays": lambda data: {name: jnp.asarray(value, jnp.float64) for name, value in data.items()},
    "numpy float64": lambda data: {name: np.asarray(value, float) for name, value in data.items()},
    "P int, q float": lambda data: (
        data | {"P": jnp.asarray(data["P"], jnp.int32), "q": jnp.asarray(data["q"], float)}
    ),
}


def run(case: Case) -> None:
    """Choose by what the problem gives."""
    fields = set(case.problem)
    if {"qp", "variants"} <= fields:
        _kinds_of_input(case)
    elif {"qp", "sizes"} <= fields:
        _sizes(case)
    elif {"qp", "loss"} <= fields:
        _auxiliary(case)
    elif {"function", "x"} <= fields:
        _masked(case)
    else:
        raise AssertionError(f"no runner knows an api case with the fields {sorted(fields)}")


def _program(data: dict[str, Any]) -> od.QuadraticProgram:
    return od.QuadraticProgram(data["P"], data["q"], *(data.get(name) for name in "AbGh"))


def _solve(data: dict[str, Any]) -> od.Solution:
    program = _program(data)
    solver = settings.solver(program.q.dtype)
    return od.solve(program, solver=solver, adjoint=settings.AT_SOLUTION)


def _kinds_of_input(case: Case) -> None:
    """The same program from every kind of input: floats out, and the same floats."""
    plain = case.problem["qp"]
    for kind in case.problem["variants"]:
        assert kind in _KINDS, f"no runner knows the kind of input {kind!r}"
        data = _KINDS[kind]({name: value for name, value in plain.items() if value})
        solution = _solve(data)

        def derivative(data: dict[str, Any] = data) -> Any:
            q = jnp.asarray(data["q"], jnp.result_type(float))
            return jax.jacrev(lambda q: _solve({**data, "q": q}).primal)(q)

        def floating(want: str, solution: od.Solution = solution) -> None:
            assert want == "floating"
            assert jnp.issubdtype(solution.primal.dtype, jnp.floating), solution.primal.dtype

        source = named(x=lambda solution=solution: solution.primal, dx_dq=derivative)
        check(case, Findings("successful", [source], {"dtype": floating}))


def _sizes(case: Case) -> None:
    """One jitted function, called with one size after the other."""
    text = "P=diag(1..n), q=-1, G=-I, h=0"
    assert case.problem["qp"] == text, f"no runner knows the family {case.problem['qp']!r}"

    @jax.jit
    def solve(P: jax.Array, q: jax.Array, G: jax.Array, h: jax.Array) -> jax.Array:
        return _solve({"P": P, "q": q, "G": G, "h": h}).primal

    def right(want: list[list[float]]) -> None:
        for n, value in zip(case.problem["sizes"], want, strict=True):
            data = np.diag(np.arange(1.0, n + 1)), -np.ones(n), -np.eye(n), np.zeros(n)
            close(f"x for n = {n}", solve(*(jnp.asarray(a) for a in data)), value, case.tol)

    check(case, Findings("successful", [], {"x": right}))


def _auxiliary(case: Case) -> None:
    """Integers next to the loss: grad with has_aux, plain, jitted and batched."""
    assert case.problem["loss"] == "sum(x), aux=info", f"no runner knows the loss {case.problem['loss']!r}"
    data = {name: jnp.asarray(value, float) for name, value in case.problem["qp"].items() if value}

    def loss(q: jax.Array) -> tuple[jax.Array, Any]:
        solution = _solve({**data, "q": q})
        return jnp.sum(solution.primal), (solution.primal, solution.stats.steps, solution.result)

    gradient, (x, steps, _) = jax.jit(jax.grad(loss, has_aux=True))(data["q"])
    assert jnp.issubdtype(steps.dtype, jnp.integer)
    batch = jnp.stack([data["q"], data["q"]])
    batched, _ = jax.vmap(jax.grad(loss, has_aux=True))(batch)
    np.testing.assert_allclose(batched, np.stack([gradient, gradient]), rtol=1e-10)
    check(case, Findings("successful", [named(x=lambda: x, dx_dq=lambda: gradient)]))


def _masked(case: Case) -> None:
    """A masked branch, and masked rows of a program: neither may leave NaN in a derivative."""
    formula = Formula(case.problem["function"])
    (name,) = formula.names
    x = jnp.asarray(case.problem["x"], float)
    value, gradient = jax.vmap(jax.value_and_grad(lambda x: formula({name: x})))(x)
    padded = _gradient_with_absent_rows()

    def all_finite(want: Any) -> None:
        finite("function", value, gradient)
        finite("derivative of a program with absent rows", *padded.values())
        assert np.all(as_array(padded["h"])[1:] == 0), "an absent row has a derivative"
        assert np.all(as_array(padded["G"])[1:] == 0), "an absent row has a derivative"

    source = named(value=lambda: value, grad=lambda: gradient)
    check(case, Findings("successful", [source], {"finite": all_finite}))


def _gradient_with_absent_rows() -> dict[str, Any]:
    """Two of three rows are padding (h = inf), under vmap."""
    data = {
        "P": jnp.eye(2),
        "q": -jnp.ones(2),
        "G": jnp.asarray([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]),
        "h": jnp.asarray([1.0, jnp.inf, jnp.inf]),
    }
    batch = jax.tree.map(lambda leaf: leaf[None], data)
    gradient = jax.grad(lambda batch: jnp.sum(jax.vmap(lambda data: _solve(data).primal)(batch)))(batch)
    return jax.tree.map(lambda leaf: leaf[0], gradient)
