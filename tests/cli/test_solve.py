"""`optdyn solve` around a stand-in for the optimizer: exit codes, files, reports."""

import json

import numpy as np
import pytest

from helpers.fake_scenario import FakeLibrary, fake_plan
from optdyn.cli import _solve, run

KEYS = {
    "scenario": str,
    "variant": str,
    "result": str,
    "cost": float,
    "goal_error": float,
    "constraint_violation": float,
    "iterations": dict,
    "lower_level": dict,
    "time": dict,
    "dtype": str,
    "versions": dict,
    "states": list,
    "controls": list,
    "times": list,
    "outputs": dict,
}


@pytest.fixture
def library(monkeypatch):
    library = FakeLibrary()
    monkeypatch.setattr(_solve, "_load", lambda request: (library, library.scenario))
    return library


def strict_json(path):
    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def test_json_document(library, tmp_path, capsys):
    path = tmp_path / "out" / "a.json"
    assert run(["solve", "pendulum", "--json", str(path), "--quiet"]) == 0
    content = strict_json(path)
    assert {key: type(value) for key, value in content.items()} == KEYS
    assert set(content["iterations"]) == {"outer", "inner"}
    assert set(content["lower_level"]) == {"solves", "failed", "steps_mean", "steps_max", "residual_max"}
    assert set(content["time"]) == {"compile_s", "solve_s", "first_result_s"}
    assert content["result"] == "successful"
    assert np.shape(content["states"]) == (81, 4)
    assert np.shape(content["controls"]) == (80, 1)
    assert np.shape(content["times"]) == (81,)
    assert np.shape(content["outputs"]["impulse"]) == (80, 2)
    assert {"python", "optdyn", "jax", "jaxlib", "numpy"} <= set(content["versions"])
    assert library.calls == 2  # the second call times the compiled program
    assert capsys.readouterr() == ("", "")


def test_numbers_that_are_not_finite_become_null(library, tmp_path):
    library.plan = fake_plan(library.scenario, failed=True)
    path = tmp_path / "a.json"
    assert run(["solve", "pendulum", "--json", str(path), "--quiet"]) == 1
    content = strict_json(path)
    assert content["result"] == "nonfinite"
    assert content["cost"] is None
    assert content["constraint_violation"] is None
    assert content["states"][-1] == [None] * 4


def test_summary_and_progress(library, capsys):
    assert run(["solve", "pendulum"]) == 0
    printed = capsys.readouterr()
    for text in ("pendulum (fake)", "successful", "63.2", "40 in 3 outer rounds", "4000 solves, 0 failed"):
        assert text in printed.out
    assert "round 3  iter 20" in printed.err


def test_failure_says_what_the_code_means(library, capsys):
    library.plan = fake_plan(library.scenario, failed=True)
    assert run(["solve", "pendulum"]) == 1
    printed = capsys.readouterr().out
    assert "nonfinite" in printed
    assert "NaN" in printed


def test_quiet_without_json_solves_once_and_says_nothing(library, capsys):
    assert run(["solve", "pendulum", "-q"]) == 0
    assert library.calls == 1
    assert capsys.readouterr() == ("", "")


def test_pictures(library, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    plot, page = tmp_path / "a.png", tmp_path / "a.html"
    assert run(["solve", "pendulum", "--plot", str(plot), "--animate", str(page)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.png"]
    assert f"wrote {plot}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["solve"], "Missing argument 'scenario'"),
        (["solve", "pendulum", "--seed", "x"], "'--seed'"),
        (["solve", "pendulum", "--seed", "-1"], "'--seed'"),
        (["solve", "pendulum", "--dtype", "float16"], "float64"),
        (["solve", "pendulum", "--nonsense"], "--nonsense"),
        (["solve", "pendulum", "--central-path", "0"], "positive"),
        (["solve", "pendulum", "--smoothing", "nan"], "positive"),
        (["solve", "pendulum", "--smoothing", "inf"], "positive"),
        (["solve", "pendulum", "--json", "a.yaml"], ".json"),
        (["solve", "pendulum", "--plot", "a.jpeg"], ".png"),
        (["solve", "pendulum", "--animate", "a.mp4"], ".gif or .html"),
        (["solve", "pendulum", "--plot", "a.svg", "--json", "a"], "no extension"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(library, arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("optdyn: ")
    assert words in printed.err
    assert library.calls == 0
    assert list(tmp_path.iterdir()) == []


def test_unwritable_path_is_found_before_solving(library, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert run(["solve", "pendulum", "--json", str(tmp_path / "file" / "a.json")]) == 2
    assert library.calls == 0
    assert "cannot be written" in capsys.readouterr().err


def test_missing_packages_are_found_before_solving(library, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_solve.viz, "missing_packages", lambda extension: ("matplotlib",))
    assert run(["solve", "pendulum", "--plot", str(tmp_path / "a.png")]) == 2
    assert library.calls == 0
    assert "optdyn[viz]" in capsys.readouterr().err


def test_an_error_in_the_library_is_not_called_bad_input(library, monkeypatch, capsys):
    def fail(*args, **options):
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr(library, "optimize_trajectory", fail)
    assert run(["solve", "pendulum", "-q"]) == 3
    printed = capsys.readouterr().err
    assert "Traceback" in printed
    assert printed.splitlines()[-1] == "optdyn: internal error, please report it: first line second line"
