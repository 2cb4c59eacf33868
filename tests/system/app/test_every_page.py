"""Every page in a real Chromium: nothing on it jumps while it comes, and nobody is left out (docs/accessibility.md)."""

import re

import pytest

from app.guide import coach
from experiments.runs import store
from experiments.specification.experiment import Experiment
from tests import fabricated, wcag
from tests.chromium import JOURNEY
from tests.system.app import test_journey

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect
pytestmark = JOURNEY
address, window = test_journey.address, test_journey.window

PAGES = (
    "/",
    "/?workers=2&source=true&all_settings=true",
    "/schedules",
    "/textbook",
    "/textbook?chapter=stragglers",
    "/textbook?chapter=stragglers&part=quiz",
    "/textbook?chapter=stragglers&part=exercise",
    "/textbook?chapter=sandblaster&everything=true",
    "/survey",
    "/kernels",
    "/own",
    "/network",
    "/plan",
    "/instructors",
)
RUNS = Experiment(), Experiment(workers=2)  # those of the first two pages
SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => shifts.push(...list.getEntries().filter((one) => !one.hadRecentInput).map((one) => [
  one.value, ...one.sources.map(({ node, currentRect: box }) => `${node?.className} to ${box.x}, ${box.y}`),
]))).observe({ type: "layout-shift", buffered: true });
document.addEventListener("DOMContentLoaded", () => {
  window.curtained = document.querySelector(".curtain")?.checkVisibility({ visibilityProperty: true });
});
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder in which the pages find their runs done."""
    folder = tmp_path_factory.mktemp("every-page")
    for experiment in RUNS:
        store.save(fabricated.run(experiment), folder)
    return folder


def drawn(page):
    """Wait two frames."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def whole(page):
    """Wait until the page and all its parts are there, and two frames more."""
    expect(page.locator("html:not(.opening) [data-testid=stMain] [data-testid=stElementContainer]")).not_to_have_count(
        0
    )
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.locator("[data-testid=stSkeleton], [data-testid=stProgress]")).to_have_count(0)
    drawn(page)


COVERED = """() => {
  const [a, b] = [".coach", ".coach-ring"].map((one) => document.querySelector(one).getBoundingClientRect());
  return a.left < b.right - 6 && b.left + 6 < a.right && a.top < b.bottom - 6 && b.top + 6 < a.bottom;
}"""
HIDDEN = """() => {
  const main = document.querySelector("[data-testid=stMain]"), end = main.getBoundingClientRect().bottom;
  const a = document.querySelector(".coach").getBoundingClientRect();
  const deep = (one) => [one, ...(one.shadowRoot ? every(one.shadowRoot) : [])];
  const every = (root) => [...root.querySelectorAll("*")].flatMap(deep);
  const used = "button, a[href], input, label, [data-testid=stSlider], [data-baseweb=select], [tabindex='0'], canvas";
  return every(document).filter((one) => one.matches(used) && !one.closest(".coach")).filter((one) => {
    const b = one.getBoundingClientRect();
    const scrolls = main.contains(one.getRootNode().host ?? one) && !one.closest(".st-key-phone-bar");
    const bottom = scrolls ? Math.min(b.bottom, end) : b.bottom;
    return b.width && a.left < b.right && b.left < a.right && a.top < bottom && b.top < a.bottom;
  }).map((one) => one.innerText || one.className || one.dataset.testid);
}"""
RINGED = """() => {
  const [ring, bar] = [".coach-ring", ".stSidebar"].map((one) => +getComputedStyle(document.querySelector(one)).zIndex);
  return ring > bar;
}"""
CUT = """(all) => all.flatMap((one) => [one, ...one.querySelectorAll("*")])
  .filter((one) => one.innerText?.trim() && one.clientWidth && one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.innerText)"""
ZOOMED = {"width": 640, "height": 400}  # px of a page that has 1280 by 800 at 200 %
NARROW = {"width": 320, "height": 256}  # and at 400 %


@pytest.fixture(scope="module")
def one_tab(window):
    """A tab for all tests of this file: a page in a new one takes twice the processor time."""
    page = window.new_page()
    page.add_init_script(SHIFTS)
    yield page
    page.close()


