"""The workbench in a real Chromium, with real runs."""

import contextlib
import itertools
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest

from experiments.runs import store
from experiments.specification import this_machine
from experiments.specification.experiment import Experiment
from experiments.specification.this_machine import Fit
from tests.chromium import CHROMIUM, NEEDED, SWITCHES
from tests.patience import PATIENCE
from tests.ports import free_port

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect
expect.set_options(timeout=1000 * PATIENCE)  # ms

ROOT = Path(__file__).resolve().parents[3]
AS_MODULE = [sys.executable, "-m", "streamlit"]
AS_PROGRAM = [str(Path(sys.executable).with_name("streamlit"))]

pytestmark = NEEDED


@contextlib.contextmanager
def served(runs: Path, command=AS_MODULE, folder: Path = ROOT, script: str = "app/main.py"):
    """The address of a workbench of its own, which is gone afterwards with all that it started."""
    port = free_port()
    words = [*command, "run", script, "--server.port", str(port), "--server.headless", "true"]
    places = {"LOCKSTEP_RUNS": str(runs), "LOCKSTEP_TABLES": str(runs / "tables")}
    environment = {**os.environ, **places, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    server = subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    family = psutil.Process(server.pid)
    try:
        address = f"http://127.0.0.1:{port}"
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/_stcore/health"):
                break
            assert server.poll() is None, server.stdout.read().decode()
            time.sleep(0.05)
        yield address
    finally:
        children = family.children(recursive=True)
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(PATIENCE)
        server.kill()
        server.wait()
        server.stdout.close()
        _, left = psutil.wait_procs(children, timeout=PATIENCE)
        for process in left:
            process.kill()
    assert not left, f"left behind: {left}"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("journey")


@pytest.fixture(scope="module")
def address(runs):
    with served(runs) as address:
        yield address


SEEN = "if (!localStorage.newcomer) localStorage.setItem('lockstep-coach', '1')"  # the tour, by all others
NEW = (
    "if (!sessionStorage.old) { localStorage.newcomer = sessionStorage.old = 1; delete localStorage['lockstep-coach'] }"
)


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    """A browser window, whose tabs share what they have fetched once."""
    with playwright.sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("chromium"),  # where compiled scripts are kept, too
            executable_path=CHROMIUM,
            args=SWITCHES,
            viewport={"width": 1280, "height": 900},
            reduced_motion="reduce",  # drawing what moves without a GPU took as long as all else
        )
        context.set_default_timeout(1000 * PATIENCE)  # ms
        context.add_init_script(SEEN)
        yield context
        context.close()


@pytest.fixture
def newcomer(window):
    """The page of a reader who has never been here."""
    page = window.new_page()
    page.add_init_script(NEW)
    yield page
    page.evaluate("localStorage.clear()")  # also that the side bar was closed
    page.close()


def uncovered(page):
    """Wait until the curtain before the page has opened: what is not seen takes no key."""
    expect(page.locator("html:not(.opening)")).to_have_count(1)


@pytest.fixture
def tab(window):
    """tab(address) opens a page; what its scripts complain of fails the test."""
    pages, complaints = [], []

    def opened(address: str, scheme: str = "light"):
        page = window.new_page()
        page.emulate_media(color_scheme=scheme)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        pages.append(page)
        page.goto(address)
        uncovered(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert not complaints


def result(page):
    """Wait for a finished run; gives the values of its figures."""
    canvas = page.locator(".st-key-loss canvas")
    expect(canvas.first).to_be_visible()
    expect(page.get_by_test_id("stProgress")).to_have_count(0)  # of a run under way, over the run before
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(canvas).to_have_count(1)  # that of the run under way stays until it is replaced
    expect(page.locator(".timeline .status")).to_have_count(1)
    expect(page.locator(".timeline .status")).to_contain_text("Showing")
    expect(page.get_by_test_id("stMetricValue").nth(5)).to_be_visible()  # where there is staleness, there are seven
    expect(page.get_by_test_id("stException")).to_have_count(0)
    return page.get_by_test_id("stMetricValue").all_inner_texts()


def slide(page, key: str, presses: int):
    slider = page.locator(f".st-key-{key} input[type=range]")
    slider.focus()
    for _ in range(abs(presses)):
        slider.press("ArrowRight" if presses > 0 else "ArrowLeft")


def move(slider, to: str):
    """Press the right arrow until a slider stays at `to`: Streamlit takes back a press that meets its last answer."""
    while slider.get_attribute("aria-valuetext") != to:
        slider.press("ArrowRight")
        slider.page.wait_for_timeout(400)  # twice the time after which a slider hands its value over


def zoom_into_the_loss(page):
    """Read the curve by keys, then drag a part of it over the whole."""
    stage, whole = page.locator(".st-key-loss .stage"), page.locator(".st-key-loss .whole")
    stage.press("ArrowRight")
    expect(page.locator(".st-key-loss .heard")).to_have_text(re.compile(r"^step \d+: training [\d.]+"))
    box = stage.bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 85, steps=3)
    page.mouse.up()
    expect(whole).to_be_visible()
    stage.press("Home")
    expect(whole).to_be_hidden()
    stage.press("+")
    expect(whole).to_be_visible()


