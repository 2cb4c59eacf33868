"""A block of a kernel in a real Chromium: stepped through by keyboard, in light and dark, and on a phone."""

import re

from tests.chromium import JOURNEY
from tests.system.app.test_journey import expect, served, uncovered

pytestmark = JOURNEY


def test_a_reader_steps_through_a_block_by_keyboard_and_sees_where_a_warp_diverges(browser, tmp_path):
    with served(tmp_path) as address:
        for scheme, width in (("dark", 1366), ("light", 390)):
            page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
            page.goto(f"{address}/kernels?kernel=norms")
            uncovered(page)
            expect(page.locator(".watched-said")).to_contain_text("Warps 0…7: 32 threads read edges[0]")
            page.get_by_role("slider", name="Moment").focus()
            for edge in ("edges[1]", "v[0…11]"):
                page.keyboard.press("ArrowRight")
                expect(page.locator(".watched-said")).to_contain_text(edge)
            expect(page.locator(".watched-said")).to_contain_text("20 wait at another line: the warp has diverged")
            expect(page.locator(".watched-code .at")).to_contain_text([re.compile("warp 0"), re.compile("warps 1…7")])
            row = page.locator(".watched-threads > div").first
            expect(row.locator(".does-reads")).to_have_count(12)
            last = row.locator("i").last.bounding_box()
            assert last["x"] + last["width"] <= width  # all 32 threads are on the page
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.close()
