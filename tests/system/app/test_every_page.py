"""Every page in a real Chromium: nothing on it jumps while it comes."""

import pytest

from experiments.experiment import Experiment
from experiments.runs import store
from tests import fabricated
from tests.system.app import test_journey

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect
pytestmark = test_journey.pytestmark
address, window = test_journey.address, test_journey.window

PAGES = (
    "/",
    "/?workers=2",
    "/schedules",
    "/textbook",
    "/textbook?chapter=stragglers",
    "/textbook?chapter=gossip",
    "/survey",
    "/kernels",
    "/own",
    "/network",
    "/instructors",
)
RUNS = Experiment(), Experiment(workers=2)  # those of the first two pages
SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => shifts.push(...list.getEntries().filter((one) => !one.hadRecentInput).map((one) => [
  one.value, ...one.sources.map(({ node, currentRect: box }) => `${node?.className} to ${box.x}, ${box.y}`),
]))).observe({ type: "layout-shift", buffered: true });
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder in which the pages find their runs done."""
    folder = tmp_path_factory.mktemp("every-page")
    for experiment in RUNS:
        store.save(fabricated.run(experiment), folder)
    return folder


def whole(page):
    """Wait until the page and all its parts are there, and two frames more."""
    expect(page.locator("html:not(.opening) [data-testid=stMain] [data-testid=stElementContainer]")).not_to_have_count(
        0
    )
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.locator("[data-testid=stSkeleton], [data-testid=stProgress]")).to_have_count(0)
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_nothing_on_a_page_jumps_while_it_comes(window, address):
    page = window.new_page()
    page.set_viewport_size({"width": 1280, "height": 800})
    page.add_init_script(SHIFTS)
    for path in PAGES:
        page.goto(address + path)
        whole(page)
        shifts = page.evaluate("shifts")
        assert sum(value for value, *_ in shifts) < 0.1, (path, shifts)
    page.close()


def test_the_pages_own_style_wins_over_streamlits(window, address):
    page = window.new_page()
    page.goto(address + PAGES[0])
    whole(page)
    expect(page.locator(".st-key-phone-bar")).to_be_hidden()
    assert page.locator(".stMainBlockContainer").evaluate("e => getComputedStyle(e).maxWidth") == "1560px"
    page.close()