def query(page) -> dict:
    return {name: values[-1] for name, values in parse_qs(urlsplit(page.url).query).items()}


@pytest.mark.slow
def test_a_student_runs_compares_and_shares(tab, address):
    page = tab(f"{address}?at_once=false")
    figures = result(page)  # without being asked
    expect(page.get_by_role("heading", name="Synchronous SGD on handwritten digits")).to_be_visible()

    zoom_into_the_loss(page)

    slide(page, "workers", 2)
    expect(page.get_by_text("Not run yet: workers 4 → 8")).to_be_visible()
    expect(page.locator(".st-key-loss .whole")).to_be_visible()  # still zoomed
    page.get_by_role("button", name="Pin", exact=True).click()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("8 workers · batch 32")).to_be_visible()
    table = page.locator(".figures table")
    expect(table).to_contain_text("Synchronous SGD, 4 workers")
    expect(table).to_contain_text("Synchronous SGD, 8 workers")  # until then the figures are those of the run before
    assert result(page) != figures
    assert query(page)["workers"] == "8"

    entries = page.evaluate("history.length")
    page.get_by_role("radio", name="time").click(force=True)
    expect(page.locator(".st-key-loss .stage")).to_have_attribute(
        "aria-label", re.compile("The horizontal axis is time, ms")
    )
    assert query(page)["axis"] == "seconds"  # an axis of ms is not called that on the page
    assert page.evaluate("history.length") == entries  # how a run is shown is no step of its own for Back

    page.get_by_role("button", name="Share", exact=True).click()
    link = page.get_by_test_id("stPopoverBody").get_by_test_id("stCode").locator("code").first.inner_text().strip()
    assert urlsplit(link).query
    again = tab(link)
    figures = result(page)
    assert result(again) == figures
    expect(again.get_by_text("8 workers · batch 32")).to_be_visible()
    expect(again.locator(".figures table")).to_have_text(table.inner_text().replace("\n", "").replace("\t", ""))


def test_a_short_run_follows_the_slider_and_leaves_the_one_before_in_grey(tab, address):
    page = tab(address)
    figures = result(page)
    slide(page, "workers", 1)
    expect(page.get_by_text("6 workers · batch 32")).to_be_visible()
    expect(page.locator(".st-key-before")).to_contain_text("workers 4 → 6")
    assert result(page) != figures
    expect(page.locator(".st-key-head")).not_to_contain_text("Not run yet")
    page.go_back()
    expect(page.get_by_text("4 workers · batch 32")).to_be_visible()
    assert result(page) == figures

    page.get_by_text("Run at once").click()
    expect(page).to_have_url(re.compile("at_once=false"))
    slide(page, "workers", 1)
    expect(page.get_by_text("Not run yet: workers 4 → 6")).to_be_visible()
    expect(page.get_by_text("4 workers · batch 32")).to_be_visible()


MOST_CARDS = """() => {
  window.mostCards = 0;
  const look = () => {
    mostCards = Math.max(mostCards, document.querySelectorAll(".st-key-card-2 button").length);
    requestAnimationFrame(look);
  };
  look();
}"""


