"""Again, test mode and My work, driven without a browser."""

import json

import pytest
from streamlit.testing.v1 import AppTest

import lessons
from app.session import poll
from app.textbook import work
from lessons import progress
from tests.patience import PATIENCE
from tests.system.app.test_textbook import REPORT, book, pool, words  # noqa: F401  (book and pool are fixtures)

CHAPTER = lessons.chapter("stragglers")
ITEM = CHAPTER.item("elsewhere")


def answer_of(right: bool, at: str = "2026-03-01T08:00:00Z", sure: int = 2) -> dict:
    """An answer to ITEM as a file has it."""
    return {
        "chapter": "stragglers", "item": "elsewhere", "parameters": ITEM.all_parameters()[0],
        "guess": "same" if right else "noise", "sure": sure, "right": right, "place": "quiz", "at": at,
    }  # fmt: skip


def opened(part: str, *answers: dict, **more) -> AppTest:
    """Return the part of the page of a reader who has given these answers."""
    from tests.system.app.test_textbook import script

    page = AppTest.from_function(script, default_timeout=PATIENCE)
    page.session_state["dice"] = 0  # which draw the questions' parameters
    page.session_state["progress"] = progress.read(json.dumps({"lockstep": 1, "answers": answers, **more}))
    page.query_params["chapter"], page.query_params["part"] = "stragglers", part
    return page.run()


def answer(page, name: str, guess, sure: int) -> None:
    """Answer the question that has this name on the page."""
    choice = [radio for radio in page.radio if radio.key == f"choice-{name}"]
    (choice[0] if choice else page.number_input(f"number-{name}")).set_value(guess)
    page.button(f"sure-{sure}-{name}").click().run()
    assert not page.exception


def begun(page, *chapters: str):
    """Begin a test of these chapters; return how its questions are called on the page."""
    page.button_group("of-exam").set_value(list(chapters)).run()
    page.button("begin-exam").click().run()
    assert not page.exception
    test = page.session_state.exam
    return [f"exam-{test['key']}-{number}" for number in range(len(test["questions"]))]


@pytest.mark.usefixtures("folders")
def test_a_test_asks_ten_questions_of_the_chapters_chosen_and_explains_none_before_the_end():
    page = opened("again")
    names, asked = begun(page, "stragglers", "staleness"), []
    assert len(names) == 10
    for number, name in enumerate(names):
        assert f"Question {number + 1} of 10" in [bar.proto.text for bar in page.get("progress")]
        assert not [told for told in ("You said", "right at", "Not quite", "simulator says") if told in words(page)]
        chapter, item, parameters = page.session_state.exam["questions"][number]
        one = lessons.chapter(chapter)
        asked.append((chapter, item))
        truth = one.golden.answer(item, parameters)
        wrong = next((c.key for c in one.item(item).choices if c.key != truth), 1e9)
        answer(page, name, truth if number < 7 else wrong, 2)
    assert {chapter for chapter, _ in asked} == {"stragglers", "staleness"}
    assert words(page).count("You said") == 10
    (score,) = [element.value for element in page.markdown if element.value.startswith("## ")]
    assert score.startswith("## 7 of 10 right, in ") and score.endswith(("s", "min"))
    assert "You were sure but wrong on 3" in words(page)
    recorded = page.session_state.progress.answers
    assert [a.question for a in recorded] == asked and {a.place for a in recorded} == {"again"}
    assert [a.right for a in recorded] == [True] * 7 + [False] * 3
    page.button("end-exam").click().run()
    assert not page.exception and [button for button in page.button if button.key == "begin-exam"]


@pytest.mark.usefixtures("folders")
def test_a_test_that_is_given_up_keeps_the_answers_that_were_given():
    page = opened("again")
    first, *_ = begun(page, "stragglers")
    asked = CHAPTER.item(page.session_state.exam["questions"][0][1])
    answer(page, first, asked.choices[0].key if asked.choices else 1, 0)
    page.button("end-exam").click().run()
    assert len(page.session_state.progress.answers) == 1 and "## Test" in words(page)


