"""Find the bug in a real Chromium: a student finds one, and finds it again after a reload."""

import re

from lessons.bugs.mutant import find, mechanisms, mutants
from tests.chromium import JOURNEY
from tests.system.app.test_journey import expect, served

pytestmark = JOURNEY


def test_a_student_names_the_mechanism_then_the_line_and_both_stay(browser, tmp_path):
    easgd, all_points = find("easgd"), 2 * len(mutants())
    right, wrong = (mechanisms()[key].says for key in (easgd.mechanism, easgd.distractors[0]))
    with served(tmp_path) as address:
        page = browser.new_page(viewport={"width": 1366, "height": 900})
        page.goto(f"{address}/textbook?chapter=averaging&part=bugs&bug=easgd")
        box = page.locator(".st-key-bug-easgd")
        expect(page.get_by_role("cell", name="2.35", exact=True)).to_be_visible()
        expect(page.locator("canvas").first).to_be_visible()
        assert box.get_by_text("kernels.displacement").count() == 0  # no source before the mechanism is named
        box.get_by_text(right, exact=True).click()
        box.get_by_role("button", name="That is my answer").click()
        expect(box.get_by_text("You said: The pull is applied")).to_be_visible()
        expect(box.get_by_text("kernels.displacement").first).to_be_visible()
        assert box.get_by_text(wrong, exact=True).count() == 0
        box.get_by_role("spinbutton", name="Line").fill(str(easgd.lines[0] - 1))
        box.get_by_role("button", name="It is this line").click()
        expect(box.get_by_text(f"It is line {easgd.lines[0]}.")).to_be_visible()
        expect(box.get_by_text("kernels.elastic(p, c, x, a)").first).to_be_visible()
        expect(page.get_by_text(f"Score: 1 of {all_points}")).to_be_visible()
        page.reload()
        expect(page.get_by_text(f"Score: 1 of {all_points}")).to_be_visible()
        expect(box.get_by_text(re.compile("You said line"))).to_be_visible()
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
