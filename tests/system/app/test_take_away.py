"""What is taken away from a page, in a real Chromium: a picture, the report, the link to the view, an embedded run."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from experiments.specification.experiment import Experiment
from tests.chromium import JOURNEY
from tests.system.app.test_journey import (  # noqa: F401  (address and runs are fixtures)
    address,
    expect,
    runs,
)

pytestmark = JOURNEY

PINNED = Experiment(algorithm="easgd", workers=2, steps=40)
SHOWN = "workers=2&steps=40&axis=seconds&log=true"


def test_what_a_reader_takes_away_is_what_was_on_the_page(browser, address, tmp_path):  # noqa: F811
    def opened(link: str, **how):
        size = {"width": 1400, "height": 900}
        page = browser.new_context(viewport=size, reduced_motion="reduce", **how).new_page()
        page.goto(link)
        return page

    def same_view(page) -> None:
        expect(page.get_by_role("radio", name="time")).to_be_checked()
        expect(page.get_by_role("heading", name="Comparison")).to_be_visible()
        expect(page.get_by_role("button", name="Unpin: EASGD")).to_be_visible()

    page = opened(f"{address}/?{SHOWN}&pin=" + PINNED.query().replace("&", "%26").replace("=", "%3D"))
    same_view(page)
    # a picture
    figure = page.locator("[class*=st-key-loss]").first
    figure.locator(".stage").hover()
    figure.get_by_role("button", name="Save", exact=True).click()
    with page.expect_download() as taking:
        figure.get_by_role("menuitem", name="SVG").click()
    assert taking.value.suggested_filename == "easgd-and-sync-sgd-digits-2-workers-loss.svg"  # as in the legend
    words = [one.text for one in ElementTree.parse(taking.value.path()).iter("{http://www.w3.org/2000/svg}text")]
    assert "time, ms" in words and "EASGD" in words
    # the timeline, and the report
    page.get_by_role("button", name="Download").click()
    with page.expect_download() as taking:
        page.get_by_role("button", name="Timeline (SVG)").click()
    assert taking.value.suggested_filename == "sync-sgd-digits-2-workers-timeline.svg"
    words = [one.text for one in ElementTree.parse(taking.value.path()).iter("{http://www.w3.org/2000/svg}text")]
    assert {"worker 0", "worker 1"} <= set(words)
    with page.expect_download() as taking:
        page.get_by_role("button", name="Report (HTML)").click()
    assert taking.value.suggested_filename == "sync-sgd-digits-2-workers-report.html"
    taking.value.save_as(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 1_000_000
    report = opened((tmp_path / "report.html").as_uri(), offline=True)
    expect(report.get_by_role("heading", name="Comparison")).to_be_visible()
    expect(report.locator("#canvas-timeline-1 canvas").first).to_be_attached()
    page.keyboard.press("Escape")
    # the link, in a browser that was never here
    lanes = page.locator(".st-key-timeline .stage")
    for key in ("Home", "+", "+", "ArrowRight"):
        lanes.press(key)
    shows = """() => { const { from, to } = [...lockstepTimelines].find((one) => one.clock === lockstepClock);
      return [from, to, ...[...lockstepCurves].filter((one) => one.window).flatMap((one) => one.window.x)]; }"""
    window = page.evaluate(shows)
    assert len(window) > 2  # the curves follow
    page.get_by_role("button", name="Share").click()
    expect(page.locator("code", has_text=re.compile("^http.*&view=")).first).to_be_visible()
    link = page.locator("code", has_text=re.compile("^http")).first.inner_text()
    page.keyboard.press("Escape")
    again = opened(link)
    same_view(again)
    again.wait_for_function("() => [...lockstepCurves].some((one) => one.window)")
    assert again.evaluate(shows) == pytest.approx(window, rel=1e-4)
    # the size of a presentation
    page.locator("h1").click()
    page.keyboard.press("p")
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    assert "size=large" in page.url
    way_out, header = (
        one.bounding_box()
        for one in (page.get_by_role("button", name="Leave the large size"), page.get_by_test_id("stHeader"))
    )
    assert way_out["y"] + way_out["height"] < header["height"]  # where it covers nothing
    page.keyboard.press("p")
    expect(page.get_by_test_id("stSidebar")).to_be_visible()
    # a picture in another page
    race = opened(f"{address}/?embed=race&workers=2&steps=20&pin=workers%3D2%26steps%3D40")
    race.locator(".timeline canvas").nth(1).wait_for(state="attached")
    race.wait_for_function("() => lockstepTimelines.size === 2")
    race.locator('[data-do="in"]').first.click()
    windows = race.evaluate("[...lockstepTimelines].map((one) => [one.from, one.to])")
    assert windows[0] == windows[1] and windows[0][0] > 0
    race.evaluate("(([one]) => one.window(one.end * 1.2, one.end * 1.5))([...lockstepTimelines])")
    expect(race.locator(".status").first).to_contain_text("nothing: this run ends at")
    alone = opened(f"{address}/?embed=timeline&{SHOWN}")
    expect(alone.locator("canvas").first).to_be_attached()
    expect(alone.get_by_role("link", name="Lockstep")).to_be_visible()
    assert alone.get_by_test_id("stSidebar").count() == alone.get_by_test_id("stApp").count() == 0
