"""Trouble that a reader causes by touching the timeline, in a real Chromium, with real runs."""

import re

import pytest

from tests.chromium import JOURNEY
from tests.system.app.test_journey import (  # noqa: F401  (address and runs are fixtures)
    SEEN,
    address,
    expect,
    query,
    result,
    runs,
    uncovered,
)

pytestmark = JOURNEY

STEPS = "steps=40&evaluations=2"
BOX = """rank => {
  const [t] = [...lockstepTimelines], { start, duration, kind, lane } = t.spans.columns;
  const { left, top } = t.canvas.getBoundingClientRect();
  const n = [...kind.keys()].find((one) => lane[one] === rank && kind[one] === 0 && t.x(start[one]) > 150);
  return { left: left + t.x(start[n]), right: left + t.x(start[n] + duration[n]), y: top + t.y(rank) + t.pitch / 2 };
}"""
WIRE = """() => {
  const [t] = [...lockstepTimelines], { stands, machines, box } = t.topology;
  const { left, top } = box.querySelector("canvas").getBoundingClientRect();
  const [p, q] = machines.wires[0].map((m) => stands[m]);
  return { x: left + (p.x + q.x) / 2, y: top + (p.y + q.y) / 2 };
}"""
STILL = """() => {
  const [t] = [...lockstepTimelines];
  return t?.spans && !t.morph && !t.trouble.sent && !t.clock.playing;
}"""


@pytest.fixture
def opened(browser, address):  # noqa: F811
    """opened(query) is a page with that run, its timeline in view; what its scripts complain of fails the test."""
    contexts, complaints = [], []

    def page_of(link: str, **how):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **how})
        context.add_init_script(SEEN)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{address}/?{link}")
        uncovered(page)
        expect(page.locator(".timeline .status")).to_contain_text("Showing")
        expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
        page.locator(".timeline .stage").scroll_into_view_if_needed()
        page.locator(".tokens").scroll_into_view_if_needed()
        page.wait_for_function(STILL)
        return page

    yield page_of
    for context in contexts:
        context.close()
    assert not complaints


def seconds(page):
    """How long the run on the page takes, s."""
    return page.evaluate("[...lockstepTimelines][0].end")


def foretold(page) -> float:
    """How many times as long a step takes, as the page says while something is dragged."""
    words = page.locator(".forecast").inner_text()
    return float(re.search(r"about ([\d.]+) times as long", words)[1])


def test_a_box_that_is_dragged_slows_its_worker_and_the_run_is_as_long_as_was_said(opened):
    page = opened(STEPS)
    before, box = seconds(page), page.evaluate(BOX, 3)
    page.mouse.move(box["right"], box["y"])
    page.mouse.down()
    page.mouse.move(box["left"] + 2 * (box["right"] - box["left"]), box["y"], steps=3)
    expect(page.locator(".forecast")).to_contain_text("worker 3: 2 times slower")
    page.mouse.move(box["left"] + 4 * (box["right"] - box["left"]), box["y"], steps=3)
    expect(page.locator(".forecast")).to_contain_text("worker 3: 4 times slower")
    others = page.evaluate("""() => {
      const [t] = [...lockstepTimelines], { kind, lane, duration } = t.spans.columns;
      const waits = (r, n) => lane[n] === r && t.kinds[kind[n]] === "wait";
      return [0, 3].map((r) => duration.reduce((sum, one, n) => sum + (waits(r, n) ? one : 0), 0));
    }""")
    assert others[0] > 0.3 * before > 0.03 * before > others[1]  # grey while it is dragged
    said = foretold(page)
    assert "slow" not in query(page)
    page.mouse.up()
    expect(page).to_have_url(re.compile("slow=3%3A4"))
    expect(page.locator(".st-key-before")).to_contain_text("worker 3 four times slower")
    result(page)
    page.wait_for_function(STILL)
    assert seconds(page) / before == pytest.approx(said, rel=0.04)
    page.go_back()
    expect(page.locator(".st-key-before")).to_contain_text("worker 3 as fast as usual")
    result(page)
    assert seconds(page) == pytest.approx(before, rel=1e-6) and "slow" not in query(page)


