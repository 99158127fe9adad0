"""`optdyn bench` on suites without work in them."""

import json

import pytest

from optdyn import bench, cli
from optdyn.bench import Task


@pytest.fixture
def calls(monkeypatch):
    """A suite of two tasks; returns the list of what was measured."""
    done = []

    def tasks(suite, options):
        def measure(name):
            done.append(name)
            return {"solved": 1, "seeds": options.seeds, "cost": 2.5, "violation": float("inf")}

        return [
            Task("case", "first", lambda: measure("first")),
            Task("case", "second", lambda: measure("second")),
            Task("case", "peer", lambda: measure("peer"), ("no_such_package",)),
        ]

    monkeypatch.setattr(bench, "tasks", tasks)
    return done


def run(*arguments):
    return cli.run(["bench", *arguments])


def test_writes_rows_and_a_table(calls, tmp_path, capsys):
    path = tmp_path / "rows.json"
    assert run("dynamics", "--json", str(path), "--seeds", "3") == 0
    content = json.loads(path.read_text())
    assert content["suite"] == "dynamics"
    assert content["complete"] is True
    assert content["settings"] == {"quick": False, "seeds": 3}
    assert {"cpu", "cores", "jax"} <= set(content["machine"])
    assert [row["method"] for row in content["rows"]] == ["first", "second", "peer"]
    assert content["rows"][0]["cost"] == 2.5
    assert content["rows"][0]["violation"] is None
    assert content["rows"][2]["skipped"] == "no_such_package not installed"
    printed = capsys.readouterr()
    assert "no_such_package not installed" in printed.out
    assert "1/3" in printed.out
    assert "2 of 3: case, second" in printed.err


def test_resume_measures_what_is_missing(calls, tmp_path, capsys):
    path = tmp_path / "rows.json"
    assert run("dynamics", "--json", str(path), "--quiet") == 0
    content = json.loads(path.read_text())
    content["rows"] = content["rows"][:1]
    path.write_text(json.dumps(content))
    calls.clear()
    assert run("dynamics", "--json", str(path), "--resume", "--quiet") == 0
    assert calls == ["second"]
    assert [row["method"] for row in json.loads(path.read_text())["rows"]] == ["first", "second", "peer"]
    assert capsys.readouterr().out == ""


def test_rows_before_an_error_are_kept(calls, tmp_path, monkeypatch):
    path = tmp_path / "rows.json"

    def tasks(suite, options):
        def broken():
            raise KeyboardInterrupt

        return [Task("case", "first", lambda: {"solved": 1, "seeds": 1}), Task("case", "broken", broken)]

    monkeypatch.setattr(bench, "tasks", tasks)
    assert run("dynamics", "--json", str(path), "--quiet") == 130
    content = json.loads(path.read_text())
    assert content["complete"] is False
    assert [row["method"] for row in content["rows"]] == ["first"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "unknown suite 'nothing'; choose from: dynamics, "),
        (["dynamics", "--resume"], "--resume needs --json FILE"),
        (["dynamics", "--peers", "acme"], "--peers: unknown acme; choose from: mujoco, casadi"),
        (["dynamics", "--plot", "x.png"], "the suite dynamics has no figure"),
        (["dynamics", "--seeds", "0"], "--seeds"),
        (["dynamics", "--json", "rows.txt"], "ends in '.txt'; use .json"),
    ],
)
def test_bad_input(arguments, message, calls, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert len(printed.strip().splitlines()) == 1
    assert calls == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"suite": "smoothing", "settings": {}, "rows": []}'])
def test_resume_refuses_other_files(text, calls, tmp_path, capsys):
    path = tmp_path / "rows.json"
    path.write_text(text)
    assert run("dynamics", "--json", str(path), "--resume") == 2
    assert "--resume:" in capsys.readouterr().err
    assert path.read_text() == text
    assert calls == []


def test_list_shows_the_suites(capsys):
    assert cli.run(["list"]) == 0
    printed = capsys.readouterr().out
    assert all(suite in printed for suite in bench.available())
