"""Every script in examples/ runs as a process, without a warning, and says what it should."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"

# Options, and what has to appear in what is printed. Fast scripts come first: they are in the default suite.
FAST: dict[str, tuple[list[str], str]] = {
    "define_your_own_program": ([], r"0\.10   infeasible(.*\n)+.* 1\.00   successful"),
    "sliding_block": ([], r"successful(.*\n)+.*stops at (1\.0000|0\.9999) m"),
}
SLOW: dict[str, tuple[list[str], str]] = {
    "acrobot": ([], r"successful(.*\n)+.*touches a stop in \d+ of 200 steps"),
    "box3d": ([], r"slide: .*\n +successful(.*\n)+.*90\.0 degrees(.*\n)*tumble: .*\n +successful"),
    "cartpole": ([], r"frictionless +successful.*\nfriction_0\.1 +successful.*\nfriction_0\.35 +successful"),
    "contact_system_of_your_own": ([], r"100 percent(.*\n)+plan: successful.* stops at 1\.000 m"),
    "differentiate_through_a_solve": ([], r"1\.2 -> 1\.2000.*\n.*1\.2 -> 0\.30\d\d"),
    "feedback_through_contact": ([], r"alone: .* [1-9]\d+\.\d mm(.*\n)+with the gains: .* [0-4]\.\d mm"),
    "hopper": ([], r"successful(.*\n)+.*: [#.]*#[#.]*\n"),
    "planar_push": ([], r"successful(.*\n)+.*angle 90 degrees"),
    "rocket": ([], r"successful(.*\n)+ +3\.00 .* 1\.00 +0\.00"),
    "walker": ([], r"successful(.*\n)+foot b .*: #+\.+#+\n"),
}
QUICK: dict[str, tuple[list[str], str]] = {
    "box3d": (["--quick"], r"slide: .*\n +successful"),
    "cartpole": (["--quick"], r"frictionless +successful"),
}


def check(name, options, expected):
    # The package may be imported from a source tree, which only the path of this process knows.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-W", "error", str(FOLDER / f"{name}.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1500)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert re.search(expected, done.stdout), done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 120


@pytest.mark.parametrize("name", FAST)
def test_fast_example(name):
    check(name, *FAST[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_example(name):
    check(name, *SLOW[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_quick_example(name):
    check(name, *QUICK[name])


def test_every_example_is_tested_and_listed():
    scripts = {path.stem for path in FOLDER.glob("*.py")}
    assert scripts == set(FAST) | set(SLOW)
    listed = re.findall(r"\]\((\w+)\.py\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(scripts)