@pytest.mark.slow
def test_a_newcomer_predicts_sees_what_comes_of_it_and_goes_back(newcomer, address):
    page = newcomer
    page.goto(address)
    greeting = page.get_by_role("heading", name="Train one model on many machines, and see what happens")
    tour, finding = page.get_by_role("region", name="A short tour"), page.locator(".st-key-finding")
    expect(greeting).to_be_visible()
    expect(tour).to_contain_text("This is a worker")
    tour.get_by_role("button", name="Next").click()
    expect(tour).to_contain_text("Each colour is a kind of work")
    page.keyboard.press("Escape")
    expect(tour).to_have_count(0)

    page.get_by_role("button", name="Slow one worker down").click()
    page.get_by_role("button", name="They continue without it").click()
    expect(finding).to_contain_text(
        re.compile("Not quite.*They wait.* 2 times as long.*the same, bit for bit", re.DOTALL)
    )
    assert query(page)["slow"] == "3:4"
    kill = page.get_by_role("button", name="Kill a worker")
    expect(kill).to_have_count(1)  # what is on the page while a run comes gives way to what is there with it
    kill.click()
    page.get_by_role("button", name="They stop").click()
    expect(finding).to_contain_text(re.compile("Right.*They stop, after 94 of 200 steps", re.DOTALL))
    page.go_back()
    expect(finding).to_contain_text("They wait")
    assert query(page)["slow"] == "3:4"
    page.evaluate(MOST_CARDS)
    page.go_back()
    expect(finding).to_have_count(0)
    assert "slow" not in query(page)
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    assert page.evaluate("mostCards") == 1  # not once more for a moment, below where they are now

    page.reload()
    expect(greeting).to_be_visible()
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(tour).to_have_count(0)
    cards = page.locator(".st-key-cards button")
    assert len({round(card.bounding_box()["height"]) for card in cards.all()}) == 1  # though one wraps at this width
    page.goto(f"{address}/?tour=1")
    expect(tour).to_contain_text("This is a worker")
    page.goto(f"{address}/?workers=2")
    result(page)
    expect(greeting).to_have_count(0)


