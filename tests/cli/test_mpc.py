"""`optdyn mpc`."""

import json

import numpy as np
import pytest

import optdyn as od
from optdyn import cli


def run(*arguments):
    return cli.run(["mpc", *arguments])


def test_pushes_the_block_and_writes_what_happened(tmp_path, capsys):
    path = tmp_path / "episode.json"
    assert run("push_block", "--json", str(path), "--steps", "30") == 0
    content = json.loads(path.read_text())
    assert content["completed"] is True
    assert content["goal_error"] < 0.05
    assert content["cost"] == pytest.approx(sum(content["stage_costs"]))
    assert len(content["seconds"]) == len(content["results"]) == content["steps"] == 30
    assert np.shape(content["states"]) == (31, 2)
    assert np.shape(content["controls"]) == (30, 1)
    captured = capsys.readouterr()
    assert "control step" in captured.out
    assert "step 3 of 30" in captured.err  # progress


def test_sampling_on_the_chain(capsys):
    assert run("chain", "--controller", "dial", "--steps", "2", "--quiet") == 0
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_bad_input_is_one_line(tmp_path, capsys):
    assert run("nowhere") == 2
    assert "unknown task 'nowhere'; choose from: push_block, chain" in capsys.readouterr().err
    assert run("chain", "--json", str(tmp_path / "x.txt")) == 2
    assert run("chain", "--controller", "pid") == 2
    assert not list(tmp_path.iterdir())


def test_list_names_the_tasks(capsys):
    assert cli.run(["list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in od.systems.available_tasks())


def test_tasks_differ_by_seed_and_knots():
    first, second = (od.systems.load_task("chain", seed=seed) for seed in (0, 1))
    assert np.abs(first.x0 - second.x0).max() > 0.1
    few = od.systems.load_task("chain", num_knots=3)
    assert few.task.spline.num_knots == 3
    with pytest.raises(od.ScenarioError, match="unknown task"):
        od.systems.load_task("nowhere")
