import numpy as np
import pytest

from helpers.fake_scenario import FakeScenario, FakeSlider, fake_plan
from optdyn.systems._scenario import Shape
from optdyn.viz._motion import Motion, record_motion


@pytest.fixture(scope="module")
def motion():
    scenario = FakeScenario()
    return record_motion(scenario, fake_plan(scenario))


def make(frames):
    return Motion("", np.arange(len(frames), dtype=float), frames, (0.0, 2.0, 0.0, 1.0))


def test_a_frame_for_every_state(motion):
    assert len(motion.frames) == motion.times.size == 81
    assert motion.aspect == pytest.approx(1.0)


def test_only_the_support_stands_still(motion):
    assert [shape.kind for shape in motion.standing] == ["polygon"]
    assert [shape.label for shape in motion.moving(0)] == ["upper link", "lower link", ""]


def test_tip_is_the_end_of_the_last_link(motion):
    lower = motion.frames[17][2]
    np.testing.assert_array_equal(motion.tip[17], lower.points[-1])


def test_shapes_that_come_and_go_are_not_followed():
    scenario = FakeSlider()
    motion = record_motion(scenario, fake_plan(scenario))
    assert {len(frame) for frame in motion.frames} == {2, 3}
    assert [shape.kind for shape in motion.standing] == ["polyline"]
    np.testing.assert_allclose(motion.tip[:, 1], 0.2)  # the centre of the block, not an end of the force


def test_a_labelled_tip_wins():
    def frame(x):
        line = Shape("polyline", np.array([[0.0, 0.0], [x, 1.0]]))
        return [Shape("disc", np.array([[x, 5.0]]), radius=0.1, label="tip"), line]

    np.testing.assert_array_equal(make([frame(0.0), frame(2.0)]).tip, [[0.0, 5.0], [2.0, 5.0]])


def test_nothing_moves_means_no_tip():
    shape = Shape("disc", np.zeros((1, 2)), radius=1.0)
    assert np.isnan(make([[shape], [shape]]).tip).all()


def test_states_that_are_not_numbers_are_kept_as_such():
    scenario = FakeScenario()
    motion = record_motion(scenario, fake_plan(scenario, failed=True))
    assert np.isfinite(motion.tip[:40]).all()
    assert np.isnan(motion.tip[40:]).all()
    assert len(motion.standing) == 1
