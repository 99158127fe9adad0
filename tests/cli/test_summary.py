import io

from rich.console import Console

from helpers.fake_scenario import FakeScenario, fake_plan
from optdyn.cli._document import Timing, document
from optdyn.cli._summary import summary


def printed(plan, *, result="successful", message=""):
    timing = Timing(compile_s=1.25, solve_s=0.125, first_result_s=3.5)
    content = document(FakeScenario(), plan, result=result, goal_error=2e-4, timing=timing, dtype="float64")
    printed_to = io.StringIO()
    Console(file=printed_to, width=80).print(summary(content, message))
    return printed_to.getvalue()


def test_every_figure_is_there_and_no_line_wraps():
    lines = [line.rstrip() for line in printed(fake_plan(FakeScenario())).splitlines()]
    assert [line.split("  ")[0] for line in lines] == [
        "pendulum (fake)",
        "result",
        "cost",
        "goal error",
        "constraint violation",
        "iterations",
        "lower level",
        "steps per solve",
        "largest residual",
        "compile",
        "solve",
        "first result",
    ]


def test_explicit_dynamics_have_no_lower_level():
    plan = fake_plan(FakeScenario())
    plan.stats.lower_level.solves = 0
    text = printed(plan)
    assert "explicit dynamics" in text
    assert "steps per solve" not in text


def test_a_failure_is_explained():
    text = printed(fake_plan(FakeScenario(), failed=True), result="nonfinite", message="What to do.")
    assert "What to do." in text
    assert "nan" in text
