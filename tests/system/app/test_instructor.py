"""What is for instructors: hidden from students, opened by the setting or the password, and sweeps by link."""

import re
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

import lessons
from app.comparison import sweep
from app.textbook import instructor as door
from experiments.jobs.job import JobState
from experiments.specification.experiment import Experiment
from lessons import golden, instructor
from lessons.instructor import sheet
from lessons.instructor.assignment import assignments
from tests.patience import PATIENCE


def script():
    import streamlit as st

    from app.textbook import instructor
    from app.textbook import page as textbook

    at = [st.Page(textbook.page, title="Textbook", default=True), st.Page(instructor.page, url_path="instructors")]
    st.navigation(at).run()


def hub():
    from app.textbook import instructor

    instructor.page()


@pytest.fixture
def lab(folders):
    """lab(setting) is the lab on averaging as a server with this setting shows it."""

    def opened(monkeypatch, setting):
        monkeypatch.setenv(instructor.SETTING, setting)
        page = AppTest.from_function(script, default_timeout=PATIENCE)
        page.query_params["chapter"], page.query_params["part"] = "averaging", "lab"
        return page.run()

    return opened


def words(page) -> str:
    return "\n".join(element.value for element in (*page.markdown, *page.caption))


@pytest.mark.parametrize("setting", ["", "0", "secret"])
def test_students_see_the_handout_and_no_result(lab, monkeypatch, setting):
    page = lab(monkeypatch, setting)
    assert not page.exception and "Meet rarely" in words(page)
    assert "What goes wrong" not in words(page) and "Means over seeds" not in words(page)


def test_an_instructor_sees_the_whole_sheet_and_may_look_with_a_students_eyes(lab, monkeypatch):
    page = lab(monkeypatch, "1")
    assert not page.exception and "What goes wrong" in words(page) and "Means over seeds" in words(page)
    page.toggle("as-students").set_value(True).run()
    assert "Meet rarely" in words(page) and "What goes wrong" not in words(page)


def test_the_hub_opens_by_the_password_and_a_wrong_one_takes_its_time(folders, monkeypatch):
    monkeypatch.setenv(instructor.SETTING, "sésame")
    slept = []
    monkeypatch.setattr(door, "time", SimpleNamespace(sleep=slept.append))
    page = AppTest.from_function(hub, default_timeout=PATIENCE).run()
    assert "Rubric" not in words(page) and not slept
    page.text_input("given-password").set_value("sesame")
    page.button[0].click().run()
    assert slept == [door.DELAY] and "Rubric" not in words(page) and "not the password" in page.error[0].value
    page.text_input("given-password").set_value("sésame")
    page.button[0].click().run()
    assert not page.exception and slept == [door.DELAY] and "Rubric" in words(page)
    assert "sésame" not in words(page)


def test_the_hub_links_to_the_lab_and_the_exercise_of_every_chapter(folders, monkeypatch):
    monkeypatch.setenv(instructor.SETTING, "1")
    page = AppTest.from_function(hub, default_timeout=PATIENCE).run()
    led = {link.proto.query_string for link in page.get("page_link")}
    chapters = [chapter for chapter in lessons.written_chapters() if chapter.lab()]
    assert led == {f"chapter={one.name}&part={part}" for one in chapters for part in ("lab", "exercise")}


def test_the_hub_stays_shut_without_a_setting(folders, monkeypatch):
    monkeypatch.delenv(instructor.SETTING, raising=False)
    page = AppTest.from_function(hub, default_timeout=PATIENCE).run()
    assert "Rubric" not in words(page) and not page.get("download_button")
    assert not page.text_input and f"`{instructor.SETTING}=1` shows them to everyone" in page.info[0].value


def test_without_the_file_of_results_an_instructor_sees_the_handout_and_why(lab, monkeypatch):
    monkeypatch.setattr(sheet, "expected_results", lambda chapter: golden.EMPTY)
    page = lab(monkeypatch, "1")
    assert not page.exception and "Meet rarely" in words(page) and "What goes wrong" not in words(page)
    assert "lessons/averaging/lab.json" in page.info[0].value


@pytest.mark.parametrize(("setting", "leads"), [("", False), ("1", False), ("sésame", True)])
def test_a_handout_leads_to_the_password_where_there_is_one(lab, monkeypatch, setting, leads):
    assert ("(instructors)" in words(lab(monkeypatch, setting))) is leads


@pytest.mark.slow
@pytest.mark.parametrize("name", [one.name for one in lessons.written_chapters()])
def test_a_page_gives_no_golden_answer_before_it_is_asked(folders, monkeypatch, name):
    """What is sent to the browser has neither explanation nor comment of any choice."""
    monkeypatch.delenv(instructor.SETTING, raising=False)
    for part in ("text", "quiz", "exercise", "lab"):
        page = AppTest.from_function(script, default_timeout=PATIENCE)
        page.query_params["chapter"], page.query_params["part"] = name, part
        page.run()
        assert not page.exception
        sent = "\n".join([words(page), str(page.radio), str([one.options for one in page.radio])])
        for item in lessons.chapter(name).items:
            told = [item.why, *(choice.but for choice in item.choices if choice.but)]
            pieces = [max(re.split(r"\{[^}]*\}|\$", text), key=len).strip() for text in told]
            assert not [piece for piece in pieces if len(piece) > 25 and piece in sent], (part, item.name)


def test_a_link_opens_a_sweep_over_any_setting_with_its_own_stops(page, stored):
    one = assignments("averaging")["meet_seldom"]
    for turned in one.stops():
        stored(one.experiment(**turned))
    opened = page(one.sweep())
    assert not opened.exception and not opened.warning
    assert [button.label for button in opened.button if button.key.startswith("open-")] == [
        f"period {stop}" for stop in one.turn["period"]
    ]


def test_stops_of_another_setting_are_not_taken_for_the_one_that_is_turned(page, stored):
    for workers in (1, 2, 4, 8, 16):
        stored(Experiment(workers=workers))
    opened = page("sweep=workers&stops=batch~1~3")
    assert not opened.exception and "batch size" in opened.button_group("sweep").options
    assert "16 workers" in [button.label for button in opened.button]


@pytest.mark.parametrize("stops", ["", "nowhere~1", "workers", "workers~no~-1", "workers~" + "~".join("1" * 500)])
def test_stops_that_nobody_sane_would_write_end_in_a_sentence_at_most(page, stored, stops):
    for workers in (1, 2, 4, 8, 16):
        stored(Experiment(workers=workers))
    assert not page(f"sweep=workers&stops={stops}").exception


SWEEPS = [
    (chapter.name, name)
    for chapter in lessons.written_chapters()
    for name, one in assignments(chapter.name).items()
    if one.turn and not one.paired
]


@pytest.mark.slow
@pytest.mark.parametrize(("chapter", "name"), SWEEPS)
def test_every_sweep_link_of_a_sheet_turns_on_the_page_what_it_says(page, stored, monkeypatch, chapter, name):
    one, asked = assignments(chapter)[name], []
    monkeypatch.setattr(
        sweep.background, "ask", lambda work, place: asked.append(work) or JobState("failed", message="not run here")
    )
    stored(one.experiment())
    opened = page(one.sweep())
    assert not opened.exception
    *outer, axis = one.turn
    assert opened.button_group("sweep").value == axis
    first = {place: one.turn[place][0] for place in outer}
    assert asked[: len(one.turn[axis])] == [one.experiment(**first, **{axis: stop}) for stop in one.turn[axis]]
