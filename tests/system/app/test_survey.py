"""The survey's page in a real Chromium: read, filtered, sorted and downloaded."""

import re

import pytest

from app import survey as view
from lessons import survey
from tests.chromium import JOURNEY
from tests.system.app.test_journey import expect, served

pytestmark = JOURNEY


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


@pytest.mark.parametrize("shown", ["numbers", "formulas", "waiting"])
def test_the_table_has_room_for_all_its_columns(browser, address, shown):
    page = browser.new_page(viewport={"width": 1366, "height": 768})
    page.goto(f"{address}?survey_shown={shown}")
    table = page.locator(".dvn-scroller")
    expect(table).to_be_visible()
    assert table.evaluate("one => one.scrollWidth <= one.clientWidth")
    expect(
        page.get_by_text("samples of a step", exact=False).first
    ).to_be_visible()  # letters are explained in the open
    page.close()


TEXTS = """(table, titles) => {
  const style = getComputedStyle(table), pen = document.createElement("canvas").getContext("2d");
  pen.font = `${style.getPropertyValue("--gdg-header-font-style")} ${style.getPropertyValue("--gdg-font-family")}`;
  const beside = 2 * parseFloat(style.getPropertyValue("--gdg-cell-horizontal-padding"));
  return Object.entries(titles).map(([name, title]) => [name, pen.measureText(title).width + beside]);
}"""


def test_every_column_has_room_for_its_title(browser, address):
    page = browser.new_page(viewport={"width": 1366, "height": 768})
    page.goto(address)
    table = page.locator(".dvn-scroller")
    expect(table).to_be_visible()
    page.evaluate("document.fonts.ready")
    needed = dict(table.evaluate(TEXTS, view.TITLES))
    short = {(name, shown) for shown, widths in view.WIDTHS.items() for name in widths if widths[name] < needed[name]}
    assert needed["late"] > needed["idle"] > 20 and not short
    page.close()


def test_under_a_finger_the_table_ends_above_the_button_below_it(browser, address):
    page = browser.new_page(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.goto(address)
    table, below = page.locator(".stDataFrame"), page.get_by_role("button", name="Whole table")
    expect(table).to_be_visible()
    expect(below).to_be_visible()
    end = table.evaluate("one => one.getBoundingClientRect().bottom")
    assert end <= below.evaluate("one => one.getBoundingClientRect().top")
    page.close()


def test_a_cell_says_a_number_as_the_text_below_does_and_a_dash_where_there_is_none():
    rows = survey.table(survey.MODELS["32 layers of 4,096"])
    text = view._numbers(rows).to_string(delimiter="|")
    for row, line in zip(rows, text.splitlines()[1:], strict=True):
        _, method, *numbers = line.split("|")
        assert method == row["method"]
        shown = [survey.format_quantity(row[f"{name} value"], survey.UNITS[name]) for name in survey.QUANTITIES]
        assert numbers[: len(shown)] == shown and not {"None", "nan"} & {*numbers}
    assert "–" in text and "34.4 GB" in text


def test_where_there_is_no_formula_a_dash_stands_and_letters_that_no_formula_has_are_not_explained():
    rows = [row for row in survey.table(survey.MODELS["8 layers of 64"]) if row["method"] == "parzen"]
    (line,) = view._formulas(rows)
    assert line["staleness"] == "–" and line["communication"] == "N d/H"
    assert "`H` period" in view._symbols(rows) and "`M`" not in view._symbols(rows)
    for method in ("sandblaster", "dni", "greedy"):  # whose formulas cannot all be evaluated
        row = next(row for row in survey.table(survey.MODELS["8 layers of 64"]) if row["method"] == method)
        assert view._symbols([row]).count("`") == 2 * len(survey.symbols_of([row]))


def test_the_page_fits_a_phone_and_a_link_says_which_cluster(browser, address):
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"{address}?survey_search=easgd&survey_workers=16")
    expect(page.get_by_text(re.compile(r"^1 of \d+ methods"))).to_be_visible()
    expect(page.locator(".st-key-survey-method").get_by_text("2 N d/H")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()
