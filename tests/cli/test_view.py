"""`optdyn view`: what is wrong with a file is one line and exit code 2; a good one reaches the page whole."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from helpers.signals import children_hear_ctrl_c
from optdyn import viz
from optdyn.cli import run
from optdyn.cli._recording import read_recording
from optdyn.viz import _api

N = 4


def document():
    return {
        "scenario": "sliding_block",
        "variant": "friction_0.1",
        "result": "successful",
        "cost": 8.25,
        "constraint_violation": 2e-6,
        "states": [[0.1 * k, 1.0] for k in range(N + 1)],
        "controls": [[0.5]] * N,
        "times": [0.05 * k for k in range(N + 1)],
        "outputs": {"friction_impulse": [-0.01] * N},
    }


def write(tmp_path, content):
    path = tmp_path / "result.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.fixture
def shown(monkeypatch):
    """Arguments with which the page would be served."""
    calls = []
    monkeypatch.setattr(_api.importlib.util, "find_spec", lambda name: True)
    monkeypatch.setattr(
        viz, "view", lambda scenario, plan, **options: calls.append((scenario, plan, options))
    )
    return calls


def test_a_result_is_shown_as_recorded(tmp_path, shown):
    assert run(["view", str(write(tmp_path, document())), "--port", "8123", "--no-open"]) == 0
    ((scenario, plan, options),) = shown
    assert (scenario.name, scenario.variant) == ("sliding_block", "friction_0.1")
    np.testing.assert_array_equal(plan.states[:, 0], 0.1 * np.arange(N + 1))
    np.testing.assert_array_equal(plan.step_info.outputs["friction_impulse"], [-0.01] * N)
    np.testing.assert_array_equal(options["times"], 0.05 * np.arange(N + 1))
    assert options["facts"] == "**successful**, cost 8.25, violation 2e-06"
    assert (options["port"], options["open_browser"]) == (8123, False)


def test_a_result_without_outputs_is_simulated(tmp_path, shown):
    content = document()
    del content["outputs"]
    assert run(["view", str(write(tmp_path, content))]) == 0
    ((_, plan, _),) = shown
    # Sliding at 1 m/s, friction is at its largest: mu m g h.
    np.testing.assert_allclose(plan.step_info.outputs["friction_impulse"], -0.1 * 9.81 * 0.05, rtol=1e-3)


def test_null_is_not_a_number(tmp_path):
    content = document()
    content["states"][-1] = [None, None]
    content["cost"] = None
    recording = read_recording(write(tmp_path, content))
    assert np.isnan(recording.states[-1]).all()
    assert recording.facts() == "**successful**, violation 2e-06"


def changed(**changes):
    return {**document(), **changes}


def without(key):
    return {name: value for name, value in document().items() if name != key}


BAD = {
    "not JSON": ("{", "is not JSON"),
    "a number": ("3", "holds no JSON object"),
    "deep": ("[" * 100_000, "is not JSON"),
    "another file": ({"rows": []}, "it has no scenario, variant, states, controls, times"),
    "no states": (without("states"), "it has no states"),
    "unknown scenario": (changed(scenario="unicycle"), "unknown scenario 'unicycle'; choose from"),
    "unknown variant": (changed(variant="ice"), "unknown variant 'ice' of sliding_block"),
    "name is a number": (changed(scenario=3), "scenario is not a name"),
    "ragged states": (changed(states=[[0.0, 1.0]] * N + [[0.0]]), "states does not hold lists of numbers"),
    "words": (changed(controls=[["fast"]] * N), "controls does not hold lists of numbers"),
    "truth values": (changed(controls=[[True]] * N), "controls does not hold lists of numbers"),
    "huge number": (changed(controls=[[10**400]] * N), "controls does not hold lists of numbers"),
    "lost state": (
        changed(states=[[0.0, 1.0]] * N),
        f"{N} states, {N} controls and {N + 1} times do not fit",
    ),
    "no step": (changed(states=[[0.0, 1.0]], controls=[], times=[0.0]), "controls does not hold"),
    "time stands still": (changed(times=[0.0] * (N + 1)), "times do not increase"),
    "other states": (
        changed(states=[[0.0]] * (N + 1)),
        "states have 1 numbers each, but those of sliding_block",
    ),
    "other controls": (changed(controls=[[0.0, 0.0]] * N), "controls have 2 numbers each"),
    "outputs is a list": (changed(outputs=[1]), f"outputs do not hold {N} entries each"),
    "lost output": (changed(outputs={"friction_impulse": [0.0]}), f"outputs do not hold {N} entries each"),
    "other outputs": (
        changed(outputs={}),
        "outputs.friction_impulse is missing or has another shape than (4,)",
    ),
    "output of another shape": (
        changed(outputs={"friction_impulse": [[0.0]] * N}),
        "has another shape than (4,)",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_get_one_line(tmp_path, capsys, shown, name):
    content, message = BAD[name]
    assert run(["view", str(write(tmp_path, content))]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert shown == []


def test_no_file_a_folder_and_bytes(tmp_path, capsys, shown):
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    for name, message in (
        ("none.json", "No such file"),
        ("", "Is a directory"),
        ("bytes.json", "is not JSON"),
    ):
        assert run(["view", str(tmp_path / name)]) == 2
        assert message in capsys.readouterr().err


def test_no_viewer_is_one_line_that_names_the_extra(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_api.importlib.util, "find_spec", lambda name: None)
    assert run(["view", str(write(tmp_path, document()))]) == 2
    assert capsys.readouterr().err == "optdyn: view needs viser; run `pip install 'optdyn[viz]'`\n"


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_a_port_that_is_none(tmp_path, capsys, shown, port):
    assert run(["view", str(write(tmp_path, document())), "--port", port]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_port_in_use_and_nothing_to_see(tmp_path, capsys, monkeypatch, shown):
    for error, message in (
        (OSError(98, "Address already in use"), "port 8080 cannot be used (Address already in use)"),
        (ValueError("there is nothing to see"), "cannot be drawn: there is nothing to see"),
    ):

        def fail(*arguments, error=error, **options):
            raise error

        monkeypatch.setattr(viz, "view", fail)
        assert run(["view", str(write(tmp_path, document())), "--port", "8080"]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is sent differently there")
def test_the_process_serves_the_page_and_ends_cleanly_with_ctrl_c(tmp_path):
    pytest.importorskip("viser", reason="viser is not installed: pip install 'optdyn[viz]'")
    path = write(tmp_path, document())
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "PYTHONWARNINGS": "error",
    }
    with children_hear_ctrl_c():
        process = subprocess.Popen(
            [sys.executable, "-m", "optdyn", "view", str(path), "--no-open", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=Path(tmp_path),
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("sliding_block (friction_0.1) is shown at http://127.0.0.1:"), (
            process.communicate()
        )
        with urllib.request.urlopen(line.split()[5], timeout=10) as answer:
            assert b"<html" in answer.read().lower()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, output, errors) == (0, "", "")
