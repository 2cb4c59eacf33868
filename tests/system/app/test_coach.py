"""The tour on a page of its own, without a server: when it comes, and when it stays away."""

import pytest

from app.browser import scripts
from app.guide import coach
from tests.chromium import NEEDED

expect = pytest.importorskip("playwright.sync_api").expect

LANES = """() => {
  const lanes = document.createElement("div");
  lanes.className = "st-key-timeline";
  lanes.innerHTML = '<div class="stage" style="width: 600px; height: 200px"></div>';
  document.body.append(lanes);
}"""

MOVING = """() => {
  const { style } = document.querySelector(".stage");
  let moves = 0;
  style.position = "relative";
  const timer = setInterval(() => {
    style.top = `${++moves}px`;
    if (moves === 100) clearInterval(timer);
  }, 100);
}"""

pytestmark = NEEDED


def mounted(page, asked: int = 0, run: str = "") -> None:
    """Have the tour on the page, or have it drawn again."""
    if not page.evaluate("'coached' in window"):
        source = (scripts.HERE / "coach.js").read_text("utf-8")
        source = source.replace("export default function", "coached = function")
        page.add_script_tag(content=f"var coached; {source}")
    steps = [step._asdict() for step in coach.STEPS]
    data = {"steps": steps, "first": True, "asked": asked, "lanes": 4, "run": run}
    page.evaluate("data => { coached({ data, parentElement: document.body }) }", data)


def toured(browser, acts: bool, asked: int = 0) -> bool:
    """Whether the tour is there once the timeline is, which comes late; before that the reader may have acted."""
    page = browser.new_page()
    page.clock.install()
    page.set_content("<button>a setting</button>")
    mounted(page, asked)
    if acts:
        page.get_by_role("button", name="a setting").click()
    mounted(page, asked)
    page.evaluate(LANES)
    page.clock.run_for(1000)
    there = page.locator(".coach").count() == 1
    page.close()
    return there


def touring(browser, asked: int = 0):
    """A page with a setting, a box to type into, and the tour."""
    page = browser.new_page()
    page.set_content(
        """<div data-testid="stApp"><button>a setting</button><input aria-label="a box"><p>words</p>
        <div class="st-key-tour"><button>Show me around</button></div></div>"""
    )
    page.evaluate(LANES)
    mounted(page, asked)
    expect(page.get_by_role("region", name="A short tour")).to_be_visible()
    return page


def covered(page, *what: str) -> list[str]:
    """Return which of these the bar covers."""
    boxes = [page.locator(one).bounding_box() for one in (".coach", *what)]
    ours, *others = ((box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]) for box in boxes)
    apart = [ours[0] >= x1 or ours[2] <= x0 or ours[1] >= y1 or ours[3] <= y0 for x0, y0, x1, y1 in others]
    return [one for one, clear in zip(what, apart, strict=True) if not clear]


def test_a_tour_that_nobody_asked_for_stays_away_once_the_reader_has_acted(browser):
    assert toured(browser, acts=False)
    assert not toured(browser, acts=True)


def test_a_tour_that_was_asked_for_comes_whatever_the_reader_did_meanwhile(browser):
    assert toured(browser, acts=True, asked=1)


def test_a_tour_that_nobody_asked_for_waits_until_its_part_has_stopped_moving(browser):
    page = browser.new_page()
    page.clock.install()
    page.set_content("")
    page.evaluate(LANES)
    page.evaluate(MOVING)
    mounted(page)
    page.clock.run_for(5000)
    assert page.locator(".coach").count() == 0
    page.clock.run_for(10_000)
    assert page.locator(".coach").count() == 1
    page.close()


