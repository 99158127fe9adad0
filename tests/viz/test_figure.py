import sys

import numpy as np
import pytest

from helpers.fake_scenario import FakeScenario, FakeSlider, fake_plan
from optdyn.systems._scenario import Panel

pytest.importorskip("matplotlib")

from optdyn import viz
from optdyn.viz._charts import draw_convergence, draw_panel
from optdyn.viz._figure import draw_figure
from optdyn.viz._shapes import add_shape
from optdyn.viz._style import new_figure

TIMES = np.linspace(0.0, 1.0, 11)


@pytest.fixture
def axes():
    return new_figure(4, 3).add_subplot()


def limit_lines(axes):
    return [line for line in axes.lines if line.is_dashed()]


def test_the_figure_shows_every_panel_with_units_and_convergence():
    scenario = FakeScenario()
    figure = draw_figure(scenario, fake_plan(scenario))
    titles = {axes.get_title(loc="left") for axes in figure.axes}
    assert {"Joint angles", "Joint rates", "Control", "Convergence"} <= titles
    labels = {axes.get_ylabel() for axes in figure.axes}
    assert {"[rad]", "[rad/s]", "[N m s]", "cost", "violation"} <= labels
    assert "successful" in figure.get_suptitle()


@pytest.mark.parametrize("scenario", [FakeScenario(), FakeSlider()], ids=["in place", "travelling"])
@pytest.mark.parametrize("failed", [False, True])
def test_the_file_is_a_picture_even_of_a_failed_plan(tmp_path, scenario, failed):
    from PIL import Image

    path = tmp_path / "figure.png"
    viz.plot(scenario, fake_plan(scenario, failed=failed), path)
    with Image.open(path) as picture:
        assert picture.format == "PNG"
        assert picture.width > 1000
        assert len(np.unique(np.asarray(picture.convert("RGB")).reshape(-1, 3), axis=0)) > 100


def test_no_iterations_and_no_panels(tmp_path):
    class Bare(FakeScenario):
        def panels(self, plan):
            return []

    viz.plot(Bare(), fake_plan(Bare(), iterations=0), tmp_path / "figure.png")


def test_pyplot_is_not_involved(tmp_path):
    scenario = FakeScenario()
    viz.plot(scenario, fake_plan(scenario), tmp_path / "figure.svg")
    assert "matplotlib.pyplot" not in sys.modules


def test_limits_are_dashed_lines(axes):
    panel = Panel("Angle", "rad", TIMES, {"elbow": np.sin(TIMES)}, limits=(-1.5, 1.5))
    draw_panel(axes, panel)
    assert [line.get_ydata()[0] for line in limit_lines(axes)] == [-1.5, 1.5]
    assert axes.get_ylim()[0] < -1.5 < 1.5 < axes.get_ylim()[1]


def test_a_goal_is_not_called_a_limit(axes):
    draw_panel(axes, Panel("Angle", "rad", TIMES, {"elbow": np.sin(TIMES)}, goals=(1.0,)))
    assert axes.get_legend_handles_labels()[1] == ["elbow", "goal"]


def test_a_limit_far_away_is_named_and_does_not_flatten_the_curve(axes):
    panel = Panel("Angle", "rad", TIMES, {"elbow": np.sin(TIMES)}, limits=(1e3, np.inf))
    draw_panel(axes, panel)
    assert limit_lines(axes) == []
    assert axes.get_ylim()[1] < 2.0
    assert "1000" in axes.texts[0].get_text()


@pytest.mark.parametrize("times", [TIMES, TIMES[:-1]], ids=["with the end", "without the end"])
def test_a_step_is_held_to_the_end_of_its_interval(axes, times):
    panel = Panel("Control", "N", times, {"force": np.arange(10.0)}, kind="step")
    draw_panel(axes, panel)
    (line,) = axes.lines
    np.testing.assert_allclose(line.get_xdata(), TIMES)
    np.testing.assert_allclose(line.get_ydata(), [*range(10), 9])


def test_outer_rounds_are_marked_between_iterations():
    figure = new_figure(4, 3)
    cost_axes, violation_axes = figure.subplots(2)
    draw_convergence(cost_axes, violation_axes, fake_plan(FakeScenario()).stats.history, 40)
    marks = [line.get_xdata()[0] for line in cost_axes.lines[1:]]
    assert marks == [15.5, 30.5]
    assert violation_axes.get_yscale() == "log"


def test_an_unknown_shape_is_refused(axes):
    class Star:
        kind, points, color, width, radius, label = "star", np.zeros((1, 2)), "k", 1.0, 0.0, ""

    with pytest.raises(ValueError, match="polyline, disc and polygon"):
        add_shape(axes, Star())
