"""The survey's page in a real Chromium: read, filtered, sorted and downloaded."""

import re

import pytest

from lessons import survey
from tests.chromium import NEEDED
from tests.system.app.test_journey import expect, served

pytestmark = [*NEEDED, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with served(tmp_path_factory.mktemp("runs")) as address:
        yield f"{address}/survey"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_reader_filters_the_table_and_takes_it_along(browser, address, scheme):
    page = browser.new_page(color_scheme=scheme, viewport={"width": 1366, "height": 768}, accept_downloads=True)
    page.goto(address)
    expect(page.get_by_text(f"{len(survey.table(survey.MODELS['8 layers of 64']))} of ")).to_be_visible()
    page.get_by_role("textbox", name="Search").fill("gpipe")
    page.get_by_role("textbox", name="Search").press("Enter")
    expect(page.get_by_text(re.compile(r"^1 of \d+ methods"))).to_be_visible()
    method = page.locator(".st-key-survey-method")
    expect(method.get_by_text("2 (S-1) B a")).to_be_visible()
    expect(method.get_by_role("link", name="bubble", exact=True)).to_have_attribute("href", re.compile("pipelines"))
    with page.expect_download() as download:
        page.get_by_role("button", name="Whole table").click()
    lines = download.value.path().read_text("utf-8").splitlines()
    assert len(lines) == len(survey.table(survey.MODELS["8 layers of 64"])) + 1 and "communication value" in lines[0]
    page.get_by_role("tab", name="Section by section").click()
    expect(page.get_by_text("A Survey on Parallel Training Algorithms")).to_be_visible()
    expect(page.get_by_role("cell", name="averaging.easgd").first).to_be_visible()
    page.close()


def test_the_page_fits_a_phone_and_a_link_says_which_cluster(browser, address):
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"{address}?survey_search=easgd&survey_workers=16")
    expect(page.get_by_text(re.compile(r"^1 of \d+ methods"))).to_be_visible()
    expect(page.locator(".st-key-survey-method").get_by_text("2 N d/H")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()