def test_a_drag_that_escape_ends_changes_nothing(opened):
    page = opened(STEPS)
    before, box = seconds(page), page.evaluate(BOX, 1)
    page.mouse.move(box["right"], box["y"])
    page.mouse.down()
    page.mouse.move(box["right"] + 100, box["y"], steps=3)
    expect(page.locator(".forecast")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".forecast")).to_be_hidden()
    page.mouse.up()
    expect(page.locator(".timeline .status")).to_contain_text("Showing")
    assert seconds(page) == before and "slow" not in query(page)


def test_a_bolt_that_is_dropped_on_a_lane_loses_its_worker_at_that_moment(opened):
    page = opened(STEPS)
    bolt, stage = (page.locator(one).bounding_box() for one in (".tokens [data-token=lost]", ".timeline .stage"))
    page.mouse.move(bolt["x"] + 20, bolt["y"] + bolt["height"] / 2)
    page.mouse.down()
    x, y = stage["x"] + 300, page.evaluate(BOX, 2)["y"]
    page.mouse.move(x, y, steps=5)
    expect(page.locator(".forecast")).to_contain_text("the others wait for it forever")
    at = page.evaluate(
        "x => { const [t] = [...lockstepTimelines]; return t.time(x - t.canvas.getBoundingClientRect().left) }", x
    )
    page.mouse.up()
    expect(page).to_have_url(re.compile("crash=2%3A"))
    rank, moment = query(page)["crash"].split(":")
    assert rank == "2" and float(moment) == pytest.approx(at, rel=0.01)
    expect(page.locator(".timeline .stage")).to_have_attribute("aria-label", re.compile("idle"))


def test_a_wire_that_is_stretched_lengthens_the_latency(opened):
    page = opened(STEPS)
    before, wire = seconds(page), page.evaluate(WIRE)
    page.mouse.move(wire["x"], wire["y"])
    page.mouse.down()
    page.mouse.move(wire["x"] + 60, wire["y"], steps=4)
    expect(page.locator(".forecast")).to_contain_text("latency 20 µs → 200 µs on every wire")
    said = foretold(page)
    page.mouse.up()
    expect(page).to_have_url(re.compile("latency=0.0002"))
    result(page)
    page.wait_for_function(STILL)
    assert seconds(page) / before == pytest.approx(said, rel=0.04)


def test_a_finger_drops_a_turtle_and_its_taps_are_large_enough(opened):
    page = opened(STEPS, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    turtle = page.locator(".tokens [data-token=slow]")
    assert turtle.bounding_box()["height"] >= 44 and page.evaluate("[...lockstepTimelines][0].pitch") >= 44
    turtle.tap()
    expect(page.locator(".timeline .status")).to_contain_text("Tap a lane")
    box = page.evaluate(BOX, 1)
    page.touchscreen.tap(box["left"], box["y"])
    expect(page).to_have_url(re.compile("slow=1%3A4"))
    expect(page.locator(".forecast")).to_be_hidden()
    page.wait_for_function(STILL)
    stage = page.locator(".timeline .stage").bounding_box()
    page.touchscreen.tap(stage["x"] + 20, page.evaluate(BOX, 2)["y"])
    menu = page.get_by_role("menu", name="Trouble for worker 2")
    expect(menu).to_be_visible()
    assert all(item.bounding_box()["height"] >= 44 for item in menu.get_by_role("menuitem").all())
    page.keyboard.press("Escape")
    page.locator(".timeline .stage").evaluate("stage => stage.scrollIntoView({ block: 'end' })")
    page.touchscreen.tap(stage["x"] + 20, page.evaluate(BOX, 1)["y"])
    menu = page.get_by_role("menu", name="Trouble for worker 1").bounding_box()
    assert menu["y"] + menu["height"] <= page.locator(".st-key-phone-bar").bounding_box()["y"]
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_keys_cause_the_same_trouble_by_the_menu_of_a_lane_and_say_what_comes_of_it(opened):
    page = opened(f"algorithm=easgd&{STEPS}")
    stage, status = page.locator(".timeline .stage"), page.locator(".timeline .status")
    stage.press("r")
    stage.press("r")
    stage.press("Enter")
    menu = page.get_by_role("menu", name="Trouble for worker 1")
    expect(menu.get_by_role("menuitem")).to_have_count(6)
    expect(menu.get_by_role("menuitem").nth(1)).to_have_text(
        re.compile("Worker 1: 4 times slower.*its steps take about")
    )
    page.keyboard.press("ArrowDown")
    expect(status).to_contain_text("Worker 1: 4 times slower")
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(status).to_contain_text("Showing")
    stage.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("slow=1%3A4"))
    result(page)
    page.wait_for_function(STILL)
    stage.press("Enter")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Faults of worker 1")


