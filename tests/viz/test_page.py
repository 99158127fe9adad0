"""The interactive page on the side of the server: what it serves, and what its controls do. No browser."""

import dataclasses
import socket
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from helpers.fake_scenario import FakeScenario, FakeSlider, fake_plan
from optdyn import viz
from optdyn.systems import Panel
from optdyn.viz import _api
from optdyn.viz._page_charts import PageChart
from optdyn.viz._palette import rgb


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("viser", reason="viser is not installed: pip install 'optdyn[viz]'")
    from optdyn.viz._serve import close_server, open_server

    server = open_server(0)
    yield server
    close_server(server)


@pytest.fixture
def make_page(server):
    from optdyn.viz._page import Page

    def make(scenario: Any = None, failed=False, facts=""):
        server.scene.reset()
        server.gui.reset()
        scenario = FakeScenario() if scenario is None else scenario
        return Page(server, scenario, fake_plan(scenario, failed=failed), scenario.times, facts)

    return make


def handle(page, name):
    found = page._server.scene.get_handle_by_name(name)
    assert found is not None, name
    return found


def test_the_scene_has_the_bodies_of_the_drawing(make_page):
    page = make_page()
    for name in ("polygon", "upper link", "lower link", "disc"):
        assert handle(page, f"/bodies/{name}").visible
        assert handle(page, f"/bodies/{name}/1").vertices.shape[1] == 3
    assert handle(page, "/bodies/upper link/1").color == rgb("#0072B2")


def test_playing_moves_the_bodies_in_time(make_page):
    page = make_page()
    states = fake_plan(FakeScenario()).states
    page.tick(1.0)
    assert page.now == 0.0  # it does not play yet
    page.toggle()
    assert page.button.label == "Pause"
    page.tick(1.02)
    assert page.frame == 20
    assert page.slider.value == pytest.approx(1.02)
    elbow = FakeScenario().draw(states[20])[3].points[0]
    np.testing.assert_allclose(handle(page, "/bodies/disc").position, [elbow[0], 0.0, elbow[1]], atol=1e-6)
    page.speed.value = "0.5"
    page.tick(1.0)
    assert page.now == pytest.approx(1.52)
    page.toggle()
    page.tick(1.0)
    assert page.now == pytest.approx(1.52)


def test_the_end_repeats_or_stops_and_play_starts_again(make_page):
    page = make_page()
    page.toggle()
    page.seek(3.9)
    page.tick(0.2)
    assert page.playing
    assert page.now == 0.0
    page.repeat.value = False
    page.seek(3.9)
    page.tick(0.2)
    assert not page.playing
    assert page.frame == 80
    page.toggle()
    assert page.playing
    assert page.now == 0.0


def test_scrubbing_by_a_reader_moves_the_scene(make_page):
    page = make_page()
    page.slider.value = 2.0  # by the program: no reader did it
    assert page.now == 0.0
    page._scrubbed(SimpleNamespace(client=object()))
    assert page.frame == 40


def test_forces_are_arrows_at_the_end_of_their_step(make_page):
    page = make_page()
    arrow = handle(page, "/forces/weight")
    for now in (0.0, 0.05):  # no step before the first state; no force in the first step
        page.seek(now)
        assert not arrow.visible
    page.seek(1.0)
    assert arrow.visible
    tip = FakeScenario().draw(fake_plan(FakeScenario()).states[20])[2].points[-1]
    start, end = arrow.points[0]
    np.testing.assert_allclose(start[[0, 2]], tip, atol=1e-6)
    np.testing.assert_allclose((end - start)[:2], 0.0, atol=1e-6)
    assert (end - start)[2] == pytest.approx(-0.3 * 4.4)
    page.force_scale.value = 2.0
    assert np.ptp(arrow.points[0][:, 2]) == pytest.approx(0.6 * 4.4)
    page.show_forces.value = False
    assert not arrow.visible