@pytest.mark.slow
def test_a_tour_on_a_phone_stands_at_the_foot_covers_no_legend_and_is_hidden_with_its_part(browser):
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.set_content(
        """<div style="height: 300px"></div><div class="st-key-timeline"><div class="legend" style="height: 30px"></div>
        <div class="stage" style="height: 160px"></div></div><div style="height: 3000px"></div>"""
    )
    mounted(page)
    tour = page.get_by_role("region", name="A short tour")
    expect(tour).to_be_visible()
    assert covered(page, ".legend", ".stage") == []
    foot = "() => innerHeight - document.querySelector('.coach').getBoundingClientRect().bottom"
    assert page.evaluate(foot) == pytest.approx(0, abs=1)
    page.mouse.wheel(0, 200)
    page.wait_for_function("() => scrollY === 200")
    assert page.evaluate(foot) == pytest.approx(0, abs=1)
    page.mouse.wheel(0, 1800)
    expect(tour).to_be_hidden()
    page.mouse.wheel(0, -2000)
    expect(tour).to_be_visible()
    page.close()


def test_every_step_on_a_phone_scrolls_what_it_points_at_into_the_room_above_the_bar(browser):
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.set_content(
        """<style>body { margin: 0; height: 100vh } main { height: 100%; overflow: auto }</style>
        <main data-testid="stMain"><div style="height: 600px"></div><div class="st-key-timeline">
        <div class="stage" style="height: 200px; margin: 0 15px"></div></div><div style="height: 44px"></div></main>"""
    )
    mounted(page)
    for step in coach.STEPS[:4]:
        expect(page.get_by_role("region", name="A short tour")).to_contain_text(step.title)
        expect(page.locator(".coach-ring")).to_be_in_viewport(ratio=1)
        assert covered(page, ".coach-ring") == [], step
        page.get_by_role("button", name="Next").click()
    page.close()


@pytest.mark.slow
def test_a_tour_that_is_asked_for_has_in_view_what_it_points_at(browser):
    page = browser.new_page(viewport={"width": 800, "height": 400})
    page.set_content(
        '<div style="height: 1000px"></div><div class="st-key-timeline"><div class="stage" style="height: 160px">'
    )
    mounted(page, asked=1)
    expect(page.get_by_role("region", name="A short tour")).to_be_visible()
    expect(page.locator(".stage")).to_be_in_viewport()
    page.close()


@pytest.mark.slow
def test_the_last_step_covers_none_of_the_buttons_beside_the_one_that_it_is_about(browser):
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_content(
        """<style>.stSidebar { position: fixed; inset: 0 1060px 0 0 } .st-key-run { padding: 80px 0 0 30px }
        .st-key-timeline { margin: 300px 0 0 360px }</style><div class="stSidebar"><div class="st-key-run">
        <button style="width: 160px">Run</button><button id="stop">Stop</button><button id="reset">Reset</button></div>
        <label id="first" style="display: block; height: 400px">Algorithm</label></div>
        <div class="st-key-timeline"><div class="stage" style="height: 160px"></div></div>"""
    )
    mounted(page)
    for _ in range(len(coach.STEPS) - 1):
        page.get_by_role("button", name="Next").click()
    expect(page.locator(".coach")).to_contain_text("Change something")
    page.wait_for_function("() => document.querySelector('.coach-ring').offsetWidth < 200")
    assert covered(page, "#stop", "#reset", "#first", ".stage") == []
    page.close()


def test_the_last_step_leaves_the_title_and_the_words_below_it_free(browser):
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_content(
        """<style>body { margin: 0 } .stSidebar { position: fixed; inset: 0 1100px 0 0 }
        .st-key-run { padding: 80px 0 0 30px } .st-key-welcome { margin: 75px 30px 0 375px }
        .machines { position: absolute; left: 1120px; top: 300px; width: 290px; height: 340px }</style>
        <div class="stSidebar"><div class="st-key-run"><button style="width: 160px">Run</button></div></div>
        <div class="st-key-welcome"><h1>Train one model on many machines, and see what happens</h1>
        <div class="st-key-welcome-words">Here four simulated machines learn to read digits, together.</div>
        <div class="st-key-timeline" style="margin-top: 60px"><div class="stage" style="width: 730px; height: 160px">
        </div><div class="machines"></div></div></div>"""
    )
    mounted(page)
    for _ in range(len(coach.STEPS) - 1):
        page.get_by_role("button", name="Next").click()
    expect(page.locator(".coach")).to_contain_text("Change something")
    page.wait_for_function("() => document.querySelector('.coach-ring').offsetWidth < 200")
    assert covered(page, "h1", ".st-key-welcome-words", ".st-key-run button", ".stage") == []
    page.close()