@pytest.mark.slow
def test_on_a_phone_a_run_and_a_page_close_the_drawer_and_nothing_is_wider_than_the_screen(newcomer, address):
    page = newcomer
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}/?workers=2")
    result(page)
    foot = page.locator(".st-key-phone-bar")
    expect(foot.get_by_role("button", name="Run")).to_be_visible()
    expect(foot.get_by_role("button", name="Try a question")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_test_id("stExpandSidebarButton").click()
    page.locator(".st-key-troubles").get_by_text("Jitter").click()
    expect(page).to_have_url(re.compile("jitter=cloud"))
    page.locator(".st-key-run button").click()
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
    expect(page.get_by_text("Not run yet")).to_have_count(0)
    result(page)
    page.get_by_test_id("stExpandSidebarButton").click()
    page.locator(".stSidebar").get_by_role("link", name="Survey").click()
    expect(page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")
    expect(page.get_by_role("heading", name="Survey")).to_be_visible()


@pytest.mark.slow
def test_on_a_phone_the_page_goes_to_what_comes_of_a_prediction(newcomer, address):
    page = newcomer
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Slow one worker down").click()
    page.get_by_role("button", name="They wait for it").click()
    finding = page.locator(".st-key-finding")
    expect(finding).to_contain_text("They wait")
    page.wait_for_function(
        """document.querySelector(".st-key-finding").getBoundingClientRect().bottom
        <= document.querySelector(".st-key-phone-bar").getBoundingClientRect().top"""
    )
    expect(finding).to_be_in_viewport(ratio=1)


@pytest.mark.slow
def test_the_page_goes_to_the_answer_of_a_question(newcomer, address):
    page = newcomer
    page.goto(address)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Question 5, open: Must workers talk after every step?").click()
    page.get_by_role("button", name="Just show me").click()
    answer = page.locator(".st-key-answer")
    expect(answer).to_contain_text("Local SGD averages the models after every ten steps")
    page.wait_for_function("document.querySelector('.st-key-answer').getBoundingClientRect().top < 200")
    expect(answer).to_be_in_viewport()


@pytest.mark.slow
def test_the_run_before_stays_as_a_ghost_says_the_difference_and_is_raced(tab, address):
    page = tab(address)
    result(page)
    slide(page, "workers", 2)
    expect(page).to_have_url(re.compile("workers=8"))
    page.get_by_role("button", name="Run", exact=True).click()
    difference = page.locator(".st-key-before")
    expect(difference).to_contain_text(re.compile(r"workers 4 → 8: [\d.]+ times as long for 2 times as many"))
    result(page)
    expect(page.locator(".st-key-loss .stage")).to_have_attribute("aria-label", re.compile("the previous run ends at"))

    page.get_by_role("button", name="Race", exact=True).click()
    verdict = page.locator(".st-key-loss .verdict")
    expect(verdict).to_contain_text("is first: it reaches a held-out loss of")
    stage = page.locator(".st-key-race-timeline .stage")
    expect(page.locator(".st-key-race-timeline .status")).to_contain_text("Showing")
    box = stage.bounding_box()
    stage.click(position={"x": 90, "y": box["height"] - 8})  # early on the axis
    expect(verdict).to_have_text("Nobody is there yet.")
    seconds = page.evaluate("lockstepClock.seconds")
    dots = page.evaluate(
        "[...lockstepCurves].filter((one) => one.frame.finish).flatMap((one) => one.dots.map(({ line }) => line.name))"
    )
    assert seconds > 0 and {name.split(", ")[1] for name in dots} == {"4 workers", "8 workers"}
    stage.press("Escape")
    expect(verdict).to_contain_text("is first")

    again = tab(page.url)
    expect(again.locator(".st-key-loss .verdict")).to_have_text(verdict.inner_text())
    page.get_by_role("button", name="End the race").click()
    expect(page.get_by_role("button", name="Race", exact=True)).to_be_visible()
    assert "race" not in query(page) and "pin" in query(page)


@pytest.mark.slow
def test_a_cell_of_a_map_of_two_settings_opens_its_run_and_the_map_stays(tab, address, runs, made):
    shown = Experiment(steps=2, evaluations=1)
    for workers, batch in itertools.product((1, 2, 4, 8, 16), (8, 16, 32, 64, 128)):
        if (workers, batch) not in ((2, 8), (shown.workers, shown.batch)):  # these two are run
            store.save(made(shown.change(workers=workers, batch=batch)), runs)
    page = tab(f"{address}?steps=2&evaluations=1&sweep=workers&sweep2=batch")
    result(page)
    cell = page.get_by_role("button", name="Open the run with workers 2, batch size 8")
    cell.press("Enter")
    expect(page.get_by_text("2 workers · batch 8 · 2 steps")).to_be_visible()
    expect(cell).to_be_visible()


@pytest.mark.slow
def test_choices_stand_in_the_address_by_name_and_are_still_there_when_one_comes_back(tab, address):
    page = tab(f"{address}/schedules?schedule_a=zb_h1&ranks=3")
    title = page.get_by_role("heading", level=1)
    expect(title).to_have_text("ZB-H1")
    box = page.get_by_role("combobox", name="Schedule", exact=False).first
    box.fill("v_half")
    box.press("Enter")
    expect(title).to_have_text("V-Half")
    assert query(page) == {"schedule_a": "v_half", "ranks": "3"}
    page.get_by_label("Micro-batches", exact=True).fill("5")
    page.get_by_label("Micro-batches", exact=True).press("Enter")
    expect(page).to_have_url(re.compile("micro_batches=5"))
    for back in (page.go_back, page.get_by_role("link", name="Schedules").click):
        page.get_by_role("link", name="Kernels").click()
        expect(title).to_have_text("SGD")
        assert query(page) == {}
        back()
        expect(title).to_have_text("V-Half")
        expect(page).to_have_url(re.compile("micro_batches=5"))
        assert query(page) == {"schedule_a": "v_half", "ranks": "3", "micro_batches": "5"}
        expect(page.get_by_label("Ranks", exact=True)).to_have_value("3")


@pytest.mark.slow
def test_stop_ends_a_long_run_and_shows_what_was_recorded(tab, address):
    page = tab(f"{address}?algorithm=easgd&steps=1000000&seed=1")
    expect(page.locator(".st-key-result .stProgress")).to_contain_text("of virtual time")
    expect(page.locator(".curve canvas").first).to_be_visible()
    page.get_by_role("button", name="Stop", exact=True).click()  # the only one, though Streamlit has another at its top
    expect(page.get_by_text("Stopped at step")).to_be_visible()
    result(page)
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_disabled()


@pytest.mark.slow
def test_the_controls_stay_alive_while_a_run_is_under_way(tab, address):
    page = tab(f"{address}?algorithm=easgd&steps=1000000&seed=2")
    expect(page.locator(".st-key-result .stProgress")).to_contain_text("of virtual time")
    slide(page, "workers", 1)
    expect(page).to_have_url(re.compile("workers=6"))
    page.get_by_role("button", name="Reset", exact=True).click()
    expect(page.get_by_role("heading", name="Synchronous SGD on handwritten digits")).to_be_visible()
    result(page)


@pytest.mark.slow
def test_two_tabs_do_not_disturb_each_other(tab, address):
    one, two = tab(f"{address}?algorithm=easgd&seed=3"), tab(f"{address}?algorithm=downpour&seed=3")
    result(one), result(two)
    expect(one.get_by_role("heading", name="EASGD on handwritten digits")).to_be_visible()
    expect(two.get_by_role("heading", name="Downpour SGD on handwritten digits")).to_be_visible()


@pytest.mark.slow
def test_a_reload_runs_what_was_chosen_and_back_leads_to_the_page_before(tab, address):
    page = tab(f"{address}?algorithm=easgd&seed=3")
    result(page)
    slide(page, "workers", 1)
    expect(page).to_have_url(re.compile("workers=6"))
    page.reload()
    expect(page.get_by_text("6 workers and 1 server · batch 32")).to_be_visible()
    figures = result(page)
    page.get_by_role("link", name="Schedules").click()
    expect(page.locator(".figures tr", has_text="Makespan")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("6 workers and 1 server · batch 32")).to_be_visible()
    assert result(page) == figures


@pytest.mark.slow
def test_a_server_that_ends_leaves_no_run_behind(window, tmp_path):
    with served(tmp_path) as address:
        page = window.new_page()
        page.goto(f"{address}?algorithm=easgd&steps=1000000")
        expect(page.locator(".st-key-result .stProgress")).to_contain_text("of virtual time")
        page.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "link",
    [
        "algorithm=<img src=x onerror=alert(1)>",
        "algorithm=easgd&period=<script>alert(1)</script>&pin=<script>alert(1)</script>",
        "slow=%00%ff&%=%&&&===&workers=%F0%9F%92%A9",
    ],
)
def test_a_hostile_link_gives_a_sentence_and_the_defaults(tab, address, link):
    page = tab(f"{address}?{link}")
    expect(page.get_by_role("alert").first).to_contain_text("This link is invalid")
    result(page)
    expect(page.locator("img[src=x]")).to_have_count(0)


@pytest.mark.slow
def test_the_timeline_is_moved_by_keys_and_tells_what_lies_under_the_pointer(tab, address):
    page = tab(f"{address}?algorithm=easgd&seed=3")
    result(page)
    stage, status = page.locator(".timeline .stage"), page.locator(".timeline .status")
    stage.focus()
    page.keyboard.press("Home")
    expect(status).to_contain_text("Showing the whole run")
    page.keyboard.press("+")
    expect(status).to_contain_text(re.compile(r"Showing .+ to .+ of"))
    window = status.inner_text()
    page.keyboard.press("ArrowRight")
    expect(status).not_to_have_text(window)
    stage.scroll_into_view_if_needed()
    box = stage.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 34 + 45)
    expect(page.locator(".timeline .tip")).to_contain_text(re.compile("worker 1 · .*takes", re.DOTALL))
    expect(stage).to_have_attribute("aria-label", re.compile("^Timeline of 5 ranks"))


