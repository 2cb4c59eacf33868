"""The book computes in the browser: the same runs as anywhere else, from a disk, without a network."""

import pytest

import lessons
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from lessons import book
from lessons.live import distribution
from tests.chromium import COMPUTED, JOURNEY

pytestmark = JOURNEY
FRAME = 100  # ms for which a page may not answer while it computes
WATCH = """() => {
  window.longest = 0;
  new PerformanceObserver((seen) => {
    for (const task of seen.getEntries()) window.longest = Math.max(window.longest, task.duration);
  }).observe({ type: "longtask" });
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of a book that computes, built once."""

    def no_network(address):
        raise OSError("tests download nothing")

    try:
        pyodide = distribution.load(fetch=no_network)
    except ValueError:
        pytest.skip("Pyodide is not in the cache; lockstep book build --live once puts it there")
    folder = tmp_path_factory.mktemp("live") / "site"
    book.build(folder, pyodide=pyodide)
    return folder


@pytest.fixture
def tab(tab):
    """tab() opens a page that shows what predictions would hide, after the script `before`."""
    return lambda name, before="": tab(name, f'localStorage.setItem("lockstep-everything", "true"); {before}')


def agrees(answer: dict) -> bool:
    """Whether the browser's run took the same virtual time as a run here, and ended at the same loss."""
    here = run(Experiment.from_query(answer["query"]))
    seconds, loss = here.trace.seconds(), float(here.evaluations["loss"][-1])
    return answer["seconds"] == pytest.approx(seconds, rel=1e-9) and answer["loss"] == pytest.approx(loss, abs=1e-4)


@pytest.mark.parametrize("chapter", ["averaging", "stragglers", "gossip"])
def test_a_timeline_tried_in_a_chapter_is_that_of_a_run_here(tab, chapter):
    page = tab(f"{chapter}.html")
    box = page.locator(".movement [data-try]").first
    first = box.evaluate(COMPUTED)
    assert agrees(first) and first["words"].count("as recorded") == 2
    box.locator("[name=workers]").fill("6")
    other = box.evaluate(COMPUTED)
    assert "workers=6" in other["query"] and agrees(other)
    assert box.locator(".plot").count() == 2 and "recorded" in box.locator(".outcome").text_content()


def test_a_page_answers_while_it_computes_and_its_memory_is_used_again(tab):
    page = tab("averaging.html")
    page.evaluate(WATCH)
    box = page.locator("[data-try]").first
    box.evaluate(COMPUTED)
    heaps = []
    for workers in ("5", "6", "7", "8", "5", "6", "7", "8"):
        box.locator("[name=workers]").fill(workers)
        box.evaluate(COMPUTED)
        heaps.append(page.evaluate("lockstep.live.heap()"))
    assert heaps[-1] == heaps[3], heaps


def test_a_setting_that_cannot_be_is_answered_with_the_sentence_of_the_command(tab):
    box = tab("averaging.html").locator("[data-try]").first
    box.evaluate(COMPUTED)
    box.locator("[name=slow]").fill("9:2")
    box.locator("[type=submit]").click()
    box.get_by_text("there is no rank 9; ranks are 0 to").wait_for()


def test_a_browser_that_cannot_suspend_shows_one_sentence_and_no_button(tab):
    page = tab("averaging.html", "delete WebAssembly.Suspending;")
    assert page.get_by_text("Chrome or Edge").count() == 1
    assert not page.get_by_role("button", name="Try it here").count()


def test_a_run_can_be_stopped_and_the_next_one_starts_python_again(tab):
    box = tab("playground.html").locator("[data-playground]")
    assert agrees(box.evaluate(COMPUTED))
    box.locator("[name=workers]").fill("32")
    box.locator("[name=steps]").fill("1000")  # so long that it still runs when it is stopped
    box.locator("[type=submit]").click()
    box.get_by_role("button", name="Stop").click()
    box.get_by_text("Stopped.").wait_for()
    box.locator("[name=workers]").fill("3")
    box.locator("[name=steps]").fill("5")
    assert agrees(box.evaluate(COMPUTED))


def test_python_can_be_stopped_while_it_starts(tab):
    page = tab("playground.html")
    page.locator("[type=submit]").click()
    page.get_by_text("Starting Python").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped.").wait_for()


def test_the_playground_runs_any_algorithm_and_its_address_repeats_the_run(tab):
    page = tab("playground.html")
    box = page.locator("[data-playground]")
    box.locator("[name=algorithm]").select_option("gpipe")
    box.locator("[name=steps]").fill("5")
    first = box.evaluate(COMPUTED)
    assert "algorithm=gpipe" in page.url and agrees(first)
    again = tab(f"playground.html{page.url[page.url.index('#') :]}").locator("[data-playground]")
    assert again.locator("[name=algorithm]").input_value() == "gpipe"
    assert again.evaluate(COMPUTED)["seconds"] == first["seconds"]


