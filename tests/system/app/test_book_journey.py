"""The frame of the book in a real Chromium: contents, the ways from chapter to chapter, and terms on hover."""

import re

import pytest

import lessons
from lessons import references
from tests.chromium import JOURNEY
from tests.system.app import test_journey

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect
pytestmark = JOURNEY
runs, address, window, tab = test_journey.runs, test_journey.address, test_journey.window, test_journey.tab
READING, SIDE, MAIN = ".st-key-reader", "[data-testid=stSidebar]", "[data-testid=stMain]"


def test_a_click_in_the_contents_goes_to_every_section_that_is_open_and_no_other_is_a_link(tab, address):
    page = tab(f"{address}/textbook?chapter=stragglers")
    side = page.locator(SIDE)
    expect(side.get_by_text("Locked sections open as you make predictions.")).to_be_visible()
    expect(side.get_by_role("link", name="How many?")).to_have_count(0)
    page.get_by_text("Show everything").click()
    expect(side.get_by_role("link", name="What to keep")).to_be_visible()
    heads = [link.inner_text() for link in side.locator("a[href^='#']").all()]
    *sections, last = page.locator(READING).get_by_role("heading", level=2).all_inner_texts()
    assert (heads, last) == (sections, "More figures")  # which the page adds to the chapter's text
    for head in reversed(heads):
        side.get_by_role("link", name=head, exact=True).click()
        expect(page.locator(READING).get_by_role("heading", name=head, level=2)).to_be_in_viewport()


def test_a_reader_goes_from_the_first_page_through_chapters_and_back(tab, address):
    page, overlap = tab(f"{address}/textbook?everything=true"), lessons.chapter("overlap")
    expect(page.get_by_role("heading", name="Contents", level=1)).to_be_visible()
    entry(page, "overlap").click()
    expect(page.get_by_role("heading", name="Overlap: hide the all-reduce", level=1)).to_be_visible()
    ways = page.locator(".st-key-ways")
    ways.get_by_role("link", name=re.compile(f"{overlap.number + 1}. The distributed update")).click()
    expect(page.get_by_role("heading", name="The distributed update", level=1)).to_be_visible()
    ways.get_by_role("link", name=re.compile(f"{overlap.number}. Overlap")).click()
    expect(page.get_by_role("heading", name="Overlap", level=1)).to_be_visible()
    assert "chapter=overlap" in page.url
    page.locator(SIDE).get_by_role("link", name="Second idea: buckets").click()
    expect(page.get_by_role("heading", name="Second idea: buckets")).to_be_in_viewport()


def entry(page, chapter):
    """The contents' entry of a chapter, which may be the one to go on with, too."""
    return page.locator(f".st-key-entry-{chapter}").get_by_role("link")


def at_the_top_of(page, title):
    """Wait until the page is at the top of this chapter, and stays there."""
    expect(page.get_by_role("heading", name=title, level=1)).to_be_in_viewport()
    page.wait_for_timeout(1000)  # a page that is still drawn could move
    assert page.locator(MAIN).evaluate("main => main.scrollTop") == 0


def test_a_chapter_begins_at_its_top_from_the_contents_the_chapter_before_and_by_back(tab, address):
    page, place = tab(f"{address}/textbook?everything=true"), lessons.chapter("sandblaster").number
    expect(entry(page, "sandblaster")).to_be_visible()
    assert page.locator(MAIN).evaluate("main => { main.scrollTo(0, 200); return main.scrollTop; }") == 200
    entry(page, "sandblaster").click()
    at_the_top_of(page, "Sandblaster")
    page.locator(".st-key-ways").get_by_role("link", name=f"{place + 1}. Hogwild").click()
    at_the_top_of(page, "Hogwild")
    page.locator(".st-key-ways").scroll_into_view_if_needed()
    page.go_back()
    at_the_top_of(page, "Sandblaster")
    page.go_back()
    expect(page.get_by_role("heading", name="Contents", level=1)).to_be_visible()


def test_back_leads_from_a_chapter_to_the_contents_for_a_reader_who_came_from_another_page(tab, address):
    page = tab(f"{address}/kernels")
    page.get_by_role("link", name="Textbook").click()
    entry(page, "sandblaster").click()
    expect(page.get_by_role("heading", name="Sandblaster", level=1)).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Contents", level=1)).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_term_is_underlined_with_dots_and_says_what_it_means_on_hover_and_by_keyboard(tab, address, scheme):
    page = tab(f"{address}/textbook?chapter=stragglers", scheme)
    term = page.locator(f"{READING} abbr.term").first
    expect(term).to_have_text("mini-batch")
    expect(term).to_have_attribute("title", re.compile("samples whose mean gradient"))
    term.hover()
    assert term.evaluate("e => getComputedStyle(e).textDecorationStyle") == "dotted"
    assert term.evaluate("e => getComputedStyle(e).cursor") == "help"
    term.focus()
    assert "samples whose mean gradient" in term.evaluate("e => getComputedStyle(e, '::after').content")
    assert page.locator(f"{READING} :is(h1, h2, h3, code, a, .katex) abbr").count() == 0


def test_who_opens_a_run_of_a_figure_or_a_timeline_is_led_back_to_it(tab, window, address):
    page = tab(f"{address}/textbook?chapter=stragglers&everything=true")
    name = "figure-stragglers-waiting_for_fewer"
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")  # or its box shuts
    page.locator("[class*='st-key-figure-text-stragglers-waiting_for_fewer']").get_by_role(
        "button", name="Workbench"
    ).click()
    page.get_by_role("button", name="Open it").click()
    back = page.get_by_role("button", name="Back to the chapter: ")
    back.click()
    expect(page.locator(f"#{name}")).to_be_in_viewport()
    assert "algorithm=" not in page.url and "from=" not in page.url and "chapter=stragglers" in page.url
    box = page.locator("[class*='st-key-timeline-text-']").first
    place = re.search(r"st-key-(timeline-text-\w+)", box.get_attribute("class"))[1]
    with window.expect_page() as opened:
        box.get_by_role("link", name="In the workbench").click()
    other = opened.value
    expect(other.locator(".st-key-timeline")).to_be_visible()
    other.get_by_role("button", name="Back to the chapter: ").click()
    expect(other.locator(f".st-key-{place}")).to_be_in_viewport()
    other.close()


def test_a_fold_opens_by_a_click_and_by_a_link_into_it_and_can_be_used_then(tab, address):
    name, place = "sgd.rare_features", "textbook?chapter=sgd&everything=true"
    page = tab(f"{address}/{place}")
    figure = page.locator(f"#{references.figure_anchor(name)}")
    box = page.locator("[class*='st-key-fold-']").filter(has=figure)
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(figure).to_be_hidden()
    box.locator("summary").click()
    expect(figure).to_be_visible()
    page.close()
    page = tab(f"{address}/{place}#{references.figure_anchor(name)}")
    figure = page.locator(f"#{references.figure_anchor(name)}")
    expect(figure).to_be_in_viewport()
    box = page.locator("[class*='st-key-fold-']").filter(has=figure)
    box.locator("summary").click()
    expect(figure).to_be_hidden()
    page.evaluate("location.hash = ''")
    page.evaluate(f"location.hash = '{references.figure_anchor(name)}'")  # which the browser opens by itself
    expect(figure).to_be_in_viewport()
    box.get_by_role("button", name="Rows").click()
    expect(page.get_by_test_id("stPopoverBody")).to_be_visible()
