"""What the first screen shows of learning, in a browser."""

import pytest

from tests.chromium import JOURNEY
from tests.patience import wait_until
from tests.system.app.test_journey import address, runs, tab, window  # noqa: F401  (they are fixtures)

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = JOURNEY

SET = "share => { const [one] = [...lockstepTimelines]; one.clock.set(share * one.total); }"


def test_the_first_screen_shows_digits_that_are_read_better_as_the_clock_moves(address, tab):  # noqa: F811
    page = tab(f"{address}/?welcome=true")
    expect(page.locator(".headline")).to_contain_text("Each worker computes")
    guesses = page.locator(".guess")
    expect(guesses).to_have_count(9)
    counts = []
    for share in (0, 0.04, 1):
        page.evaluate(SET, share)
        expect(page.get_by_role("slider", name="Loss and accuracy at a moment")).to_have_attribute(
            "aria-valuenow", page.evaluate("String([...lockstepTimelines][0].cursor)")
        )
        counts.append([page.locator(f".guess.{verdict}").count() for verdict in ("none", "wrong", "right")])
    assert counts[0] == [9, 0, 0]
    assert counts[1][0] == 0 and counts[1][1] > counts[2][1]
    assert counts[2][2] > counts[1][2]
    expect(page.locator(".said")).to_contain_text(f"{counts[2][2]} of these 9")


def test_the_learning_curve_moves_the_clock_of_the_whole_page(address, tab):  # noqa: F811
    page = tab(f"{address}/?welcome=true")
    page.locator(".sparkline").press("Home")
    expect(page.locator(".status").first).to_contain_text("At 0")
    page.locator(".sparkline").press("End")
    expect(page.locator(".status").first).to_contain_text("At 85.")


def test_a_text_is_written_anew_by_each_model(address, tab):  # noqa: F811
    page = tab(f"{address}/?workload=text&workers=2&steps=6")
    text = page.locator(".guesses b")
    expect(text).to_be_attached()
    written = []
    for share in (0, 0.4, 1):
        page.evaluate(SET, share)
        written.append(text.inner_text())
    assert written[0] == "?" and len({*written}) == 3
    expect(page.locator(".spoken")).to_contain_text("the model writes")


def test_how_a_short_run_learned_is_there_when_a_reader_scrolls_to_it(address, runs, tab):  # noqa: F811
    page = tab(f"{address}/?seed=77")
    wait_until(lambda: [*runs.glob("learning-*")])  # by the process that made the run
    page.locator(".landscape").scroll_into_view_if_needed()
    expect(page.locator(".landscape:not(.pending)")).to_be_attached()