PLAYED = """(timeline) => new Promise((done) => {
  const play = timeline.querySelector("[data-do=play]"), status = timeline.querySelector(".status");
  play.click();
  const look = () => {
    if (play.getAttribute("aria-label") !== "Pause") return done(false);
    if (status.ariaLive !== "off" || !status.textContent.includes("on its way: ")) return requestAnimationFrame(look);
    play.click();
    done(true);
  };
  look();
})"""
"""Press Play and, as soon as the words follow, Pause: a press from outside may come after the end of the film."""


@pytest.mark.slow
def test_the_timeline_is_played_stepped_through_and_scrubbed(tab, address):
    page = tab(f"{address}?algorithm=easgd&seed=3")
    result(page)
    stage, status = page.locator(".timeline .stage"), page.locator(".timeline .status")
    stage.focus()
    page.keyboard.press(" ")  # who wants less motion goes from event to event
    expect(status).to_contain_text(re.compile("^At .* server 0.*: .* worker 1"))
    moment = status.inner_text()
    page.keyboard.press(".")
    expect(status).not_to_have_text(moment)
    page.keyboard.press(",")
    expect(status).to_have_text(moment)
    page.emulate_media(reduced_motion="no-preference")
    page.get_by_role("button", name="Speed 1×").click()
    page.get_by_role("button", name="Speed 2×").click()
    expect(page.get_by_role("button", name="Speed ½×")).to_be_visible()
    assert page.locator(".timeline").evaluate(PLAYED)
    expect(status).to_have_attribute("aria-live", "polite")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    moment = status.inner_text()
    box = stage.bounding_box()
    stage.click(position={"x": box["width"] - 8, "y": box["height"] - 8})
    expect(status).not_to_have_text(moment)
    expect(status).to_contain_text(re.compile("^At "))
    stage.press("Escape")
    expect(status).to_contain_text("Showing")


