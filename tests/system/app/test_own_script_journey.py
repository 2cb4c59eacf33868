"""A script in a real Chromium: run, slowed down, its waits explained, and read on a phone."""

import re

from experiments.jobs import script
from tests import wcag
from tests.chromium import JOURNEY
from tests.system.app.test_journey import expect, served, uncovered

pytestmark = JOURNEY
FITS = "width => document.querySelector('[data-testid=stMain]').scrollWidth <= width"


def test_a_reader_runs_an_example_slows_a_rank_and_asks_what_a_wait_was_for(browser, tmp_path, monkeypatch):
    monkeypatch.setenv(script.SETTING, "1")
    with served(tmp_path) as address:
        page = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
        page.goto(f"{address}/own")
        uncovered(page)
        run = page.locator(".st-key-run-script button")
        run.click()
        expect(page.get_by_role("heading", name="ddp.py on 4 ranks, 10GbE")).to_be_visible()
        slow = page.locator(".st-key-script_slow input")
        slow.fill("2")
        slow.press("Enter")
        expect(page.locator(".st-key-script_factor input")).to_be_enabled()
        run.click()
        expect(page.get_by_text(re.compile("rank 2 makes the others wait .* in all_reduce at line"))).to_be_visible()
        expect(page.get_by_text("Rank 2 four times slower")).to_be_visible()

        page.locator(".timeline .stage").first.press("w")
        expect(page.locator(".timeline")).to_contain_text(re.compile("waits .* for rank 2"))
        page.get_by_role("tab", name="Who waits for whom").click()
        expect(page.get_by_test_id("stDataFrame")).to_be_visible()
        page.get_by_role("button", name="Download", exact=True).click()
        with page.expect_download() as download:
            page.get_by_role("button", name="Timeline (Perfetto)").click()
        assert '"traceEvents"' in download.value.path().read_text("utf-8")

        page.keyboard.press("Escape")
        assert wcag.in_both_schemes(page) == []
        link = page.url
        page.close()
        phone = browser.new_page(color_scheme="dark", viewport={"width": 390, "height": 844}, reduced_motion="reduce")
        phone.goto(link)
        uncovered(phone)
        expect(phone.get_by_text(re.compile("rank 2 makes the others wait"))).to_be_visible()
        expect(phone.locator(".timeline canvas").first).to_be_visible()
        for width in (390, 320):
            phone.set_viewport_size({"width": width, "height": 844})
            phone.wait_for_function(FITS, arg=width)
        phone.close()
