"""What a reader has done stays, in a real Chromium."""

import json
import re
from pathlib import Path

import pytest

from lessons import progress, returning
from tests.chromium import JOURNEY
from tests.system.app.test_journey import (  # noqa: F401  (address and runs are fixtures)
    ROOT,
    address,
    expect,
    runs,
)
from tests.unit.lessons.test_progress import CHAPTERS, some_documents

pytestmark = JOURNEY

SAID = re.compile("You said")
SLOWLY = """() => {
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (...what) { setTimeout(() => send.apply(this, what), 2000); };
}"""  # what this tab tells the server arrives late
PRIVATE = "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };"


@pytest.fixture
def reader(browser):
    """reader() is the window of a reader who has never been here; several tabs of it share their storage."""
    contexts = []

    def opened(script: str = "", **how):
        context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce", **how)
        contexts.append(context)
        context.add_init_script(script)
        return context

    yield opened
    for context in contexts:
        context.close()


def answer(tab, name: str, choice: str, sure: str) -> None:
    """Answer a question of the page."""
    item = tab.locator(f".st-key-item-{name}")
    item.get_by_text(choice).click()
    item.get_by_role("button", name=sure, exact=True).click()
    said = item.get_by_text(SAID)
    expect(said.or_(tab.get_by_text("Choose an answer first.")).first).to_be_visible()
    if not said.is_visible():  # the page was drawn anew between the two clicks, as a busy server does
        item.get_by_text(choice).click()
        item.get_by_role("button", name=sure, exact=True).click()
    expect(said).to_be_visible()


def kept(tab) -> progress.ReaderProgress:
    """What the browser has stored."""
    return progress.read(tab.evaluate(f"localStorage.getItem('{progress.KEY}')"))


def wait_for_answers(tab, number: int) -> None:
    tab.wait_for_function(
        f"JSON.parse(localStorage.getItem('{progress.KEY}') ?? '{{\"answers\": []}}').answers.length === {number}"
    )


def part(tab, name: str) -> None:
    tab.get_by_role("radio", name=name, exact=True).click()


def test_a_reader_who_reloads_in_the_middle_is_where_he_was_with_his_answers(address, reader):  # noqa: F811
    tab = reader().new_page()
    tab.goto(f"{address}/textbook?chapter=stragglers")
    answer(tab, "predict-stragglers-elsewhere", "It is a little higher", "sure")
    tab.get_by_role("spinbutton").fill("7")
    tab.locator(".st-key-item-predict-stragglers-speed_up").get_by_role("button", name="unsure").click()
    wait_for_answers(tab, 2)
    heads = tab.locator(".st-key-reader h2")
    expect(heads.nth(2)).to_be_attached()
    place = heads.nth(1).get_attribute("id")
    heads.nth(1).evaluate("head => head.scrollIntoView()")
    tab.wait_for_function(
        f"Object.values(JSON.parse(localStorage.getItem('{progress.KEY}')).places).includes('{place}')"
    )
    tab.reload()
    expect(tab.get_by_text("You said 7 times")).to_be_attached()
    expect(tab.locator(f"#{place}")).to_be_in_viewport()
    tab.goto(f"{address}/textbook")  # the contents
    tab.get_by_role("button", name="Continue where you were").click()
    expect(tab.get_by_text(SAID)).to_have_count(2)
    expect(tab.get_by_text("You said 7 times")).to_be_attached()
    expect(tab.locator(f"#{place}")).to_be_in_viewport()
    assert "chapter=stragglers" in tab.url


