"""Suites, tasks, and the figure."""

import math

import pytest

from optdyn import bench
from optdyn.bench import Options, Task


def test_every_suite_has_tasks_with_names_of_their_own():
    for suite in bench.available():
        for options in (Options(), Options(quick=True)):
            names = [(task.case, task.method) for task in bench.tasks(suite, options)]
            assert names
            assert len(set(names)) == len(names)


def test_peers_can_be_left_out():
    def needs(options):
        return {name for task in bench.tasks("dynamics", options) for name in task.needs}

    assert needs(Options()) == {"mujoco", "casadi"}
    assert needs(Options(peers=("casadi",))) == {"casadi"}
    assert needs(Options(peers=())) == set()


def test_a_missing_package_is_a_row():
    def measure():
        raise AssertionError("must not be called")

    row = Task("case", "method", measure, ("no_such_package",)).row()
    assert row == {"case": "case", "method": "method", "skipped": "no_such_package not installed"}


def test_machine():
    found = bench.machine()
    assert {"cpu", "cores", "jax", "optdyn", "python"} <= set(found)


def test_figure(tmp_path):
    rows = [
        {
            "case": case,
            "method": f"{rule}, {smoothing:.0e}",
            "solved": solved,
            "seeds": 2,
            "iterations": 10.0 if solved else None,
        }
        for case in ("a/b", "c/d")
        for rule in ("on the path", "below")
        for smoothing, solved in ((1e-3, 2), (1e-2, 0))
    ]
    path = tmp_path / "figure.png"
    bench.plot("smoothing", rows, path)
    assert path.stat().st_size > 5000
    from optdyn.bench._figure import _curves

    curves = _curves(rows, "a/b")
    assert list(curves) == ["on the path", "below"]
    (first, second) = curves["below"]
    assert first == (1e-3, 100.0, 10.0)
    assert second[1] == 0
    assert math.isnan(second[2])
    with pytest.raises(ValueError, match="'dynamics' has no figure"):
        bench.plot("dynamics", rows, path)