def test_an_arrow_may_end_at_its_point(make_page):
    class Pushed(FakeScenario):
        def forces(self, plan):
            return [dataclasses.replace(super().forces(plan)[0], ends=True)]

    page = make_page(Pushed())
    page.seek(1.0)
    tip = FakeScenario().draw(fake_plan(FakeScenario()).states[20])[2].points[-1]
    np.testing.assert_allclose(handle(page, "/forces/weight").points[0][1][[0, 2]], tip, atol=1e-6)


def test_a_chart_for_every_panel_with_a_line_at_the_present(make_page):
    page = make_page()
    assert [chart.title for chart in page._chart_handles] == [
        "Joint angles [rad]",
        "Joint rates [rad/s]",
        "Control [N m s]",
    ]
    page.seek(1.0)
    for chart in page._chart_handles:
        assert len(chart.data) == len(chart.series)
        assert len({len(array) for array in chart.data}) == 1
        x, present = chart.data[0], chart.data[-1]
        assert x[np.argmax(present)] == 1.0
        assert np.all(np.diff(x) >= 0)


def test_a_failed_plan_is_shown_as_far_as_it_goes(make_page):
    page = make_page(failed=True)
    page.seek(page.times[-1])
    assert not handle(page, "/bodies/disc").visible
    assert not handle(page, "/forces/weight").visible
    page.seek(1.0)
    assert handle(page, "/bodies/disc").visible


def test_no_forces(make_page):
    page = make_page(FakeSlider())
    assert not page.show_forces.visible
    page.seek(1.0)


def test_a_step_curve_is_held_and_the_present_is_on_it():
    panel = Panel(
        "Force", "N", np.array([0.0, 1.0]), {"push": np.array([2.0, 5.0])}, (9.0, 1e6), "step", (1.0,)
    )
    chart = PageChart(panel, 2.0)
    x, push, limit, goal, present = chart.data(0.5)
    np.testing.assert_array_equal(x, [0.0, 0.5, 0.5, 0.5, 1.0, 1.0, 2.0])
    np.testing.assert_array_equal(push, [2.0] * 5 + [5.0] * 2)
    np.testing.assert_array_equal([limit, goal], [[9.0] * 7, [1.0] * 7])
    assert list(present > chart.low) == [False, False, True, False, False, False, False]
    labels = [series.get("label") for series in chart.options()["series"]]
    assert labels == ["time [s]", "push", "limit 9", "goal 1", "now"]  # the limit far away is left out


def test_colours():
    assert rgb("#0072B2") == (0, 114, 178)
    with pytest.raises(ValueError, match="#rrggbb"):
        rgb("red")


def test_view_serves_until_interrupted_and_prints_nothing_else(server, monkeypatch, capsys):
    from optdyn.viz import _serve

    opened = []
    monkeypatch.setattr(_serve.webbrowser, "open", opened.append)
    naps = iter([None, None])

    def nap(seconds):
        if next(naps, "end") == "end":
            raise KeyboardInterrupt

    monkeypatch.setattr(_serve.time, "sleep", nap)
    scenario = FakeScenario()
    viz.view(scenario, fake_plan(scenario), port=0)
    (url,) = opened
    monkeypatch.undo()
    port = int(url.rpartition(":")[2])
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:  # the server ends in a thread of its own
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                break
        time.sleep(0.05)
    else:
        pytest.fail("the server still listens")
    assert capsys.readouterr().out == f"{url}\n"


def test_a_port_in_use_is_an_error(server):
    with pytest.raises(OSError, match="in use"):
        viz.view(FakeScenario(), fake_plan(FakeScenario()), port=server.get_port(), open_browser=False)


def test_nothing_to_see_and_no_viser(monkeypatch):
    scenario = FakeScenario()
    plan = fake_plan(scenario)
    monkeypatch.setattr(_api.importlib.util, "find_spec", lambda name: None)
    assert viz.missing_packages("view") == ("viser",)
    with pytest.raises(ImportError, match=r"viser: pip install 'optdyn\[viz\]'"):
        viz.view(scenario, plan)
    monkeypatch.setattr(_api.importlib.util, "find_spec", lambda name: True)
    for states in (plan.states[:1], np.full_like(plan.states, np.nan)):
        plan.states = states
        with pytest.raises(ValueError, match="nothing to see"):
            viz.view(scenario, plan)