@pytest.fixture
def page(one_tab):
    """This tab, with a window as it was at first."""
    one_tab.set_viewport_size({"width": 1280, "height": 900})
    one_tab.emulate_media(media="screen", color_scheme="light")
    return one_tab


@pytest.fixture(scope="module")
def visits(one_tab, address):
    """What was seen on every page: {path: {shifts, violations, unnamed, widths}}."""
    page, seen = one_tab, {}
    for path in PAGES:
        page.set_viewport_size({"width": 1280, "height": 800})
        page.goto(address + path, wait_until="commit")
        whole(page)
        assert page.evaluate("curtained")  # asked in the page, which is quicker than this test on a busy machine
        expect(page.locator(".curtain")).to_have_count(0)
        seen[path] = {"shifts": page.evaluate("shifts"), "violations": wcag.in_both_schemes(page)}
        stages = page.locator(".stage")
        seen[path]["unnamed"] = [one for one in stages.all() if len(one.get_attribute("aria-label") or "") < 20]
        seen[path]["unreached"] = [one for one in stages.all() if one.get_attribute("tabindex") != "0"]
        seen[path]["widths"] = []
        for size in (ZOOMED, NARROW):
            page.set_viewport_size(size)
            expect(page.get_by_test_id("stSidebar").filter(visible=True)).to_have_count(0)
            drawn(page)
            seen[path]["widths"].append(page.get_by_test_id("stMain").evaluate("e => e.scrollWidth"))
    return seen


def test_nothing_on_a_page_jumps_while_it_comes(visits):
    for path, seen in visits.items():
        assert sum(value for value, *_ in seen["shifts"]) < 0.1, (path, seen["shifts"])


@pytest.mark.parametrize(("width", "seed"), [(1280, 1), (390, 2)])
def test_nothing_jumps_when_a_run_ends_that_was_watched_from_its_start(page, address, width, seed):
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{address}/?workers=32&steps=500&seed={seed}")
    expect(page.locator(".st-key-result .stProgress")).to_have_count(1)
    page.evaluate("document.documentElement.classList.remove('opening')")  # as it is by itself for a longer run
    expect(page.locator(".st-key-accuracy canvas")).to_be_visible()
    drawn(page)
    above = page.locator(".st-key-figures").bounding_box()["y"]
    page.evaluate("shifts.length = 0")
    whole(page)
    expect(page.locator(".timeline .stage")).to_have_count(1)
    shifts = page.evaluate("shifts")
    assert page.locator(".st-key-figures").bounding_box()["y"] == pytest.approx(above, abs=1), shifts
    assert sum(value for value, *_ in shifts) < 0.1, shifts


def test_what_the_browser_loads_in_advance_takes_no_room_on_a_page_that_is_not_complete(window, address):
    held = []

    def hold_the_end(socket):  # all messages from one that follows the run on the page, so the page is not complete
        sent = socket.connect_to_server()
        sent.on_message(
            lambda one: held.append((socket, one)) if held or b"verdicts-storage" in one else socket.send(one)
        )

    page = window.new_page()
    page.route_web_socket("**/_stcore/stream", hold_the_end)
    page.goto(f"{address}/?workers=2")
    figures = page.locator(".st-key-figures")
    expect(figures).to_be_visible()
    expect(page.locator(".st-key-first-kinds")).to_have_count(1)
    above = figures.bounding_box()["y"]
    while held:
        socket, one = held.pop(0)
        socket.send(one)
    expect(page.locator(".st-key-first-kinds")).to_have_count(0)
    assert figures.bounding_box()["y"] == pytest.approx(above, abs=1)
    page.close()


@pytest.mark.parametrize("where", ["/", "/?workers=2"])
def test_a_question_that_opens_moves_the_run_down_once_and_does_not_draw_it_again(page, address, where):
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(address + where)
    whole(page)
    page.evaluate("result = document.querySelector('.st-key-result'); shifts.length = 0")
    page.get_by_role("button", name="Question 2").click()
    expect(page.locator(".st-key-open-question")).to_be_visible()
    whole(page)
    assert page.evaluate("result === document.querySelector('.st-key-result')")
    assert sum(value for value, *_ in page.evaluate("shifts")) < 0.1, page.evaluate("shifts")


