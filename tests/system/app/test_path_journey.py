"""The ten questions, the algorithms by family and the switches of a comparison, in a real Chromium."""

import re

import pytest

from experiments.specification.catalogue import ALGORITHMS, choice_label
from tests import wcag
from tests.chromium import JOURNEY
from tests.system.app import test_journey as journey

pytestmark = JOURNEY
runs, window, tab, address, expect = journey.runs, journey.window, journey.tab, journey.address, journey.expect


def test_a_reader_follows_the_path_by_keys_and_sees_the_score(tab, address):
    page = tab(f"{address}/?workers=2")
    journey.result(page)
    path, answer = page.locator(".st-key-path"), page.locator(".st-key-answer")
    path.get_by_role("button", name="1. What if the network is slow?").press("Enter")
    question = page.locator(".st-key-open-question")
    expect(question).to_be_in_viewport()
    assert wcag.in_both_schemes(page) == []
    question.get_by_role("button", name="Only the clock changes").press("Enter")
    expect(answer).to_contain_text(re.compile("Right.*1 of 1 predicted right", re.DOTALL))
    expect(answer).to_be_in_viewport()
    answer.get_by_role("button", name="2. What does one straggler cost").press("Enter")
    question.get_by_role("button", name="A quarter more time").press("Enter")
    expect(answer).to_contain_text(re.compile("Not quite.*1 of 2 predicted right", re.DOTALL))
    for name in ("Question 1, predicted right", "Question 2, predicted wrong", "Question 3, open"):
        expect(path.get_by_role("button", name=name)).to_be_visible()
    page.reload()
    expect(answer).to_contain_text(re.compile("Not quite.*1 of 2 predicted right", re.DOTALL))
    expect(path).to_contain_text("1 of 2 predicted right")
    path.get_by_role("button", name="Question 10, open").press("Enter")
    expect(question).to_contain_text("10. Can training survive the loss of a worker?")
    page.go_back()
    expect(answer).to_contain_text("What if the network is slow?")


def test_the_first_screen_is_shown_before_what_is_below_it(window, address):
    below, page = ".st-key-rest", window.new_page()
    page.add_init_script(f"addEventListener('opened', () => {{ drawn = document.querySelector('{below}') !== null; }})")
    for _ in range(2):  # the second time the run is stored
        page.goto(address)
        expect(page.locator(below)).to_be_visible()
    assert page.evaluate("drawn") is False
    page.close()


def test_on_a_phone_a_question_and_its_answer_come_into_sight(tab, address):
    page = tab(f"{address}/?workers=2")
    page.set_viewport_size({"width": 390, "height": 844})
    journey.result(page)
    page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, main.scrollHeight)")
    expect(page.locator(".st-key-head")).not_to_be_in_viewport()
    page.locator(".st-key-phone-bar").get_by_role("button", name="Try a question").click()
    page.get_by_text("What if the network is slow?").last.click()
    choice = page.get_by_role("button", name="Only the clock changes")
    expect(choice).to_be_in_viewport(ratio=1)
    choice.click()
    expect(page.locator(".st-key-answer")).to_be_in_viewport(ratio=0.5)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize(("typed", "title"), [("zero bubble", re.compile("^ZB-")), ("federated", "Local SGD")], ids=str)
def test_typing_a_name_that_people_use_finds_its_algorithm(tab, address, typed, title):
    page = tab(f"{address}/?workers=2")
    journey.result(page)
    box = page.get_by_role("combobox", name="Algorithm")
    box.fill(typed)
    expect(page.get_by_role("option").first).to_contain_text(title)
    box.press("Enter")
    expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()


def test_typing_a_name_offers_only_algorithms_that_bear_it_in_teaching_order(tab, address):
    page = tab(f"{address}/?workers=2")
    journey.result(page)
    box = page.get_by_role("combobox", name="Algorithm")
    for typed in ("FSDP", "DiLoCo"):
        box.fill(typed)
        labels = [choice_label(ALGORITHMS, name) for name in ALGORITHMS]
        expect(page.get_by_role("option")).to_have_text([label for label in labels if typed in label])
    assert next(label for label in labels if "FSDP" in label).startswith("ZeRO-3")


def test_an_algorithm_is_found_by_its_family_with_keys_and_nothing_violates_wcag(tab, address):
    page = tab(f"{address}/?workers=2")
    journey.result(page)
    page.get_by_role("button", name="All algorithms by family").press("Enter")
    dialog = page.get_by_role("dialog")
    family = dialog.locator("summary", has_text="Model averaging (")
    expect(family).to_contain_text("Workers train on their own for a while")
    family.press("Enter")
    entry = dialog.get_by_role("button", name="DiLoCo · diloco", exact=False).first
    expect(entry).to_be_visible()
    assert wcag.in_both_schemes(page) == []
    entry.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("heading", name="DiLoCo", level=1)).to_be_visible()
    assert "algorithm=diloco" in page.url
