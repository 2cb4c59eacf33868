"""In a real Chromium: a student sees neither hub nor results; an instructor with the password sees both."""

import pytest

from lessons import instructor
from tests.chromium import JOURNEY
from tests.system.app import test_journey as journey

pytestmark = JOURNEY
runs, window, tab = journey.runs, journey.window, journey.tab


@pytest.mark.parametrize("setting", ["", "sésame"])
def test_the_pages_for_instructors_open_to_nobody_without_the_password(runs, tab, monkeypatch, setting):
    monkeypatch.setenv(instructor.SETTING, setting)
    with journey.served(runs) as address:
        page = tab(f"{address}/textbook?chapter=averaging&part=lab")
        journey.expect(page.get_by_text("Meet rarely")).to_be_visible()
        journey.expect(page.get_by_role("link", name="For instructors")).to_have_count(0)
        assert page.get_by_text("What goes wrong").count() == page.get_by_text("Means over seeds").count() == 0
        page.goto(f"{address}/instructors")
        if not setting:
            journey.expect(page.get_by_text("pages for instructors are off")).to_be_visible()
            journey.expect(page.get_by_role("textbox", name="Password")).to_have_count(0)
            return
        page.get_by_role("textbox", name="Password").fill("sesame")
        page.get_by_role("button", name="Open", exact=True).click()
        journey.expect(page.get_by_text("That is not the password")).to_be_visible()
        journey.expect(page.get_by_role("heading", name="Rubric")).to_have_count(0)
        page.get_by_role("textbox", name="Password").fill(setting)
        page.get_by_role("button", name="Open", exact=True).click()
        journey.expect(page.get_by_role("heading", name="Rubric")).to_be_visible()
        page.locator(".st-key-lab-averaging").get_by_role("link", name="Averaging models").click()
        journey.expect(page.get_by_role("heading", name="What goes wrong")).to_be_visible()