@pytest.mark.parametrize("width", [1280, 390, 1920])
def test_nothing_jumps_when_five_seeds_are_asked_for_and_when_they_are_there(page, address, runs, width):
    for seed in range(5):
        store.save(fabricated.run(Experiment(workers=2, seed=seed)), runs)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{address}/?workers=2")
    whole(page)
    above = page.locator(".st-key-loss").bounding_box()
    page.evaluate("shifts.length = 0")
    page.get_by_text("5 seeds", exact=True).click()
    expect(page.get_by_text("± standard deviation over 5 seeds; timeline of seed 0")).to_be_visible()
    whole(page)
    assert page.locator(".st-key-loss").bounding_box() == pytest.approx(above, abs=1)
    assert sum(value for value, *_ in page.evaluate("shifts")) < 0.01, page.evaluate("shifts")


def test_on_a_phone_the_names_of_all_tabs_are_seen(page, address):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}/?workers=2")
    whole(page)
    for name in ("Where the time goes", "Memory", "Each rank"):
        box = page.get_by_role("tab", name=name).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390, (name, box)


def test_on_a_touch_screen_the_buttons_of_a_table_cover_no_text(page, address):
    with page.context.browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True) as context:
        touched = context.new_page()
        touched.goto(f"{address}/survey")
        expect(touched.get_by_test_id("stDataFrame").first).to_be_visible()
        text = touched.get_by_text("Tests check the formulas").bounding_box()
        buttons = touched.get_by_test_id("stElementToolbar").first.bounding_box()
        assert buttons["y"] >= text["y"] + text["height"] - 1


def test_on_a_wide_screen_the_figures_of_a_run_take_the_whole_width(page, address):
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.goto(f"{address}/?algorithm=sgd&workers=1&steps=20")  # which has few of them
    whole(page)
    row, last = (page.locator(f".st-key-figures{one}").last.bounding_box() for one in ("", " > div"))
    assert last["x"] + last["width"] == pytest.approx(row["x"] + row["width"], abs=2)


def test_on_a_phone_the_bar_at_the_top_covers_nothing_of_a_chapter(page, address):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}/textbook?chapter=overlap")
    part = page.get_by_role("radio", name="Text", exact=True)
    expect(part).to_be_visible()
    bar = page.get_by_test_id("stHeader").bounding_box()
    assert part.bounding_box()["y"] >= bar["y"] + bar["height"]


def test_no_page_violates_wcag_in_light_or_dark(visits):
    assert {path: seen["violations"] for path, seen in visits.items() if seen["violations"]} == {}


def test_every_picture_says_what_it_shows_and_is_reached_by_keyboard(visits):
    for path, seen in visits.items():
        assert not seen["unnamed"] and not seen["unreached"], path


def test_no_page_is_wider_than_its_window_at_200_and_400_percent(visits):
    for path, seen in visits.items():
        assert seen["widths"] == [ZOOMED["width"], NARROW["width"]], path


def test_the_pages_own_style_wins_over_streamlits(page, address):
    page.goto(address + PAGES[0])
    whole(page)
    expect(page.locator(".st-key-phone-bar")).to_be_hidden()
    assert page.locator(".stMainBlockContainer").evaluate("e => getComputedStyle(e).maxWidth") == "1560px"


@pytest.mark.parametrize("size", [(1440, 900), (1280, 800), (1024, 768), (390, 844)])
def test_no_step_of_the_tour_covers_anything_that_can_be_used(page, address, size):
    page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    page.goto(f"{address}/?tour=1")
    whole(page)
    tour = page.get_by_role("region", name="A short tour")
    for step in coach.STEPS:
        expect(tour).to_contain_text(step.title)
        drawn(page)
        assert page.evaluate(HIDDEN) == [], step
        expect(page.locator(".coach-ring")).to_be_in_viewport(ratio=0.95)
        assert not page.evaluate(COVERED), step
        tour.get_by_role("button", name="Done" if step == coach.STEPS[-1] else "Next").click()
    expect(tour).to_have_count(0)
    assert page.get_by_test_id("stMain").evaluate("e => e.clientHeight") == size[1]