def test_no_tour_stands_over_a_dialog_such_as_one_that_says_that_there_is_no_such_page(browser):
    page = browser.new_page()
    page.clock.install()
    page.set_content('<div role="dialog">Page not found</div>')
    page.evaluate(LANES)
    mounted(page)
    page.clock.run_for(1000)
    assert page.locator(".coach").count() == 0
    page.close()


def test_the_tour_is_the_first_stop_of_the_tab_key(browser):
    page = touring(browser)
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Leave")).to_be_focused()
    page.close()


def test_escape_ends_the_tour_wherever_the_focus_is(browser):
    page = touring(browser)
    page.get_by_label("a box").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name="A short tour")).to_have_count(0)
    page.close()


@pytest.mark.slow
def test_a_tour_that_was_asked_for_takes_the_focus_and_gives_it_back(browser):
    page = touring(browser, asked=1)
    expect(page.get_by_role("button", name="Next")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Show me around")).to_be_focused()
    page.close()


def test_a_reader_who_uses_the_page_ends_the_tour_and_one_who_clicks_on_words_does_not(browser):
    page = touring(browser)
    tour = page.get_by_role("region", name="A short tour")
    page.get_by_text("words").click()
    page.get_by_role("button", name="Next").click()
    expect(tour).to_contain_text(coach.STEPS[1].title)
    page.get_by_role("button", name="a setting").click()
    expect(tour).to_have_count(0)
    page.close()


@pytest.mark.slow
def test_another_run_ends_the_tour_and_the_same_one_drawn_again_does_not(browser):
    page = touring(browser)
    tour = page.get_by_role("region", name="A short tour")
    mounted(page)
    expect(tour).to_be_visible()
    mounted(page, run="another")
    expect(tour).to_have_count(0)
    page.close()


@pytest.mark.slow
def test_the_tour_covers_neither_the_lanes_nor_the_machines_nor_the_words_that_explain_them(browser):
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_content(
        """<div class="st-key-welcome-words" style="height: 60px; margin-top: 120px">words</div>
        <div class="st-key-timeline"><div class="legend" style="width: 600px; height: 60px">
        <span style="margin-left: 400px">wait</span></div><div class="stage" style="width: 1000px; height: 160px"></div>
        <div class="machines" style="position: absolute; left: 1020px; top: 200px; width: 360px; height: 240px">
        </div></div><button style="position: absolute; top: 530px; width: 700px; height: 60px">a card</button>"""
    )
    mounted(page)
    for step in coach.STEPS[:4]:
        expect(page.locator(".coach")).to_contain_text(step.title)
        page.wait_for_function("() => document.querySelector('.coach').offsetTop > 0")
        assert covered(page, ".stage", ".machines", ".legend", ".st-key-welcome-words") == [], step
        page.get_by_role("button", name="Next").click()
    page.close()


def test_the_tour_leaves_in_view_what_the_run_has_learned_if_the_window_has_room(browser):
    page = browser.new_page(viewport={"width": 1920, "height": 1080})
    page.set_content(
        """<div class="st-key-timeline" style="margin-top: 300px"><div class="stage" style="height: 160px"></div>
        <div class="learned" style="height: 150px"></div></div>
        <div class="st-key-cards" style="height: 80px"></div>"""
    )
    mounted(page)
    expect(page.locator(".coach")).to_contain_text(coach.STEPS[0].title)
    page.wait_for_function("() => document.querySelector('.coach').offsetTop > 0")
    assert covered(page, ".stage", ".learned", ".st-key-cards") == []
    page.close()
