"""The pages of the textbook, driven without a browser."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import lessons
from app import poll, session
from app.views import textbook
from experiments.experiment import Experiment
from experiments.jobs.pool import JobState
from lessons import job_specs, markup
from lessons.chapters import LANGUAGES, Chapter
from lessons.figure import figure

ROOT = Path(__file__).resolve().parents[3]
CHAPTERS = [one.name for one in lessons.written()]
REPORT = {
    "chapter": "stragglers", "score": 60, "seed": 5, "seconds": 1.5, "error": "it hung up", "printed": "hello",
    "sandbox": {}, "marks": [
        {"name": "right", "points": 3, "earned": 3, "observed": "40 updates"},
        {"name": "quick", "points": 2, "earned": 0, "observed": "1.70 times"},
    ],
}  # fmt: skip


def script():
    import streamlit as st

    from app.views import textbook, workbench

    pages = [st.Page(textbook.page, title="Textbook", default=True), st.Page(workbench.page, url_path="workbench")]
    st.navigation(pages).run()


@pytest.fixture
def book(folders):
    """book(**address) is the textbook as it opens with that link."""

    def opened(**address):
        test = AppTest.from_function(script, default_timeout=300)
        for key, value in address.items():
            test.query_params[key] = value
        return test.run()

    return opened


@pytest.fixture
def pool(monkeypatch):
    """pool(state) puts a pool in the place of the real one, which says that of every job."""

    class Pool:
        asked = ()

        def submit(self, owner, work):
            self.asked = (*self.asked, work)
            return work.key()

        def state(self, job):
            return self.now

        def touch(self, owner): ...

        def release(self, owner): ...

    def put(now):
        made = Pool()
        made.now = now
        monkeypatch.setattr(session, "pool", lambda: made)
        return made

    return put


def words(page) -> str:
    return "\n".join(element.value for element in (*page.markdown, *page.caption, *page.info, *page.warning))


def charts(page) -> int:
    return len(page.get("plotly_chart"))


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_shows_all_of_its_text_figures_and_sources(book, name):
    page = book(chapter=name, everything="true")
    blocks = lessons.chapter(name).blocks()
    assert not page.exception
    assert charts(page) == sum(isinstance(block, markup.LiveFigure) for block in blocks)
    assert [block.source for block in blocks if isinstance(block, markup.Code)] == [code.value for code in page.code]
    said = [element.value for element in page.markdown]
    assert all(block.markdown in said for block in blocks if isinstance(block, markup.Text))


@pytest.mark.parametrize("part", list(textbook.PARTS))
@pytest.mark.parametrize("name", CHAPTERS)
def test_every_part_of_a_chapter_opens(book, name, part):
    page = book(chapter=name, part=part)
    assert not page.exception and page.session_state.part == part
    assert words(page)


def test_the_text_goes_on_when_a_prediction_was_made(book):
    page = book(chapter="stragglers")
    before, shown = len(page.markdown), charts(page)
    assert shown == 0 and "How many times as fast are N machines" not in words(page)
    page.radio("choice-predict-stragglers-elsewhere").set_value("noise")
    next(b for b in page.button if b.label == "That is my answer").click().run()
    assert not page.exception and charts(page) == 1 and len(page.markdown) > before
    assert "not so" in words(page) and "puts them in the order of ranks" in words(page)
    assert "It is: It is the same, to the last bit." in words(page)


def test_who_has_answered_hears_how_many_of_all_were_right(book):
    poll.here.clear()
    for answer, said in (("same", []), ("noise", ["Of 2 first answers here, 1 was right, and 1 said what you said."])):
        page = book(chapter="stragglers")
        page.radio("choice-predict-stragglers-elsewhere").set_value(answer)
        next(b for b in page.button if b.label == "That is my answer").click().run()
        assert [caption.value for caption in page.caption if "answers here" in caption.value] == said


def test_the_text_goes_on_without_an_answer_if_the_reader_says_so(book):
    page = book(chapter="stragglers")
    page.button("skip-elsewhere").click().run()
    assert charts(page) == 1


def test_a_number_is_judged_and_asked_again_with_others(book):
    page = book(chapter="stragglers", part="quiz")
    chapter = lessons.chapter("stragglers")
    item, key = chapter.item("speed_up"), "quiz-stragglers-speed_up"
    answer = chapter.golden.answer("speed_up", item.parameters(page.session_state.dice + 1))
    page.number_input(f"number-{key}").set_value(answer * 1.1)
    next(b for b in page.button if b.form_id == f"form-{key}").click().run()
    assert not page.exception and "right" in words(page) and "the simulator says" in words(page)
    page.button(f"other-{key}").click().run()
    assert f"guess-{key}" not in page.session_state and page.number_input(f"number-{key}").value is None


def test_a_chapter_that_is_not_translated_is_shown_in_english_and_says_so(book):
    page = book(chapter="stragglers", language="ko", everything="true")
    assert "not written in 한국어 yet" in words(page) and "Synchronous SGD and stragglers" in words(page)


def test_a_language_can_be_chosen_where_a_chapter_has_another_and_nowhere_else(book, monkeypatch, tmp_path):
    translation = tmp_path / "text.ko.md"
    translation.write_text("# 낙오자\n\n한 노드가 느리다.\n", "utf-8")
    place = Chapter._path

    def placed(chapter, kind, language):
        korean = (chapter.name, kind, language) == ("stragglers", "text", "ko")
        return translation if korean else place(chapter, kind, language)

    monkeypatch.setattr(Chapter, "_path", placed)
    page = book(chapter="stragglers")
    assert page.button_group("language").options == list(LANGUAGES.values())
    page.button_group("language").set_value("ko").run()
    assert not page.exception and "한 노드가 느리다" in words(page)
    page.radio("chapter").set_value("averaging").run()
    assert not [group for group in page.button_group if group.key == "language"]
    assert "not written in 한국어 yet" in words(page)
    page.radio("chapter").set_value("stragglers").run()
    assert page.button_group("language").value == "ko" and "한 노드가 느리다" in words(page)


def test_a_link_to_nothing_opens_the_first_chapter(book):
    page = book(chapter="../../etc", part="nothing", language="xx")
    assert not page.exception and page.session_state.chapter == CHAPTERS[0]
    assert dict(page.query_params) == {"chapter": CHAPTERS[0]}


def test_the_address_says_what_is_chosen(book):
    page = book(chapter="stragglers", part="quiz", language="ko")
    assert dict(page.query_params) == {"chapter": "stragglers", "part": "quiz", "language": "ko"}


def test_a_figure_is_run_again_in_the_pool_and_shows_what_came_out(book, pool, tmp_path):
    name = "stragglers.a_hundred_machines"
    made = pool(JobState("running", fraction=0.4))
    page = book(chapter="stragglers", everything="true")
    page.button(f"run-text-{name}").click().run()
    assert not page.exception and made.asked == (job_specs.figure_spec(name),)
    assert page.get("progress")[0].proto.text == "Running its experiments."
    made.now = JobState("finished", folder=job_specs.perform(job_specs.figure_spec(name).values, tmp_path))
    page.run()
    assert not page.exception and charts(page) == 6
    assert not any(button.key == f"run-text-{name}" for button in page.button)


def test_a_figure_that_is_run_again_says_with_which_seeds_and_how_many_show_a_claim(book, pool, tmp_path, monkeypatch):
    @figure("Is the seed small?", source="nobody", claims={"it is": lambda rows: rows[0]["seed"] < 4})
    def small(run):
        """In the mean it is."""
        return [{"n": 1, "seed": run.seed}]

    name = "stragglers.a_hundred_machines"
    spec = job_specs.figure_spec(name)
    monkeypatch.setattr(lessons, "find", lambda name: small)
    pool(JobState("finished", folder=job_specs.perform(spec.values, tmp_path)))
    page = book(chapter="stragglers", everything="true")
    page.button(f"run-text-{name}").click().run()
    assert not page.exception and "it is (4 of 5 seeds)" in words(page) and "with seeds 0 to 4" in words(page)


def test_one_of_a_figures_runs_opens_in_the_workbench(book, stored):
    name = "stragglers.waiting_for_fewer"
    query = lessons.recorded_figure(name).runs[1]
    stored(Experiment.from_query(query))
    page = book(chapter="stragglers", everything="true")
    page.selectbox(f"open-text-{name}").select(query)
    page.button(f"go-text-{name}").click().run()
    assert not page.exception
    assert page.session_state.asked == Experiment.from_query(query)
    assert page.selectbox("algorithm").value == "backup" and page.metric


def test_a_solution_is_graded_in_the_pool_and_its_marks_are_shown(book, pool, tmp_path):
    made = pool(JobState("running"))
    page = book(chapter="stragglers", part="exercise")
    key = "solution-stragglers"
    assert page.button(f"grade-{key}").disabled
    page.file_uploader(f"given-{key}").set_value(("mine.py", b"def server(comm, task, s): ...", "text/x-python")).run()
    page.button(f"grade-{key}").click().run()
    assert not page.exception
    (work,) = made.asked
    assert (work.values["check"], work.values["name"]) == ("stragglers", "mine.py")
    assert work.values["source"] == "def server(comm, task, s): ..." and work.values["seed"] >= 0
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "answer.json").write_text(json.dumps(REPORT))
    made.now = JobState("finished", folder=folder)
    page.run()
    assert "60 of 100" in words(page) and "1.70 times" in words(page) and "It hung up." in words(page)
    assert "hello" in [code.value for code in page.code]


def test_the_job_grades_in_its_own_process(tmp_path):
    work = job_specs.grading_spec("stragglers", "def server(comm, task, s): raise ValueError('no')", "mine.py", 3)
    report = job_specs.read(work.perform(tmp_path))
    assert report["score"] == 0 and "no" in report["error"] and work.stored(tmp_path)


def test_the_textbook_needs_neither_torch_nor_compilers(folders):
    program = (
        "import sys\n"
        "from streamlit.testing.v1 import AppTest\n"
        "script = 'from app.views import textbook\\ntextbook.page()'\n"
        "for part in ('text', 'quiz', 'exercise'):\n"
        "    page = AppTest.from_string(script, default_timeout=300)\n"
        "    page.query_params['part'] = part\n"
        "    assert not page.run().exception, page.exception\n"
        "print([name for name in ('torch', 'numba', 'sklearn', 'llvmlite') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.stdout.strip() == "[]", done.stderr
