"""Runner of batches of quadratic programs under `vmap`."""

import re
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import optdyn as od
from cases import oracle
from cases.bank import Case
from cases.checking import Findings, as_array, check, check_status, finite, named, status_of
from cases.conic_model import ConicSolve, read


@eqx.filter_jit
def _solve_all(fn: ConicSolve, batch: dict[str, Any]) -> od.Solution:
    return jax.vmap(lambda theta: fn(theta)[1])(batch)


@eqx.filter_jit
def _gradients(fn: ConicSolve, batch: dict[str, Any]) -> dict[str, Any]:
    """Gradient of the sum of x over the members that were solved."""

    def loss(batch: dict[str, Any]) -> jax.Array:
        solutions = jax.vmap(lambda theta: fn(theta)[1])(batch)
        solved = solutions.result == od.RESULTS.successful
        return jnp.sum(jnp.where(solved, solutions.primal.sum(axis=-1), 0.0))

    return jax.grad(loss)(batch)


@eqx.filter_jit
def _solve_one(fn: ConicSolve, theta: dict[str, Any]) -> od.Solution:
    return fn(theta)[1]


def run(case: Case) -> None:
    """Members must have their own results, whatever the others do."""
    common = {name: value for name, value in case.problem.items() if name != "batch"}
    members = [read({**common, **member}) for member in case.problem["batch"]]
    members = [{**member, "constant": jnp.zeros(())} for member in members]
    shapes = [jax.tree.map(jnp.shape, member) for member in members]
    assert all(shape == shapes[0] for shape in shapes), "the members of a batch must have equal shapes"
    fn, batch = ConicSolve(), jax.tree.map(lambda *leaves: jnp.stack(leaves), *members)
    solutions = _solve_all(fn, batch)
    each = [jax.tree.map(lambda leaf, i=i: leaf[i], solutions) for i in range(len(members))]
    statuses = [status_of(solution.result) for solution in each]
    for member, solution, status in zip(members, each, statuses, strict=True):
        alone = _solve_one(fn, member)
        assert status_of(alone.result) == status, f"{status} in the batch, {status_of(alone.result)} alone"
        if status == "successful":
            oracle.conic(member, solution)
            np.testing.assert_allclose(solution.primal, alone.primal, rtol=1e-10, atol=1e-10)

    def member_value(key: str, want: Any) -> Any:
        match = re.fullmatch(r"(x|obj)(\d+)", key)
        if match is None:
            return None
        i = int(match[2])
        x = as_array(each[i].primal)
        return x if match[1] == "x" else x @ members[i]["P"] @ x / 2 + members[i]["q"] @ x

    def gradient(key: str, want: Any) -> Any:
        match = re.fullmatch(r"grad_([PqAbGh])_member(\d+)", key)
        return None if match is None else _gradients(fn, batch)[match[1]][int(match[2])]

    def check_each(want: Any) -> None:
        for found, expected in zip(
            statuses, want if isinstance(want, list) else [want] * len(each), strict=True
        ):
            check_status(found, expected)

    def gradients_of_failed(want: Any) -> None:
        solved = np.asarray([s == "successful" for s in statuses])
        for name, leaf in _gradients(fn, batch).items():
            finite(f"grad of {name}", *(as_array(part)[solved] for part in jax.tree.leaves(leaf)))

    def finite_rule(want: Any) -> None:
        finite("x", *(s.primal for s, name in zip(each, statuses, strict=True) if name == "successful"))

    findings = Findings(
        "successful" if all(s == "successful" for s in statuses) else "some members failed",
        [named(x=lambda: solutions.primal), member_value, gradient],
        {"finite": finite_rule, "terminates": lambda want: None, "grad_members_2_3": gradients_of_failed},
    )
    expected = dict(case.expected)
    if isinstance(expected.get("status"), list):
        check_each(expected.pop("status"))
    check(Case(case.id, case.group, case.description, case.problem, expected, case.tol), findings)
