"""The interactive page in a real browser: it loads, shows the bodies, plays on a click and scrubs."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from helpers.fake_scenario import FakeScenario, fake_plan

pytestmark = pytest.mark.slow

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BLUE, ORANGE = 143, 19  # hues of the two links, of 255


@pytest.fixture(scope="module")
def browser():
    reason = "is not installed (pip install 'optdyn[dev,viz]')"
    webdriver = pytest.importorskip("selenium.webdriver", reason=f"selenium {reason}")
    pytest.importorskip("viser", reason=f"viser {reason}")
    binary = next((path for path in map(shutil.which, BROWSERS) if path), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no browser: install the Debian packages chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("--headless=new", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"):
        options.add_argument(argument)
    options.add_argument("--window-size=1400,900")
    options.add_argument(
        "--no-sandbox"
    )  # containers forbid what the sandbox needs; only our own page is loaded
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield driver
    driver.quit()


def wait_for(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    return pytest.fail(f"{what} did not come within {seconds} s")


def button(browser, text):
    found = browser.find_elements("xpath", f"//button[contains(., '{text}')]")
    return found[0] if found else None


def shown_time(browser):
    """The number beside the slider of time."""
    label = "//label[contains(., 'Time')]/ancestor::*[.//input][1]//input"
    return float(browser.find_element("xpath", label).get_attribute("value"))


def hues(browser):
    """Pixels of clear colour in the left half of the page, where the scene is: how many of each hue."""
    from PIL import Image

    picture = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("HSV")
    hsv = np.asarray(picture)[200:, : picture.width // 2]  # below what the browser says about its graphics
    return np.bincount(hsv[..., 0][(hsv[..., 1] > 120) & (hsv[..., 2] > 60)], minlength=256)


def near(counts, hue):
    return counts[hue - 8 : hue + 9].sum()


def errors(browser):
    return [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.fixture
def page():
    from optdyn.viz._page import Page
    from optdyn.viz._serve import close_server, open_server

    server = open_server(0)
    scenario = FakeScenario()
    page = Page(server, scenario, fake_plan(scenario), scenario.times, "**successful**")
    ended = threading.Event()

    def run():
        before = time.perf_counter()
        while not ended.wait(1 / 30):
            now = time.perf_counter()
            page.tick(now - before)
            before = now

    clock = threading.Thread(target=run)
    clock.start()
    yield page
    ended.set()
    clock.join()
    close_server(server)


def test_the_page_loads_shows_plays_and_scrubs(browser, page):
    browser.get(f"http://127.0.0.1:{page._server.get_port()}")
    play = wait_for(lambda: button(browser, "Play"), "the button")
    assert len(page._server.get_clients()) == 1

    # The server's scene has the bodies, and the canvas of the page shows them.
    for name in ("polygon", "upper link", "lower link", "disc"):
        assert page._server.scene.get_handle_by_name(f"/bodies/{name}").visible
    assert len(browser.find_elements("css selector", "canvas")) >= 1 + 3  # the scene and three charts
    assert len(browser.find_elements("css selector", ".uplot")) == 3
    wait_for(lambda: near(hues(browser), BLUE) > 300 and near(hues(browser), ORANGE) > 300, "the links")
    assert shown_time(browser) == 0
    before = browser.get_screenshot_as_png()

    play.click()
    wait_for(lambda: shown_time(browser) > 0.5, "half a second of motion")
    wait_for(lambda: button(browser, "Pause"), "the other label").click()
    wait_for(lambda: not page.playing, "the pause")
    assert page.now > 0.5
    assert browser.get_screenshot_as_png() != before
    assert page._server.scene.get_handle_by_name("/forces/weight").visible

    wait_for(lambda: abs(shown_time(browser) - page.now) < 0.06, "the time of the pause")
    here = page.now
    thumb = browser.find_element("css selector", "[role=slider]")
    for _ in range(4):
        thumb.send_keys("\ue012")  # the left arrow
    wait_for(lambda: page.now < here - 0.15, "the earlier state")
    assert errors(browser) == []


def test_a_solved_scenario_by_the_command_line(browser, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    path = tmp_path / "result.json"
    command = [sys.executable, "-m", "optdyn"]
    subprocess.run(
        [*command, "solve", "sliding_block", "-q", "--json", str(path)], check=True, env=environment
    )
    assert np.shape(json.loads(path.read_text())["outputs"]["friction_impulse"]) == (40,)
    view = [*command, "view", str(path), "--no-open", "--port", "0"]
    process = subprocess.Popen(
        view, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        browser.get(process.stdout.readline().split()[5])
        wait_for(lambda: button(browser, "Play"), "the button").click()
        wait_for(lambda: near(hues(browser), BLUE) > 300, "the block")
        wait_for(lambda: 0.3 < shown_time(browser) < 2, "a third of a second of motion")
        process.send_signal(signal.SIGINT)
        output, complaints = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, output, complaints) == (0, "", "")
