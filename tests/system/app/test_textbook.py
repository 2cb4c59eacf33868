"""The pages of the textbook, driven without a browser."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import pytest
from streamlit.testing.v1 import AppTest

import lessons
from app.browser.text import escape_markdown
from app.session import poll, session
from app.textbook import front
from app.textbook.page import PARTS
from experiments.jobs.job import JobState
from experiments.specification.experiment import Experiment
from lessons import golden, job_specs, markup, notation
from lessons.chapters import Chapter
from lessons.figure import figure
from lessons.grading.sheet import Sheet
from tests.book import unfolded
from tests.patience import PATIENCE
from tests.tiers import slow_except

ROOT = Path(__file__).resolve().parents[3]
CHAPTERS = [one.name for one in lessons.written_chapters()]
REPORT = {
    "chapter": "stragglers", "score": 60, "seed": 5, "seconds": 1.5, "error": "it hung up", "printed": "hello",
    "sandbox": {}, "marks": [
        {"name": "right", "points": 3, "earned": 3, "observed": "40 updates"},
        {"name": "quick", "points": 2, "earned": 0, "observed": "1.70 times"},
    ],
}  # fmt: skip


AFTER = lessons.CHAPTERS[lessons.CHAPTERS.index("stragglers") + 1]
OTHERS = "Of 2 first answers here, 1 was right (1 of the 2 who were sure), and 1 gave the same answer."


def script():
    import streamlit as st

    from app.textbook import page as textbook
    from app.workbench import workbench

    pages = [st.Page(textbook.page, title="Textbook", default=True), st.Page(workbench.page, url_path="workbench")]
    st.navigation(pages).run()


@pytest.fixture
def book(folders):
    """book(**address) is the textbook as it opens with that link."""

    def opened(**address):
        test = AppTest.from_function(script, default_timeout=PATIENCE)
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


def block_question(block):
    return lessons.recorded_figure(block.figure).question


def charts(page) -> int:
    return sum("chart-" in one.proto.id for one in page.get("bidi_component"))


EVERY_KIND = ("collectives", "large_batches", "pipelines")  # of block, in the text and in folds


@pytest.mark.slow
def test_some_chapters_have_every_kind_of_block_inside_and_outside_of_folds():
    def kinds(chapters):
        every = [block for name in chapters for block in lessons.chapter(name).blocks()]
        inner = [block for fold in every if isinstance(fold, markup.Fold) for block in fold.blocks]
        return {*map(type, every)}, {*map(type, inner)}

    assert kinds(EVERY_KIND) == kinds(CHAPTERS)


@pytest.mark.parametrize("name", slow_except(EVERY_KIND, CHAPTERS))
def test_a_chapter_shows_all_of_its_text_figures_and_sources(book, name):
    page = book(chapter=name, everything="true")
    blocks = [*unfolded(lessons.chapter(name).blocks())]
    assert not page.exception
    assert charts(page) == sum(isinstance(block, markup.LiveFigure) for block in blocks)
    assert [block.source for block in blocks if isinstance(block, markup.Code)] == [code.value for code in page.code]
    said = words(page).replace("\n", " ")
    linked = unfolded(lessons.chapter(name).blocks(front.address))
    texts = [block.markdown for block in linked if isinstance(block, markup.Text)]
    first, *others = (" ".join(text.split("\n")) for text in texts)
    assert all(text in said for text in others) and first.partition("  ")[2] in said
    assert [head.value for head in page.subheader if head.value.startswith("Figure")] == [
        escape_markdown(f"Figure {lessons.chapter(name).figure_number(block.figure)}. {block_question(block)}")
        for block in blocks
        if isinstance(block, markup.LiveFigure)
    ]


EVERY_PART = [(name, part) for name in CHAPTERS for part in PARTS]
ONE_PART_EACH = [(name, [*PARTS][n % len(PARTS)]) for n, name in enumerate(CHAPTERS)]


@pytest.mark.parametrize(("name", "part"), slow_except(ONE_PART_EACH, EVERY_PART))
def test_every_part_of_a_chapter_opens(book, name, part):
    page = book(chapter=name, part=part)
    assert not page.exception and page.session_state.part == part
    assert words(page)


def test_the_text_goes_on_when_a_prediction_was_made(book):
    page = book(chapter="stragglers")
    before, shown = len(page.markdown), charts(page)
    assert shown == 0 and "How much of the time of N machines" not in words(page)
    page.radio("choice-predict-stragglers-elsewhere").set_value("noise")
    page.button("sure-1-predict-stragglers-elsewhere").click().run()
    assert not page.exception and charts(page) == 1 and len(page.markdown) > before
    item = lessons.chapter("stragglers").item("elsewhere")
    assert "Not quite" in words(page) and " ".join(item.choice("noise").but.split()) in " ".join(words(page).split())
    assert f"The right answer: **{item.choice('same').says}**" in words(page)


def test_who_has_answered_hears_how_many_of_all_were_right(book):
    poll.here.clear()
    for answer, said in (("same", []), ("noise", [OTHERS])):
        page = book(chapter="stragglers")
        page.radio("choice-predict-stragglers-elsewhere").set_value(answer)
        page.button("sure-2-predict-stragglers-elsewhere").click().run()
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
    page.button(f"sure-0-{key}").click().run()
    assert not page.exception and "Right" in words(page) and "the simulator says" in words(page)
    page.button(f"other-{key}").click().run()
    again = chapter.golden.answers["speed_up"]
    (asked,) = [values for values, _ in again if item.question(values) in words(page)]
    assert (
        page.number_input(f"number-{key}").value is None and asked != page.session_state.progress.answers[0].parameters
    )


def links(page) -> list:
    """The links to chapters on the page, in their order."""
    return [node.proto for node in page.get("page_link")]


def places(page) -> list[str]:
    return [link.query_string for link in links(page)]


def follow(page, link) -> None:
    """Open the address of a link within the session, as a browser does."""
    for name in [*page.query_params]:
        del page.query_params[name]
    for name, value in parse_qsl(link.query_string):
        page.query_params[name] = value
    page.run()


def test_a_link_to_nothing_opens_the_first_page(book):
    page = book(chapter="../../etc", part="nothing")
    assert not page.exception and page.session_state.chapter == "contents"
    assert dict(page.query_params) == {}, "as it is called from outside: else Back would never lead out of the book"


def test_the_first_page_lists_all_chapters_in_order_and_the_notation(book):
    page = book()
    begin, *entries = [link.label for link in links(page)]
    assert entries == [front.name(lessons.chapter(name)) for name in lessons.CHAPTERS]
    for one in map(lessons.chapter, lessons.CHAPTERS):
        assert front.facts(one) in words(page)
    parts = [words(page).find(f"## {title}") for title in lessons.PARTS.values()]
    assert -1 < parts[0] < parts[1] < words(page).find("## Notation")
    assert f"Each of the {len(lessons.CHAPTERS)} chapters asks" in words(page)
    assert "more to go deeper, easy" in words(page) and "[For instructors](instructors)" in words(page)
    free = [one for one in map(lessons.chapter, lessons.CHAPTERS) if not one.front.prerequisites]
    first = next(one for one in free if one.front.difficulty == min(other.front.difficulty for other in free))
    assert f"start with chapter {first.number}, {escape_markdown(first.title())}" in words(page)
    assert all(str(one.number) in words(page).partition(" need no other chapter")[0] for one in free)
    assert notation.table() in words(page)
    assert begin == f"Begin with chapter {front.name(first)}"
    (entry,) = (link for link in links(page) if link.query_string == "chapter=staleness")
    follow(page, entry)
    assert not page.exception and page.session_state.chapter == "staleness"
    assert dict(page.query_params) == {"chapter": "staleness"}


def test_a_link_to_a_chapter_keeps_that_everything_is_open_and_opens_the_text(book):
    page = book(chapter="staleness", part="quiz", everything="true")
    link = links(page)[-1] if links(page) else None
    assert link is None, "a quiz has no ways on"
    page = book(chapter="staleness", everything="true")
    follow(page, links(page)[-1])
    assert not page.exception and page.session_state.everything and page.session_state.part == "text"
    assert page.session_state.chapter != "staleness"


def test_a_chapter_chosen_at_the_side_is_not_undone_by_the_address_of_the_one_before(book):
    page = book(chapter="staleness")
    page.radio("chapter").set_value("overlap").run()
    assert page.session_state.chapter == "overlap" and dict(page.query_params) == {"chapter": "overlap"}


@pytest.mark.parametrize("name", slow_except(3, lessons.CHAPTERS))
def test_a_chapter_begins_with_what_it_asks_and_ends_with_the_ways_on(book, name):
    page, chapter = book(chapter=name, everything="true"), lessons.chapter(name)
    assert not page.exception
    assert f"Chapter {chapter.number} of {len(lessons.CHAPTERS)}: {front.facts(chapter)}" in words(page)
    assert all(objective in words(page).replace("\\", "") for objective in chapter.front.objectives)
    place = lessons.CHAPTERS.index(name)
    ways = [
        *chapter.front.prerequisites,
        *lessons.CHAPTERS[max(0, place - 1) : place],
        *lessons.CHAPTERS[place + 1 :][:1],
    ]
    after = [one for one in lessons.CHAPTERS if name in lessons.chapter(one).front.prerequisites]
    assert [link.query_string for link in links(page)] == [f"chapter={one}&everything=true" for one in [*ways, *after]]


def test_contents_are_links_as_far_as_predictions_were_made(book):
    page = book(chapter="stragglers")
    assert "- [The naive answer: share the batch](#" in words(page)
    assert "- :material/lock: The measurement that embarrasses it" in words(page)
    assert "[The measurement that embarrasses it](#" not in words(page)
    assert "Locked sections open" in words(page) and f"chapter={AFTER}" not in places(page)
    page.button("skip-elsewhere").click().run()
    assert "- [The measurement that embarrasses it](#" in words(page)
    assert "- :material/lock: The next idea: do not wait for the last" in words(page)
    page.toggle("everything").set_value(True).run()
    assert "material/lock" not in words(page) and f"chapter={AFTER}&everything=true" in places(page)


def test_a_chapter_without_text_shows_its_figures_recorded_or_not(book, monkeypatch, draft):
    name, chapter = draft, lessons.chapter(draft)
    kept = lessons.chapter("stragglers").golden.figures["stragglers.a_hundred_machines"]
    some = golden.Golden({chapter.figures_on_page[1]: replace(kept, name=chapter.figures_on_page[1])}, {})
    monkeypatch.setattr(Chapter, "golden", some)
    page = book(chapter=name)
    assert not page.exception and charts(page) == 1
    heads = [head.value for head in page.subheader]
    asked = [chapter.figure_questions[one] for one in chapter.figures_on_page]
    assert len(heads) == len(asked) > 5
    assert (
        heads[0] == escape_markdown(f"Figure {chapter.number}.1. {asked[0]}")
        and words(page).count("Not recorded yet") == len(asked) - 1
    )
    monkeypatch.setattr(Chapter, "golden", golden.EMPTY)
    assert "No figure of this chapter is recorded yet" in words(book(chapter=name))


@pytest.mark.parametrize("name", ["averaging", "staleness", "stragglers"])
def test_figures_that_a_text_does_not_show_are_reached_at_its_end(book, name):
    chapter = lessons.chapter(name)
    more = [one for one in chapter.figure_questions if one not in chapter.figures_on_page]
    asked = [escape_markdown(chapter.figure_questions[one]) for one in more]

    def offered(page):
        return [one.label for one in page.expander if one.label in asked]

    assert more and not offered(book(chapter=name))  # not before the text is open
    opened = book(chapter=name, everything="true")
    assert offered(opened) == asked
    before = charts(opened)
    for one in more:
        opened.session_state[f"more-{one}"] = True
    opened.run()
    recorded = [one for one in more if one in chapter.golden.figures]
    assert not opened.exception and charts(opened) == before + len(recorded)
    assert all(f"book show {one}" in words(opened) for one in more if one not in recorded)


def test_what_is_folded_is_closed_at_first_and_has_its_blocks_in_it(book, monkeypatch):
    text = (
        "# Title\n\nwords\n\n{{ fold Why so }}\n\ninside\n\n{{ more_machines }}\n\n"
        "{{ schedule zb_h1 ranks=4 chunks=8 }}\n\n{{ end fold }}\n\nand on"
    )
    monkeypatch.setattr(Chapter, "text", lambda self: text)
    page = book(chapter="stragglers")
    (fold,) = (one for one in page.expander if one.label == "Deeper: Why so")
    assert not page.exception and not fold.proto.expanded
    inside = [one.value for one in fold.markdown]
    assert inside[0] == "inside" and "and on" not in inside
    number = lessons.chapter("stragglers").number
    assert fold.subheader[0].value.startswith(f"Figure {number}.1.") and f"Figure {number}.2. ZB-H1" in words(fold)
    assert f"{number} of {len(lessons.CHAPTERS)}: 0 minutes, 2 more to go deeper" in words(page)


def test_a_text_is_read_before_anything_is_recorded(book, monkeypatch):
    monkeypatch.setattr(Chapter, "golden", golden.EMPTY)
    page = book(chapter="stragglers")
    assert not page.exception and charts(page) == 0
    assert "? times as fast as one" in words(page) and "(Not recorded yet.)" in words(page)
    assert len(page.subheader) == len(lessons.chapter("stragglers").figures_on_page)


def test_movement_in_a_text_is_shown(book, monkeypatch):
    text = "# Title\n\nwords\n\n{{ schedule zb_h1 ranks=4 chunks=8 }}\n\n{{ timeline algorithm=easgd workers=3 }}\n"
    monkeypatch.setattr(Chapter, "text", lambda self: text)
    page = book(chapter="pipelines")
    said = words(page).replace("\\", "")
    assert not page.exception and "ZB-H1: 8 micro-batches on 4 ranks" in said and "EASGD on 3 workers" in said


@pytest.mark.parametrize("recorded", [True, False])
def test_what_a_text_shows_twice_is_there_twice(book, monkeypatch, recorded):
    if not recorded:
        monkeypatch.setattr(Chapter, "golden", golden.EMPTY)
    one = (
        "{{ more_machines }}\n\n{{ code algorithms.parts.optimizers.Optimizer }}\n\n"
        "{{ schedule zb_h1 ranks=4 chunks=8 }}\n\n{{ timeline algorithm=easgd workers=3 }}\n\n"
    )
    folded = "".join(f"{{{{ fold {why} }}}}\n\n{one}{{{{ end fold }}}}\n\n" for why in ("Why so", "And why not"))
    monkeypatch.setattr(Chapter, "text", lambda self: "# Title\n\nwords\n\n" + one + folded + one)
    page = book(chapter="stragglers")
    assert not page.exception and not page.error
    said = words(page).replace("\\", "")
    assert len(page.subheader) == 4 and said.count("ZB-H1: 8 micro") == 4
    assert len([code for code in page.code if "class Optimizer" in code.value]) == 4


def test_the_address_says_what_is_chosen(book):
    page = book(chapter="stragglers", part="quiz")
    assert dict(page.query_params) == {"chapter": "stragglers", "part": "quiz"}


@pytest.mark.slow
def test_bugs_begin_with_the_chapters_own_and_a_link_keeps_the_one_that_was_chosen(book):
    page = book(chapter="overlap", part="bugs")
    assert page.selectbox(key="bug").value == "overlap"
    page.selectbox(key="bug").select("easgd").run()
    page.sidebar.radio(key="chapter").set_value("gossip").run()
    assert page.selectbox(key="bug").value == "dpsgd" and page.query_params["bug"] == "dpsgd"
    page.sidebar.radio(key="chapter").set_value("sgd").run()
    page.selectbox(key="bug").select("top_k").run()
    assert book(**dict(page.query_params)).selectbox(key="bug").value == "top_k"


@pytest.mark.slow
def test_a_figure_is_run_again_in_the_pool_and_shows_what_came_out(book, pool, tmp_path):
    name = "stragglers.steps_against_batch"  # the quickest of the chapter
    made = pool(JobState("running", fraction=0.4))
    page = book(chapter="stragglers", everything="true")
    page.button(f"run-text-{name}").click().run()
    assert not page.exception and made.asked == (job_specs.figure_spec(name),)
    (running,) = page.get("progress")
    assert running.proto.text == "Running its experiments; until they finish, the published figure is shown."
    assert headed(page, running) == lessons.recorded_figure(name).question  # below its picture, where the button was
    made.now = JobState("finished", folder=job_specs.perform(job_specs.figure_spec(name).values, tmp_path))
    page.run()
    assert not page.exception and charts(page) == 6
    assert not any(button.key == f"run-text-{name}" for button in page.button)


def headed(page, element) -> str:
    """Return the question of the last figure that begins above this element."""
    nodes = [*page.main]
    above = [one.value for one in nodes[: nodes.index(element)] if one.type == "subheader"]
    return above[-1].partition(". ")[2]


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
    assert page.query_params["from"] == "chapter=stragglers&everything=true#figure-stragglers-waiting_for_fewer"


def test_no_two_runs_of_a_figure_have_the_same_words_in_its_menu(book):
    page = book(chapter="averaging", everything="true")
    menus = [menu for menu in page.selectbox if menu.key.startswith("open-")]
    assert menus and all(len(set(menu.options)) == len(menu.options) for menu in menus)
    slow = page.selectbox("open-text-averaging.who_is_first")
    assert any("three times slower" in words for words in slow.options)


def test_who_comes_from_a_figure_of_the_book_is_led_back_to_it(page, stored):
    stored(Experiment())
    shown = page(urlencode({"from": "chapter=stragglers&everything=true#figure-stragglers-waiting_for_fewer"}))
    assert shown.button("back-to-chapter").label.startswith("Back to the chapter: ")
    shown.button("back-to-chapter").click().run()
    state = shown.session_state
    assert not shown.exception and state.chapter == "stragglers" and state.everything
    assert state.returning == {"anchor": "figure-stragglers-waiting_for_fewer", "number": 1}


@pytest.mark.parametrize("link", ["", "chapter=nothing#x", "chapter", "%%%", "part=quiz#"])
def test_who_does_not_come_from_the_book_is_not_led_back_to_it(page, stored, link):
    stored(Experiment())
    shown = page(urlencode({"from": link}))
    assert not shown.exception and not shown.warning
    assert not [button for button in shown.button if button.key == "back-to-chapter"]


def test_a_solution_is_graded_in_the_pool_and_its_marks_are_shown(book, pool, tmp_path):
    made = pool(JobState("running"))
    page = book(chapter="stragglers", part="exercise")
    key = "solution-stragglers"
    assert page.button(f"grade-{key}").disabled and "Upload a file first" in page.button(f"grade-{key}").help
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


def test_a_start_file_gets_no_score_on_the_page_but_is_told_that_nothing_is_handed_in_yet(book, pool, tmp_path):
    report = {**REPORT, "score": 0, "marks": [], "untouched": True, "error": "this is the start file."}
    (tmp_path / "answer.json").write_text(json.dumps(report))
    pool(JobState("finished", folder=tmp_path))
    page = book(chapter="stragglers", part="exercise")
    page.file_uploader("given-solution-stragglers").set_value(("mine.py", b"def server(): ...", "text/x-python")).run()
    page.button("grade-solution-stragglers").click().run()
    assert [one.value for one in page.info] == ["Nothing is handed in yet. This is the start file."]
    assert not page.exception and "0 of 100" not in words(page) and "Hidden cases" not in words(page)


def test_a_solution_that_is_written_on_the_page_goes_to_the_same_grader(book, pool):
    made = pool(JobState("running"))
    page, key = book(chapter="stragglers", part="exercise"), "solution-stragglers"
    page.button_group(f"how-{key}").set_value("here").run()
    assert page.text_area(f"typed-{key}").value == Sheet(lessons.chapter("stragglers")).program
    page.text_area(f"typed-{key}").set_value("  ").run()
    assert page.button(f"grade-{key}").disabled
    page.text_area(f"typed-{key}").set_value("def server(comm, task, s): ...").run()
    page.button(f"grade-{key}").click().run()
    assert not page.exception
    (work,) = made.asked
    assert work.values["source"] == "def server(comm, task, s): ..."
    assert work.values["name"] == "stragglers_solution.py" and work.values["seed"] >= 0


def test_the_job_grades_in_its_own_process(tmp_path):
    work = job_specs.grading_spec("stragglers", "def server(comm, task, s): raise ValueError('no')", "mine.py", 3)
    report = job_specs.read(work.perform(tmp_path))
    assert report["score"] == 0 and "no" in report["error"] and work.find_result(tmp_path)


def test_the_textbook_needs_neither_torch_nor_compilers(folders):
    program = (
        "import sys\n"
        "from streamlit.testing.v1 import AppTest\n"
        "script = 'from app.textbook import page as textbook\\ntextbook.page()'\n"
        "for part in ('text', 'quiz', 'exercise'):\n"
        f"    page = AppTest.from_string(script, default_timeout={PATIENCE})\n"
        "    page.query_params['part'], page.query_params['chapter'] = part, 'stragglers'\n"
        "    assert not page.run().exception, page.exception\n"
        "print([name for name in ('torch', 'numba', 'sklearn', 'llvmlite') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