def test_the_new_timeline_grows_out_of_the_old_one_and_plays_unless_less_motion_is_wanted(opened):
    for motion in ("no-preference", "reduce"):
        page = opened(f"{STEPS}&seed={len(motion)}", reduced_motion=motion)
        page.evaluate("""() => {
          window.moved = window.strayed = false;
          const [t] = [...lockstepTimelines], { arrow } = t;
          t.arrow = (...args) => { strayed ||= Boolean(t.morph); arrow.apply(t, args); };
          const look = () => {
            moved ||= Boolean([...lockstepTimelines][0]?.morph);
            requestAnimationFrame(look);
          };
          look();
        }""")
        box = page.evaluate(BOX, 0)
        page.locator(".tokens [data-token=slow]").click()
        page.mouse.click(box["left"], box["y"])
        expect(page).to_have_url(re.compile("slow=0%3A4"))
        plays = motion == "no-preference"
        if plays:
            page.wait_for_function("lockstepClock.playing")
        else:
            result(page)
        seen = page.evaluate("({ moved, strayed, playing: lockstepClock.playing })")
        assert seen == {"moved": plays, "strayed": False, "playing": plays}  # strayed: an arrow where no box is yet


def test_a_run_that_waits_keeps_its_trouble_until_run_is_pressed(opened):
    page = opened(STEPS)
    page.get_by_text("Run at once").click()
    expect(page).to_have_url(re.compile("at_once=false"))
    page.wait_for_function(STILL)
    page.locator(".tokens [data-token=slow]").click()
    box = page.evaluate(BOX, 1)
    page.mouse.click(box["left"], box["y"])
    expect(page.get_by_text("Not run yet: worker 1 four times slower")).to_be_visible()
    expect(page.locator(".forecast")).to_contain_text("predicted")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".st-key-before")).to_contain_text("worker 1 four times slower")
    expect(page.locator(".forecast")).to_be_hidden()


def test_a_card_at_the_lower_edge_of_the_window_brings_its_answers_into_view(opened):
    page = opened("welcome=true", viewport={"width": 1366, "height": 768})
    page.evaluate("document.querySelector('[data-testid=stMain]').scrollTo(0, 0)")
    page.get_by_role("button", name="Kill a worker").evaluate("card => card.click()")  # without scrolling to it first
    expect(page.locator(".st-key-prediction")).to_be_in_viewport(ratio=1)


def test_a_card_acts_on_the_readers_own_run_and_back_returns_to_it(opened):
    page = opened(f"algorithm=easgd&workers=8&{STEPS}&welcome=true")
    page.get_by_role("button", name="Slow one worker down").click()
    ask = page.locator(".st-key-prediction")
    expect(ask).to_contain_text("Worker 8 computes four times slower than the others. What do the other 7 do")
    expect(ask).to_contain_text("This acts on your own settings.")
    page.get_by_role("button", name="They continue without it").click()
    finding = page.locator(".st-key-finding")
    expect(finding).to_contain_text(re.compile("Right.*They continue: the 7 others", re.DOTALL))
    now = query(page)
    assert (now["algorithm"], now["workers"], now["slow"], now["steps"]) == ("easgd", "8", "8:4", "40")
    page.get_by_role("button", name="Let nobody wait").click()
    expect(ask).to_contain_text("it starts from the standard one")
    page.get_by_role("button", name="Not now").click()
    page.go_back()
    expect(finding).to_have_count(0)
    expect(page).not_to_have_url(re.compile("slow="))
    result(page)
    now = query(page)
    assert (now["algorithm"], now["workers"], now["steps"]) == ("easgd", "8", "40")