def test_who_exports_clears_and_imports_has_lost_nothing(address, reader, tmp_path):  # noqa: F811
    tab = reader().new_page()
    tab.goto(f"{address}/textbook?chapter=stragglers")
    answer(tab, "predict-stragglers-elsewhere", "It is a little higher", "fairly sure")
    part(tab, "My work")
    expect(tab.get_by_text("1 of 6")).to_be_visible()
    with tab.expect_download() as taking:
        tab.get_by_role("button", name="Download my progress").click()
    taking.value.save_as(tmp_path / "mine.json")
    before = kept(tab)
    assert len(before.answers) == 1 and progress.read((tmp_path / "mine.json").read_text()).answers == before.answers
    tab.evaluate("localStorage.setItem('lockstep-verdicts', '{}')")
    tab.get_by_role("button", name="Forget everything").click()
    tab.get_by_role("button", name="Yes, forget everything").click()
    expect(tab.get_by_text("0 of 6").first).to_be_visible()
    tab.wait_for_function("localStorage.getItem('lockstep-verdicts') === null")  # of the workbench's questions
    tab.wait_for_function(f"!(JSON.parse(localStorage.getItem('{progress.KEY}')) ?? {{answers: []}}).answers.length")
    tab.reload()
    expect(tab.get_by_text("0 of 6").first).to_be_visible()
    tab.locator("input[type=file]").set_input_files(tmp_path / "mine.json")
    expect(tab.get_by_text("1 answer more than before")).to_be_visible()
    wait_for_answers(tab, 1)
    tab.reload()
    expect(tab.get_by_text("1 of 6")).to_be_visible()
    assert kept(tab).answers == before.answers


def test_what_was_wrong_and_sure_comes_back_first(address, reader):  # noqa: F811
    tab = reader().new_page()
    tab.goto(f"{address}/textbook?chapter=stragglers&part=quiz")
    answer(tab, "quiz-stragglers-elsewhere", "It is a little higher", "unsure")
    answer(tab, "quiz-stragglers-dearest", "Both the same", "sure")
    part(tab, "Review")
    expect(tab.get_by_text("2 questions are due; you were sure of 1 of them, but wrong.")).to_be_visible()
    expect(tab.locator("[class*=st-key-item-again-stragglers-dearest]")).to_be_visible()
    tab.reload()
    expect(tab.locator("[class*=st-key-item-again-stragglers-dearest]")).to_be_visible()


def test_two_tabs_of_a_reader_lose_no_answer_and_learn_from_each_other(address, reader):  # noqa: F811
    window = reader()
    one, two = window.new_page(), window.new_page()
    for tab in (one, two):
        tab.goto(f"{address}/textbook?chapter=stragglers&part=quiz")
        expect(tab.locator(".st-key-item-quiz-stragglers-dearest")).to_be_visible()
    answer(one, "quiz-stragglers-elsewhere", "It is a little higher", "unsure")
    answer(two, "quiz-stragglers-dearest", "Both the same", "sure")
    for tab in (one, two):
        wait_for_answers(tab, 2)
        expect(tab.get_by_text(SAID)).to_have_count(2)


def test_who_forgets_in_one_tab_has_forgotten_in_the_other(address, reader):  # noqa: F811
    window = reader()
    one, two = window.new_page(), window.new_page()
    one.goto(f"{address}/textbook?chapter=stragglers&part=quiz")
    answer(one, "quiz-stragglers-elsewhere", "It is a little higher", "unsure")
    wait_for_answers(one, 1)
    two.goto(f"{address}/textbook?chapter=stragglers&part=work")
    expect(two.get_by_text("1 of 6")).to_be_visible()
    two.evaluate(SLOWLY)
    part(one, "My work")
    expect(one.get_by_text("1 of 6")).to_be_visible()
    one.get_by_role("button", name="Forget everything").click()
    one.get_by_role("button", name="Yes, forget everything").click()
    for tab in (one, two):
        expect(tab.get_by_text("1 of 6")).to_have_count(0)
        expect(tab.get_by_text("0 of 6").first).to_be_visible()
    part(one, "Quiz")
    answer(one, "quiz-stragglers-dearest", "Both the same", "sure")
    for tab in (one, two):
        wait_for_answers(tab, 1)
        assert [a.item for a in kept(tab).answers] == ["dearest"]
    two.reload()
    expect(two.get_by_text("1 of 6")).to_be_visible()


def test_a_name_stays_after_a_reload_and_so_does_another(address, reader):  # noqa: F811
    window = reader()
    tab, other = window.new_page(), window.new_page()
    for page in (tab, other):
        page.goto(f"{address}/textbook?chapter=stragglers&part=work")
    for name in ("Ada", "Emmy"):
        tab.get_by_role("textbox", name="Your name").fill(name)
        tab.get_by_role("textbox", name="Your name").press("Enter")
        tab.wait_for_function(f"JSON.parse(localStorage.getItem('{progress.KEY}')).reader === '{name}'")
        expect(other.get_by_role("textbox", name="Your name")).to_have_value(name)
        tab.reload()
        expect(tab.get_by_role("textbox", name="Your name")).to_have_value(name)
        with tab.expect_download() as taking:
            tab.get_by_role("button", name="Download the file to hand in").click()
        assert progress.read(Path(taking.value.path()).read_text()).reader == name
        assert taking.value.suggested_filename == f"{name.lower()}-lockstep.json"