def test_what_opens_over_a_page_violates_nothing_and_closes_by_keyboard(page, address):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{address}/?tour=1")
    whole(page)
    tour = page.get_by_role("region", name="A short tour")
    expect(tour).to_be_visible()
    assert wcag.in_both_schemes(page) == []
    page.emulate_media(color_scheme="dark")
    expect(tour).to_have_css("background-color", "rgb(27, 35, 44)")
    assert page.evaluate(HIDDEN) == []  # all that can be used is free, also while it is about the first lane
    assert page.evaluate(RINGED)  # what it points at on the left side, too
    for width in (1280, 900, 640):  # beside, below or above what it points at
        page.set_viewport_size({"width": width, "height": 800})
        drawn(page)
        assert not page.evaluate(COVERED), width
    page.set_viewport_size({"width": 1280, "height": 800})
    page.keyboard.press("Escape")
    expect(tour).to_have_count(0)

    stage, keys = page.locator(".timeline .stage"), page.get_by_role("group", name="Keys")
    stage.press("?")
    expect(keys).to_be_visible()
    assert wcag.in_both_schemes(page) == []
    keys.get_by_role("button", name="Close the keys").click()
    expect(keys).to_be_hidden()
    stage.press("?")
    keys.get_by_role("button", name="Close the keys").press("Escape")
    expect(keys).to_be_hidden()
    expect(page.get_by_role("button", name="Keys", exact=True)).to_be_focused()

    share = page.get_by_role("button", name="Share", exact=True)
    share.press("Enter")
    body = page.get_by_test_id("stPopoverBody")
    expect(body.get_by_test_id("stCode")).to_have_count(2)
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(body.get_by_role("button", name="Copy to clipboard")).to_have_count(2)
    for copy in body.get_by_role("button", name="Copy to clipboard").all():
        expect(copy).to_be_in_viewport(ratio=1)
    assert body.evaluate("e => e.scrollHeight - e.clientHeight") < 2
    expect(body).to_be_in_viewport(ratio=1)
    assert wcag.in_both_schemes(page) == []
    page.keyboard.press("Escape")
    expect(body).to_have_count(0)

    side = page.get_by_test_id("stSidebarContent")
    assert side.evaluate("e => { e.scrollLeft = 50; return e.scrollLeft }") == 0


def test_a_press_is_answered_in_the_next_frame_and_the_sign_goes_when_the_page_has_answered(page, address):
    page.goto(f"{address}/schedules")
    whole(page)
    heard = page.evaluate("""() => new Promise((done) => {
      document.querySelector(".st-key-first-question button").click();
      requestAnimationFrame(() => done(document.documentElement.classList.contains("asked")));
    })""")
    assert heard
    expect(page.get_by_role("heading", name="GPipe and 1F1B")).to_be_visible()
    expect(page.locator("html.asked")).to_have_count(0)


def test_a_question_mark_beside_a_heading_says_what_it_is_the_help_for(page, address):
    page.goto(f"{address}/?workers=2")
    whole(page)
    expect(page.get_by_role("button", name="Help for See it learn")).to_have_count(1)
    expect(page.get_by_role("button", name="Help", exact=True)).to_have_count(0)


def test_the_tab_key_first_offers_a_way_past_the_controls_to_the_content(page, address):
    page.goto(f"{address}/?workers=2")
    whole(page)
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name=re.compile("^Skip to"))
    expect(skip).to_have_count(1)
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    skip.press("Enter")
    expect(page.get_by_test_id("stMain")).to_be_focused()
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('[data-testid=stMain]').contains(document.activeElement)")
    assert "#" not in page.url


def test_faults_of_a_rank_are_reached_by_keys_alone(page, address):
    page.goto(f"{address}/?workers=2")
    whole(page)
    stage = page.locator(".timeline .stage")
    stage.press("r")
    expect(page.locator(".timeline .status")).to_contain_text("worker 0 is chosen")
    stage.press("r")
    stage.press("Enter")
    page.get_by_role("menuitem", name="More …").press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Faults of worker 1")


def test_no_figure_of_a_run_is_cut_at_any_width(page, address):
    page.goto(f"{address}/?workers=2")
    whole(page)
    words = page.locator(".st-key-figures :is([data-testid=stMetricValue], [data-testid=stMetricLabel])")
    expect(words.filter(has_text=re.compile("±"))).to_have_count(1)
    for width in (1600, 1400, 1280, 1100, 900, 640, 390, 320):
        page.set_viewport_size({"width": width, "height": 800})
        drawn(page)
        assert words.evaluate_all(CUT) == [], width