@pytest.mark.parametrize("name", ["compression.latency_floor", "overlap.bucket_size"])
def test_a_figure_tried_in_a_chapter_has_the_recorded_numbers_until_a_setting_is_changed(tab, name):
    page = tab(f"{name.partition('.')[0]}.html")
    box = page.locator(f"[data-try='{name}']")
    assert "within" in box.evaluate(COMPUTED)["words"]
    box.locator("[name=latency]").evaluate("field => { field.value = '0.0002'; }")
    assert "times what was recorded" in box.evaluate(COMPUTED)["words"]
    assert box.locator(".plot:not([hidden])").count() == 1


ANSWERED = """box => new Promise((done) => {
  box.addEventListener("computed", ({ detail }) => done(detail), { once: true });
  box.querySelector("[name=guess]").checked = true;
  box.querySelector("form").requestSubmit();
  box.querySelector(".told .try button").click();
})"""


@pytest.mark.parametrize("chapter", ["sgd", "averaging"])
def test_a_prediction_is_answered_by_the_readers_own_run(tab, chapter):
    page = tab(f"{chapter}.html")
    item = next(one for one in lessons.chapter(chapter).items if one.live and one.choices)
    box = page.locator(f".question[data-place=predict][data-item={item.name}]")
    found = box.evaluate(ANSWERED)
    assert found["answer"] == box.evaluate("box => box.drawn.answer")
    assert "as recorded" in box.locator(".told .outcome").text_content()


GRADED = """([box, source]) => new Promise((done) => {
  box.addEventListener("computed", ({ detail }) => done(detail), { once: true });
  box.editor.value = source;
  [...box.querySelectorAll("button")].find((one) => one.textContent === "Check").click();
})"""


def test_an_exercise_is_graded_in_the_page_and_an_endless_loop_is_ended(tab):
    page = tab("stragglers.html")
    box = page.locator("[data-exercise]")
    box.get_by_role("button", name="Write it here").click()
    box.locator(".cm-content").wait_for()
    solution = (lessons.chapter("stragglers").folder / "solution.py").read_text("utf-8")
    good = page.evaluate(GRADED, [box.element_handle(), solution])
    assert good["score"] == 100 and page.evaluate("reader.document.scores.stragglers.score") == 100
    bad = page.evaluate(GRADED, [box.element_handle(), "def server(comm, task, s):\n    return s.backup\n"])
    assert bad["score"] == 0 and "s has backups and learning_rate, no backup in line 2" in bad["error"]
    box.evaluate("box => { box.editor.value = 'while True:\\n    pass\\n'; }")
    box.get_by_role("button", name="Check").click()
    box.get_by_text("is there an endless loop?").wait_for()
    assert page.evaluate(GRADED, [box.element_handle(), solution])["score"] == 100


def test_tab_indents_in_the_editor_and_leaves_it_after_escape(tab):
    page = tab("stragglers.html")
    box = page.locator("[data-exercise]")
    box.get_by_role("button", name="Write it here").click()
    box.locator(".cm-content").wait_for()
    page.keyboard.press("Tab")
    assert box.evaluate("box => box.editor.value").startswith('    """')
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Check"
    page.reload()
    box.get_by_role("button", name="Write it here").click()
    box.locator(".cm-content").wait_for()
    assert box.evaluate("box => box.editor.value").startswith('    """')  # the draft is kept


def test_without_its_script_the_editor_is_a_plain_text_area(site, tab):
    script = site / "assets" / "codemirror" / "codemirror.js"
    content = script.read_text("utf-8")
    script.write_text("", "utf-8")
    try:
        box = tab("stragglers.html").locator("[data-exercise]")
        box.get_by_role("button", name="Write it here").click()
        box.locator("textarea").wait_for()
    finally:
        script.write_text(content, "utf-8")
    assert "def server(" in box.evaluate("box => box.editor.value")


def test_an_exercise_whose_check_takes_minutes_says_so_and_has_no_button(tab):
    box = tab("choosing.html").locator("[data-exercise]")
    assert "several minutes" in box.text_content() and not box.get_by_role("button").count()


@pytest.mark.parametrize("chapter", ["collectives", "model_parallel", "shared_memory"])
def test_other_solutions_earn_every_mark_in_the_page(tab, chapter):
    page = tab(f"{chapter}.html")
    box = page.locator("[data-exercise]")
    box.get_by_role("button", name="Write it here").click()
    box.locator(".cm-content").wait_for()
    folder = lessons.chapter(chapter).folder
    for name, score in {"exercise.py": 0, "solution.py": 100}.items():
        graded = page.evaluate(GRADED, [box.element_handle(), (folder / name).read_text("utf-8")])
        assert graded["score"] == score, graded["error"]