@pytest.mark.slow
def test_a_click_on_a_rank_slows_it_down_and_the_prediction_meets_the_result(tab, address):
    page = tab(f"{address}?algorithm=easgd&seed=3")
    result(page)
    page.get_by_text("Run at once").click()
    expect(page).to_have_url(re.compile("at_once=false"))
    page.locator(".timeline .stage").click(position={"x": 20, "y": 34 + 3 * 30 + 15})
    page.get_by_role("menuitem", name=re.compile("^More")).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Faults of worker 3")
    move(dialog.get_by_role("slider"), "× 3")
    dialog.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("Not run yet: worker 3 three times slower")).to_be_visible()
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")  # or it is redrawn
    page.get_by_role("radio", name="fewer").click(force=True)
    expect(page.get_by_role("radio", name="fewer")).to_be_checked()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("Samples per second: fewer")).to_be_visible()
    assert query(page)["slow"] == "3:3"
    result(page)


def choose(page, key: str, name: str):
    """Pick from a list of the left side by the beginning of what it says."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")  # or it is redrawn
    box = page.locator(f".st-key-{key}").get_by_role("combobox")
    box.focus()
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")  # scrolling shuts it
    box.fill(name)
    page.get_by_role("option", name=re.compile(f"^{re.escape(name)}( ·|$)")).click()
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")


@pytest.mark.slow
def test_real_processes_obey_what_is_chosen_and_are_predicted(tab, tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_RUNS", str(tmp_path / "runs"))  # where the fit lies, too
    this_machine.save(Fit(device="3e+10:2e+10:2e-06", network="5e-05:1.5e+09:0", machine="this", moment="2026-11-21"))
    with served(tmp_path / "runs") as address:
        page = tab(f"{address}?workers=2")
        result(page)
        page.get_by_text("All settings").click()
        choose(page, "cluster", "Real processes")
        network = page.locator(".st-key-network").get_by_role("combobox")
        expect(network).to_have_value("this machine's own · not emulated")
        choose(page, "network", "1GbE")
        expect(page).to_have_url(re.compile("cluster=processes&network=1GbE"))
        page.locator(".st-key-rank").get_by_text("worker 1", exact=True).click()
        dialog = page.get_by_role("dialog")
        move(dialog.get_by_role("slider"), "× 3")
        dialog.get_by_role("button", name="Run with these faults").click()
        expect(page.get_by_text("real processes, emulating 1GbE, worker 1 (3× slower)")).to_be_visible()
        result(page)
        expect(page.locator(".timeline .stage")).to_have_attribute(
            "aria-label", re.compile(r"of 2 workers .*\d % wait")
        )

        page.get_by_role("button", name="Predict it").click()
        expect(page.locator(".timeline .stage")).to_have_count(2)
        both = page.locator(".timeline .stage").nth(1)
        expect(both).to_have_attribute("aria-label", re.compile("Measured and predicted, rank by rank"))
        totals = page.locator(".figures table", has_text="predicted")
        expect(totals.locator("tr", has_text="wait")).to_contain_text(re.compile(r"\d m?s"))
        expect(page.get_by_text(re.compile("Predicted: simulated: 1GbE, .*worker 1 \\(3× slower"))).to_be_visible()


@pytest.mark.slow
def test_a_window_into_the_timeline_survives_another_setting(tab, address):
    page = tab(f"{address}?algorithm=easgd&seed=3")
    result(page)
    page.get_by_text("Run at once").click()
    expect(page).to_have_url(re.compile("at_once=false"))
    page.locator(".timeline .stage").focus()
    page.keyboard.press("Home")
    expect(page.locator(".timeline .status")).to_contain_text("Showing the whole run")
    slide(page, "workers", 1)
    expect(page.get_by_text("Not run yet")).to_be_visible()
    expect(page.locator(".timeline .status")).to_contain_text("Showing the whole run")


@pytest.mark.slow
def test_zooming_into_a_long_run_brings_its_single_spans(tab, address, runs, made):
    experiment = Experiment(workers=400, batch=2, seed=7)
    store.save(made(experiment), runs)
    page = tab(f"{address}?{experiment.query()}")
    result(page)
    status = page.locator(".timeline .status")
    page.locator(".timeline .stage").focus()
    page.keyboard.press("Home")
    expect(status).to_contain_text("as shares of the time")
    for _ in range(7):
        page.keyboard.press("+")
    expect(status).to_contain_text(re.compile("Showing .* to "))
    expect(status).not_to_contain_text("as shares of the time")


def test_a_page_asks_nobody_else_and_is_small(window, address, runs, made):
    query, hosts, received = "algorithm=easgd&seed=3", set(), []
    store.save(made(Experiment.from_query(query)), runs)  # while an experiment runs, its curve comes again and again
    page = window.new_page()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: received.append(len(frame))))
    page.goto(f"{address}?{query}")
    result(page)
    page.close()
    assert hosts - {""} == {urlsplit(address).netloc}
    assert 100_000 < sum(received) < 1_500_000


@pytest.mark.parametrize(
    ("command", "elsewhere", "scheme", "colour"),
    [
        pytest.param(
            *(AS_PROGRAM, False, "light", "rgb(255, 255, 255)"), id="as a program, in light", marks=pytest.mark.slow
        ),
        pytest.param(*(AS_MODULE, True, "dark", "rgb(17, 22, 28)"), id="from another folder, in dark"),
    ],
)
def test_it_starts_either_way_and_finds_its_settings(tab, runs, tmp_path, command, elsewhere, scheme, colour):
    place = {"folder": tmp_path, "script": str(ROOT / "app" / "main.py")} if elsewhere else {}
    with served(runs, command, **place) as address:
        page = tab(address, scheme)
        result(page)
        run, background = page.get_by_role("button", name="Run", exact=True), page.locator(".stApp")
        assert run.evaluate("e => getComputedStyle(e).backgroundColor") == "rgb(0, 114, 178)"  # config.toml was read
        assert background.evaluate("e => getComputedStyle(e).backgroundColor") == colour


@pytest.mark.slow
def test_a_schedule_is_changed_compared_explained_and_shared(tab, address):
    page = tab(f"{address}/schedules")
    makespan = page.locator(".figures tr", has_text="Makespan")
    expect(makespan).to_contain_text("33")
    page.locator(".st-key-ranks input").fill("8")
    page.locator(".st-key-ranks input").press("Enter")
    expect(makespan).to_contain_text("45")
    page.locator(".st-key-schedule_b").get_by_role("combobox").fill("zb_h1")
    page.get_by_role("option", name="ZB-H1 · zb_h1").click()
    expect(makespan).to_contain_text("−14 (−31.1 %)")
    stage = page.locator(".stage").first
    stage.scroll_into_view_if_needed()
    box = stage.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 34 + 10)
    expect(page.locator(".tip").first).to_contain_text("rank 0 · idle · 0B0 waits for 1B0 of rank 1")
    assert (query(page)["ranks"], query(page)["schedule_b"]) == ("8", "zb_h1")
    again = tab(page.url)
    expect(again.locator(".figures tr", has_text="Makespan")).to_contain_text("−14 (−31.1 %)")


@pytest.mark.slow
def test_an_instructor_opens_a_chapter_runs_a_figure_of_it_and_grades_a_solution(tab, address):
    page = tab(f"{address}/textbook?chapter=stragglers&everything=true")
    figure = page.locator(".st-key-figure-text-stragglers-steps_against_batch")  # the quickest of the chapter
    figure.get_by_role("button", name="Run it here").click()
    expect(figure.get_by_text("run here, just now")).to_be_visible()
    page.get_by_role("radio", name="Exercise").click(force=True)
    page.locator("input[type=file]").set_input_files(ROOT / "lessons" / "stragglers" / "solution.py")
    page.get_by_role("button", name="Grade it").click()
    expect(page.get_by_role("heading", name="100 of 100")).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)


@pytest.mark.slow
def test_a_student_sees_what_is_asked_takes_a_hint_and_is_told_what_shows_the_textbooks_timeline(
    tab, address, tmp_path
):
    page = tab(f"{address}/textbook?chapter=stragglers&part=exercise")
    expect(page.get_by_text("a crashed worker does not stop it")).to_be_visible()
    expect(page.get_by_role("cell", name="memory")).to_be_visible()
    row = page.locator(".st-key-mark-stragglers-2")
    row.get_by_role("button", name="Hint").click()
    page.get_by_role("button", name="Show me the concept").click()
    expect(page.get_by_text("Two things cost time")).to_be_visible()
    page.keyboard.press("Escape")
    with page.expect_download() as began:
        page.get_by_role("button", name="3. One role is missing").click()
    assert "this part is yours" in Path(began.value.path()).read_text()
    mine = tmp_path / "mine.py"  # does not wait for enough gradients, whatever workers and backups are drawn
    whole = (ROOT / "lessons" / "stragglers" / "solution.py").read_text()
    mine.write_text(whole.replace("len(workers) - s.backups", "len(workers) - s.backups - 1"))
    page.locator("input[type=file]").set_input_files(mine)
    page.get_by_role("button", name="Grade it").click()
    expect(page.get_by_text("gradients of its step; expected")).to_have_count(2)
    expect(page.get_by_text("judged only when every update is")).to_have_count(3)
    expect(page.get_by_text("Hints taken: 2.1.")).to_be_visible()
    strips = page.locator("[class*=st-key-strip-solution-stragglers]")
    expect(strips.locator("canvas").first).to_be_visible()
    expect(page.get_by_text("The textbook's timeline appears next to yours once")).to_be_visible()
    with page.expect_response(lambda answer: "upload_file" in answer.url and answer.request.method == "PUT"):
        page.locator("input[type=file]").set_input_files(ROOT / "lessons" / "stragglers" / "solution.py")
    page.wait_for_timeout(1000)  # the page that came of the first file has a button, too, until this one has come
    page.get_by_role("button", name="Grade it").click()
    expect(page.get_by_role("heading", name="100 of 100")).to_be_visible()
    expect(page.get_by_role("heading", name="Your timeline and the textbook's")).to_be_visible()
    page.get_by_role("button", name="Hand it in, under My work").click()
    expect(page.get_by_role("heading", name="Hand it in")).to_be_visible()
    page.get_by_role("radio", name="Exercise").click(force=True)
    expect(page.get_by_role("heading", name="100 of 100")).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)


@pytest.mark.slow
def test_a_kernel_is_read_and_measured(tab, address):
    page = tab(f"{address}/kernels?kernel=forget&numbers=1000")
    expect(page.get_by_role("heading", name="forget")).to_be_visible()
    expect(page.locator(".st-key-source-code")).to_contain_text("v[index] <- 0")
    expect(page.locator(".figures tr", has_text="Numba")).to_contain_text("the CPU implementation")
    expect(page.get_by_role("button", name="Measure all kernels")).to_be_visible()


@pytest.mark.slow
def test_a_table_is_uploaded_and_trained_on_and_a_run_opened(tab, address, made, tmp_path):
    rows = "".join(f"{n % 2 + n / 100},{n % 7},{'even' if n % 2 else 'odd'}\n" for n in range(300))
    page = tab(f"{address}/own")
    table = {"name": "numbers.csv", "mimeType": "text/csv", "buffer": f"a,b,kind\n{rows}".encode()}
    page.locator(".st-key-table_files input[type=file]").set_input_files(table)
    page.get_by_role("button", name="Train on it").click()
    expect(page.get_by_role("heading", name="Synchronous SGD on the table “numbers”")).to_be_visible()
    assert result(page)
    folder = store.save(made(Experiment(algorithm="easgd", seed=9)), tmp_path)
    page = tab(f"{address}/own")
    page.locator(".st-key-run_files input[type=file]").set_input_files(list(folder.iterdir()))
    expect(page.get_by_role("heading", name="EASGD on handwritten digits")).to_be_visible()
    expect(page.get_by_text(re.compile("uploaded$"))).to_be_visible()
    assert "95.5 ± 1.1 %" in result(page)


@pytest.mark.slow
def test_switches_of_the_page_of_runs_outlive_another_page_going_back_and_a_reload(tab, address):
    page = tab(f"{address}?steps=2&evaluations=1&workers=2")
    result(page)
    for name in ("Log", "Source", "5 seeds"):
        page.get_by_text(name, exact=True).click()
        expect(page.get_by_role("switch", name=name, exact=True)).to_be_checked()
        result(page)  # a switch may draw the charts in another place
    page.get_by_role("radio", name="workers", exact=True).click()
    page.get_by_text("Each at its best rate").click()
    chosen = {"log": "true", "source": "true", "seeds": "true", "sweep": "workers", "best": "true"}

    def still_chosen():
        for name in ("Log", "Source", "5 seeds", "Each at its best rate"):
            expect(page.get_by_role("switch", name=name, exact=True)).to_be_checked()
        page.wait_for_function(
            "wanted => Object.entries(wanted).every("
            "([name, value]) => new URL(location).searchParams.get(name) === value)",
            arg=chosen,
        )

    still_chosen()
    for back in (page.go_back, page.get_by_role("link", name="Workbench").click):
        page.get_by_role("link", name="Kernels").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("SGD")
        assert query(page) == {}
        back()
        still_chosen()
    page.reload()
    still_chosen()
