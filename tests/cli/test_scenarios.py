"""The command line on the real library."""

import json
import math

import jax
import numpy as np
import pytest

import optdyn as od
from optdyn.cli import run


@pytest.fixture(autouse=True)
def _keep_precision():
    """The command sets the precision of the whole process."""
    yield
    jax.config.update("jax_enable_x64", True)


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("acrobot")
    files = [f"--json={folder / 'a.json'}", f"--plot={folder / 'a.png'}", f"--animate={folder / 'a.gif'}"]
    code = run(["solve", "acrobot", "--variant", "joint_limits", *files, "--quiet"])
    return code, folder


def test_acrobot_with_joint_limits(solved):
    code, folder = solved
    content = json.loads((folder / "a.json").read_text())
    assert code == 0
    assert content["result"] == "successful"
    assert content["constraint_violation"] <= 1e-3
    assert content["lower_level"]["failed"] == 0
    assert content["lower_level"]["solves"] > 0
    assert content["dtype"] == "float64"
    states, controls, times = (np.array(content[key]) for key in ("states", "controls", "times"))
    assert states.shape[0] == controls.shape[0] + 1 == times.size
    for value in content["time"].values():
        assert math.isfinite(value)
        assert value > 0
    assert content["time"]["first_result_s"] > content["time"]["solve_s"]


def test_acrobot_has_its_pictures(solved):
    _, folder = solved
    assert sorted(path.name for path in folder.iterdir()) == ["a.gif", "a.json", "a.png"]
    assert (folder / "a.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "a.gif").read_bytes().startswith(b"GIF89a")


def test_list_shows_every_scenario_and_variant(capsys):
    assert run(["list"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for name, variants in od.systems.available().items():
        assert f"{name} {', '.join(variants)}" in printed


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(["acrobat"], "acrobat"), (["acrobot", "--variant", "joint_limit"], "joint_limit")],
    ids=["scenario", "variant"],
)
def test_unknown_names_are_one_line(arguments, word, capsys):
    assert run(["solve", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert word in printed.err
    assert "optdyn list" in printed.err
