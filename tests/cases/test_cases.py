"""The bank of problems: one test per case (see `--cases`)."""

from pathlib import Path

import jax
import pytest

from cases import (
    api,
    bank,
    conic,
    conic_batch,
    lasso,
    lcp,
    lqr,
    mjx,
    ncp,
    network,
    nlp,
    ocp,
    planar_push,
    projection,
)
from cases.bank import Case

# Cases that need a part of the library that does not exist yet, by type or by group, with the issue that
# brings it.
NOT_BUILT = {
    "geometry": "Systems: signed distances of shapes are not built yet",
}


@pytest.fixture(scope="module", autouse=True)
def _quick_compilation():
    """Nearly all the time goes into compiling programs that then run once."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        cases = bank.load(Path(str(metafunc.config.getoption("--cases"))))
        metafunc.parametrize("case", [pytest.param(case, id=case.id, marks=_marks(case)) for case in cases])


def _marks(case: Case) -> list[pytest.MarkDecorator]:
    reason = NOT_BUILT.get(case.type) or NOT_BUILT.get(case.group)
    return [pytest.mark.cases] + ([pytest.mark.xfail(reason=reason, strict=False)] if reason else [])


def test_case(case: Case) -> None:
    _runner(case)(case)


def _runner(case: Case):
    if case.group in NOT_BUILT:
        pytest.fail(NOT_BUILT[case.group])
    fields = set(case.problem)
    if case.type in ("qp", "socp"):
        return _conic_runner(fields)
    runners = {"lcp": lcp.run, "ncp": ncp.run, "nlp": nlp.run, "lqr": lqr.run, "ocp": ocp.run, "api": api.run}
    runners |= {"mjx": mjx.run, "network": network.run}
    if case.type not in runners:
        pytest.fail(NOT_BUILT.get(case.type, f"no runner knows the type {case.type!r}"))
    return runners[case.type]


def _conic_runner(fields: set[str]):
    """Some programs are given by their meaning in place of their data."""
    if "batch" in fields:
        return conic_batch.run
    if {"X", "y", "lam", "Xv", "yv"} <= fields:
        return lasso.run
    if {"contact", "pusher_velocity"} <= fields:
        return planar_push.run
    if "op" in fields:
        return projection.run
    if "sets" in fields:
        return projection.run_limits
    return conic.run
