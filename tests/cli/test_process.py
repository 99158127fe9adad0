"""The command as a process: help, Ctrl-C, a closed pipe."""

import os
import signal
import subprocess
import sys
import time

import pytest

from helpers.signals import children_hear_ctrl_c
from optdyn.cli._worker import process_age

# A solve that never ends, and says when it has begun.
ENDLESS = """
import time
from helpers.fake_scenario import FakeLibrary
from optdyn.cli import _solve, main

class Endless(FakeLibrary):
    def optimize_trajectory(self, *args, **options):
        print("begun", flush=True)
        time.sleep(300)

library = Endless()
_solve._load = lambda request: (library, library.scenario)
main()
"""


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def optdyn(*arguments):
    command = [sys.executable, "-m", "optdyn", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120)


def test_help_names_the_commands():
    done = optdyn("--help")
    assert done.returncode == 0
    assert "solve" in done.stdout
    assert "list" in done.stdout


def test_no_command_shows_the_help():
    assert "Usage" in optdyn().stdout


def test_bad_input_has_no_traceback():
    done = optdyn("solve", "acrobot", "--json", "a.toml")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is sent differently there")
def test_ctrl_c_during_a_solve_is_answered_at_once_with_one_line():
    command = [sys.executable, "-c", ENDLESS, "solve", "pendulum", "-q"]
    with children_hear_ctrl_c():
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        sent = time.perf_counter()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors == "optdyn: interrupted\n"
    assert time.perf_counter() - sent < 10


def test_process_age_counts_from_the_start_of_the_process():
    code = "import time; time.sleep(0.5); from optdyn.cli._worker import process_age; print(process_age())"
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    wall = time.perf_counter() - started
    assert 0.45 < float(done.stdout) <= wall + 0.05
    assert process_age() > 0
