import io

from rich.console import Console

from helpers.fake_scenario import FakeRecord
from optdyn.cli._progress import SolveProgress, describe


def run(console, *, enabled=True):
    with SolveProgress("pendulum", enabled=enabled, console=console) as progress:
        progress.phase("compiling")
        for i in range(9):
            progress.record(FakeRecord(outer=1 + i // 4, inner=i + 1))
        progress.phase("timing", follow=False)
        progress.record(FakeRecord(outer=7))
    return console.file.getvalue()


def test_a_record_is_one_short_line():
    text = describe(FakeRecord(outer=12, inner=345, cost=123456.789, penalty=1e8, step_length=0.015625))
    assert "round 12  iter 345" in text
    assert len(text) < 90


def test_a_log_gets_one_line_for_each_round():
    lines = run(Console(file=io.StringIO(), force_terminal=False)).splitlines()
    assert lines[0] == "pendulum: compiling"
    assert [line.split("  ")[:2] for line in lines[1:4]] == [
        ["round 1", "iter 4"],
        ["round 2", "iter 8"],
        ["round 3", "iter 9"],
    ]
    assert lines[4:] == ["pendulum: timing"]


def test_a_terminal_sees_the_iterations():
    text = run(Console(file=io.StringIO(), force_terminal=True, width=120))
    assert "\x1b[" in text  # rewritten in place
    assert "pendulum: timing" in text
    assert "round 7" not in text  # records that are not followed


def test_quiet_prints_nothing():
    assert run(Console(file=io.StringIO(), force_terminal=False), enabled=False) == ""
    assert run(Console(file=io.StringIO(), force_terminal=True), enabled=False) == ""