PAPER = """() => {
  dispatchEvent(new Event("beforeprint"));
  const main = document.querySelector("[data-testid=stMainBlockContainer]").getBoundingClientRect();
  const right = (one) => one.getBoundingClientRect().right;
  const all = [...document.querySelectorAll("[data-testid=stMainBlockContainer] *")];
  const controls = all.filter((one) => one.matches("button, input") && one.closest(".stButton, .stCheckbox"));
  return {
    width: main.right, height: document.body.scrollHeight, seen: innerHeight,
    cut: all.filter((one) => one.matches("canvas, table, .bars") && right(one) > main.right + 1).length,
    controls: controls.filter((one) => one.checkVisibility()).length,
    bars: [...document.querySelectorAll(".stSidebar, .stAppHeader")].filter((one) => one.checkVisibility()).length,
  };
}"""


@pytest.mark.parametrize("where", ["/?workers=2&source=true&all_settings=true", "/schedules?schedule_b=zb_h1"])
def test_on_paper_a_page_is_whole_not_cut_and_without_its_controls(page, address, where):
    page.set_viewport_size({"width": 1366, "height": 768})
    page.goto(address + where)
    whole(page)
    page.set_viewport_size({"width": 1032, "height": 700})  # as a sheet of paper, on which no script draws anew
    page.emulate_media(media="print")
    paper = page.evaluate(PAPER)
    assert paper["height"] > 1.5 * paper["seen"] and paper["width"] <= 1032
    assert (paper["cut"], paper["controls"], paper["bars"]) == (0, 0, 0)


@pytest.mark.parametrize(("where", "width", "part"), [("/schedules", 1366, "stSidebar"), ("/kernels", 390, "stMain")])
def test_help_is_large_enough_to_be_hit_and_read_out_with_the_name_of_what_it_is_for(page, address, where, width, part):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(address + where)
    whole(page)
    marks = page.get_by_test_id(part).locator("[data-testid=stTooltipIcon] button:visible")
    boxes = marks.evaluate_all("all => all.map((one) => one.getBoundingClientRect().toJSON())")
    assert boxes and all(box["width"] >= 24 and box["height"] >= 24 for box in boxes)
    marks.first.focus()
    expect(marks.first).to_have_accessible_name(re.compile("Help"))
    expect(marks.first).to_have_accessible_description(re.compile(r"\w+ \w+ \w+"))
    page.keyboard.press("Escape")
    expect(page.get_by_role("tooltip")).to_have_count(0)


def test_what_is_on_chosen_moved_or_explained_is_seen_where_colours_are_forced(page, address):
    page.emulate_media(forced_colors="active")
    page.goto(f"{address}/?workers=2")
    whole(page)

    def colour(of: str) -> str:
        return page.locator(of).first.evaluate("(one) => getComputedStyle(one).backgroundColor")

    paper = colour("body")
    switch = '.stCheckbox label{}:has([role="switch"]) > div:first-of-type'
    on, off = (switch.format(which) for which in ("[data-selected]", ":not([data-selected])"))
    slider = '.st-key-workers [role="group"] > [data-rac] > '
    for part in (
        *(on, f"{off} > div", f"{slider}div:first-child", f"{slider}[data-rac]"),
        *('.st-key-troubles [aria-pressed="true"]', ".shares i", ".timeline .legend i", ".bars i"),
    ):
        assert colour(part) not in (paper, "rgba(0, 0, 0, 0)"), part
    assert colour(on) != colour(f"{on} > div")
    page.emulate_media(forced_colors="none")


def test_on_a_phone_the_answers_to_a_cards_question_are_in_sight(page, address):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}/?welcome=true")
    whole(page)
    page.locator(".st-key-card-0 button").click()
    expect(page.locator(".st-key-option-1 button")).to_be_in_viewport()
    bottom = page.locator(".st-key-option-1 button").bounding_box()
    assert bottom["y"] + bottom["height"] < page.locator(".st-key-phone-bar").bounding_box()["y"]