def test_the_score_of_an_exercise_is_there_after_a_reload(address, reader):  # noqa: F811
    tab = reader().new_page()
    tab.goto(f"{address}/textbook?chapter=stragglers&part=exercise")
    tab.locator("input[type=file]").set_input_files(ROOT / "lessons" / "stragglers" / "solution.py")
    tab.get_by_role("button", name="Grade it").click()
    expect(tab.get_by_role("heading", name="100 of 100")).to_be_visible()
    tab.wait_for_function(f"JSON.parse(localStorage.getItem('{progress.KEY}')).scores.stragglers?.score === 100")
    tab.reload()
    part(tab, "My work")
    expect(tab.get_by_role("cell", name="100 of 100")).to_be_visible()
    assert kept(tab).scores["stragglers"].score == 100


def test_who_answers_again_after_a_reload_does_not_count_again_in_the_poll(address, reader):  # noqa: F811
    name = "quiz-averaging-seldom"
    tab = reader().new_page()
    tab.goto(f"{address}/textbook?chapter=averaging&part=quiz")
    answer(tab, name, "It rises", "sure")
    wait_for_answers(tab, 1)
    tab.reload()
    item = tab.locator(f".st-key-item-{name}")
    expect(item.get_by_text(SAID)).to_be_visible()
    item.get_by_role("button", name="Ask again").click()
    answer(tab, name, "It rises", "unsure")
    wait_for_answers(tab, 2)
    expect(item.get_by_text("first answers here")).to_have_count(0)  # nobody else has answered
    someone = reader().new_page()
    someone.goto(f"{address}/textbook?chapter=averaging&part=quiz")
    answer(someone, name, "It rises", "sure")
    expect(someone.locator(f".st-key-item-{name}").get_by_text("Of 2 first answers here")).to_be_visible()


def test_a_reader_without_storage_is_told_that_nothing_is_kept(address, reader):  # noqa: F811
    tab = reader(PRIVATE).new_page()
    tab.goto(f"{address}/textbook?chapter=stragglers")
    expect(tab.get_by_text("This browser cannot store anything")).to_be_visible()
    answer(tab, "predict-stragglers-elsewhere", "It is a little higher", "sure")


def test_python_and_javascript_merge_and_bring_back_alike(reader):
    documents = some_documents(60)
    plain = [json.loads(one.text()) for one in documents]
    tab = reader().new_page()
    script = progress.SCRIPT.read_text("utf-8")
    merged, returns = tab.evaluate(
        f"""([documents, chapters]) => {{ {script}
            const pairs = documents.map((one, n) => progress.merge(one, documents[(n * 7 + 1) % documents.length]));
            const returns = pairs.map((one) => progress.returns(one.answers, chapters)
                .map((r) => [r.chapter, r.item, r.urgency, r.at]));
            return [pairs.map((one) => JSON.stringify(one)), returns]; }}""",
        [plain, CHAPTERS],
    )
    for number, one in enumerate(documents):
        ours = progress.merge(one, documents[(number * 7 + 1) % len(documents)])
        theirs = progress.read(merged[number])
        assert theirs == ours and list(theirs.places) == list(ours.places)
        assert returns[number] == [list(r) for r in returning.returns(ours.answers, CHAPTERS)]


def test_a_method_whose_setting_is_called_forget_leaves_what_the_reader_has_done(address, reader):  # noqa: F811
    tab = reader().new_page()
    tab.goto(f"{address}/textbook?chapter=stragglers&part=quiz")
    answer(tab, "quiz-stragglers-elsewhere", "It is a little higher", "unsure")
    wait_for_answers(tab, 1)
    tab.goto(f"{address}/?algorithm=rmsprop&forget=0.95")
    expect(tab.get_by_role("button", name="Run", exact=True).first).to_be_visible()
    tab.get_by_role("link", name="Textbook").click()
    tab.locator(".st-key-entry-stragglers").get_by_role("link").click()
    part(tab, "My work")
    expect(tab.get_by_text("1 of 6")).to_be_visible()
    assert [a.item for a in kept(tab).answers] == ["elsewhere"]
