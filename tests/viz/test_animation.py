import json
import re

import numpy as np
import pytest

from helpers.fake_scenario import FakeScenario, FakeSlider, fake_plan
from optdyn import viz
from optdyn.viz import _api
from optdyn.viz._html import player_data
from optdyn.viz._motion import record_motion


def page_data(path):
    text = path.read_text(encoding="utf-8")
    found = re.search(r"const data = (\{.*\});\n", text)
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize("failed", [False, True])
def test_gif_plays_in_real_time(tmp_path, failed):
    from PIL import Image, ImageSequence

    scenario, path = FakeScenario(horizon=30), tmp_path / "motion.gif"
    viz.animate(scenario, fake_plan(scenario, failed=failed), path)
    with Image.open(path) as picture:
        durations = []
        for frame in ImageSequence.Iterator(picture):
            durations.append(frame.info["duration"])
    assert sum(durations[:-1]) == 1500
    assert durations[-1] > 1000


@pytest.mark.parametrize("step", [0.001, 0.01, 0.013, 0.04, 0.05, 0.3])
def test_frames_and_durations(step):
    from optdyn.viz._gif import frame_durations, frame_indices

    times = step * np.arange(201)
    chosen = frame_indices(times)
    assert chosen[0] == 0
    assert chosen[-1] == 200
    durations = frame_durations(times[chosen])
    assert len(durations) == chosen.size
    assert sum(durations[:-1]) == pytest.approx(1000 * times[-1], abs=20)
    assert chosen.size <= 25 * times[-1] + 2


def test_page_holds_every_state_and_needs_nothing_else(tmp_path):
    scenario, path = FakeScenario(), tmp_path / "motion.html"
    viz.animate(scenario, fake_plan(scenario), path)
    data = page_data(path)
    assert len(data["frames"]) == len(data["times"]) == len(data["tip"]) == 81
    assert [shape["k"] for shape in data["standing"]] == ["polygon"]
    assert data["description"] == scenario.description  # which contains markup
    text = path.read_text(encoding="utf-8")
    assert "<under>" not in text
    assert "http" not in text


def test_page_coordinates_are_rounded_below_a_pixel():
    scenario = FakeSlider()
    motion = record_motion(scenario, fake_plan(scenario))
    data = player_data(motion)
    for i, frame in enumerate(data["frames"]):
        for drawn, shape in zip(frame, motion.moving(i), strict=True):
            np.testing.assert_allclose(drawn["p"], np.ravel(shape.points), atol=5e-4)


def test_page_of_a_failed_plan_has_gaps_and_is_json(tmp_path):
    scenario, path = FakeScenario(), tmp_path / "motion.html"
    viz.animate(scenario, fake_plan(scenario, failed=True), path)
    data = page_data(path)
    assert data["frames"][-1] == []
    assert data["tip"][-1] is None


@pytest.mark.parametrize(("draw", "name"), [(viz.plot, "a.jpeg"), (viz.animate, "a.mp4"), (viz.plot, "a")])
def test_unknown_extensions_are_refused(tmp_path, draw, name):
    scenario = FakeScenario()
    with pytest.raises(ValueError, match="has to end in"):
        draw(scenario, fake_plan(scenario), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_page_needs_no_package_and_a_missing_one_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(_api.importlib.util, "find_spec", lambda name: None)
    assert viz.missing_packages(".html") == ()
    assert viz.missing_packages(".GIF") == ("matplotlib", "pillow")
    scenario = FakeScenario()
    with pytest.raises(ImportError, match=r"optdyn\[viz\]"):
        viz.plot(scenario, fake_plan(scenario), tmp_path / "figure.png")