@pytest.mark.parametrize("name", [name for name in lessons.CHAPTERS if not lessons.chapter(name).has_text])
def test_a_chapter_without_text_leads_to_again_and_my_work_as_well(book, name):  # noqa: F811
    for part in ("again", "work"):
        page = book(chapter=name, part=part)
        assert not page.exception and page.session_state.part == part


@pytest.mark.usefixtures("folders")
def test_who_forgets_while_an_answer_is_explained_or_a_test_goes_on_begins_anew():
    page = opened("again", answer_of(False))
    answer(page, "again-stragglers-elsewhere-1", "noise", 2)
    assert "You said" in words(page)
    begin = [button for button in page.button if button.key == "begin-exam"]
    begin[0].click().run()
    page.button_group("part").set_value("work").run()
    page.button("forget-all").click().run()
    page.button_group("part").set_value("again").run()
    assert not page.exception and "Nothing yet" in words(page) and "## Test" in words(page)


def test_a_score_that_was_forgotten_does_not_come_back_with_its_report(book, pool, tmp_path):  # noqa: F811
    from experiments.jobs.job import JobState

    (tmp_path / "answer.json").write_text(json.dumps(REPORT))
    pool(JobState("finished", folder=tmp_path))
    page = book(chapter="stragglers", part="exercise")
    page.file_uploader("given-solution-stragglers").set_value(("mine.py", b"def server(): ...", "text/x-python")).run()
    page.button("grade-solution-stragglers").click().run()
    page.button_group("part").set_value("work").run()
    assert "60 of 100" in words(page)
    page.button("forget-all").click().run()
    for part in ("exercise", "work"):
        page.button_group("part").set_value(part).run()
        assert not page.exception and "60 of 100" not in words(page)


@pytest.mark.usefixtures("folders")
def test_the_file_to_hand_in_has_name_answers_and_scores_but_not_where_the_reader_is(monkeypatch):
    offered = {}
    button = work.st.download_button
    monkeypatch.setattr(
        work.st,
        "download_button",
        lambda label, data, file, *how, **more: (
            offered.update({more["key"]: (data, file, more.get("disabled"))}),
            button(label, data, file, *how, **more),
        )[1],
    )
    score = {"stragglers": {"score": 83, "at": "2026-03-01T08:00:00Z"}}
    page = opened("work", answer_of(True), scores=score, passed=["stragglers.elsewhere"], places={"stragglers": "top"})
    assert offered["hand-in"][2] and not offered["take-progress"][2]
    for name, file in (("  Ada Lovelace ", "ada-lovelace"), ("Emmy Noether", "emmy-noether")):
        page.text_input[0].set_value(name).run()
        assert not page.exception and page.text_input[0].value == name.strip()
        text, called, disabled = offered["hand-in"]
        handed = progress.read(text)
        assert (handed.reader, called, disabled) == (name.strip(), f"{file}-lockstep.json", False)
        assert len(handed.answers) == 1 and handed.scores["stragglers"].score == 83
        assert not handed.passed and not handed.places
        assert page.session_state.progress.reader == name.strip() and page.session_state.progress.places


@pytest.mark.usefixtures("folders")
def test_who_answers_again_after_a_reload_or_elsewhere_is_counted_once_in_the_poll():
    poll.here.clear()
    first = opened("quiz")
    answer(first, "quiz-stragglers-elsewhere", "noise", 2)
    kept = json.loads(first.session_state.progress.text())["answers"]
    for part, name in (("quiz", "quiz-stragglers-elsewhere"), ("text", "predict-stragglers-elsewhere")):
        again = opened(part, *kept)  # a session that knows what the browser has kept
        if part == "quiz":
            again.button(f"other-{name}").click().run()
        answer(again, name, "same", 0)
    assert poll.here()._counts[("stragglers", "elsewhere")] == {("noise", False, 2): 1}
    answer(opened("quiz"), "quiz-stragglers-elsewhere", "same", 0)  # somebody else
    assert poll.tally(("stragglers", "elsewhere")).total() == 2
