"""What the first screen shows of learning, in a browser."""

import pytest

from tests.chromium import JOURNEY
from tests.system.app.test_journey import address, runs, tab, window  # noqa: F401  (they are fixtures)

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = JOURNEY

SET = "share => { const [one] = [...lockstepTimelines]; one.clock.set(share * one.total); }"


def test_the_first_screen_shows_digits_that_are_read_better_as_the_clock_moves(address, tab):  # noqa: F811
    page = tab(f"{address}/?welcome=true")
    expect(page.locator(".headline")).to_contain_text("Each machine computes")
    guesses = page.locator(".guess")
    expect(guesses).to_have_count(9)
    counts = []
    for share in (0, 0.04, 1):
        page.evaluate(SET, share)
        expect(page.get_by_role("slider", name="Moment of the run, along its loss and accuracy")).to_have_attribute(
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
