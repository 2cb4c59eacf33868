"""The tour on a page of its own, without a server: when it comes, and when it stays away."""

from pathlib import Path

import pytest

from app.views import coach
from tests.chromium import NEEDED

LANES = """() => {
  const lanes = document.createElement("div");
  lanes.className = "st-key-timeline";
  lanes.innerHTML = '<div class="stage" style="width: 600px; height: 200px"></div>';
  document.body.append(lanes);
}"""

pytestmark = [*NEEDED, pytest.mark.timeout(300)]


def toured(browser, acts: bool, asked: int = 0) -> bool:
    """Whether the tour is there once the timeline is, which comes late; before that the reader may have acted."""
    page = browser.new_page()
    page.clock.install()
    page.set_content("<button>a setting</button>")
    source = Path(coach.__file__).with_suffix(".js").read_text("utf-8")
    source = source.replace("export default function", "coached = function")
    page.add_script_tag(content=f"var coached; {source}")
    steps = [step._asdict() for step in coach.STEPS]
    data = {"steps": steps, "first": True, "asked": asked, "lanes": 4}
    page.evaluate("data => { coached({ data, parentElement: document.body }) }", data)
    if acts:
        page.get_by_role("button", name="a setting").click()
    page.evaluate("data => { coached({ data, parentElement: document.body }) }", data)  # the page is drawn again
    page.evaluate(LANES)
    page.clock.run_for(1000)
    there = page.locator(".coach").count() == 1
    page.close()
    return there


def test_a_tour_that_nobody_asked_for_stays_away_once_the_reader_has_acted(browser):
    assert toured(browser, acts=False)
    assert not toured(browser, acts=True)


def test_a_tour_that_was_asked_for_comes_whatever_the_reader_did_meanwhile(browser):
    assert toured(browser, acts=True, asked=1)
