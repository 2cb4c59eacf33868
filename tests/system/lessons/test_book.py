"""The static book: all of the text is in it, all links lead somewhere, and it is read from a disk without a network."""

import base64
import inspect
import json
import re
import shutil
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

import algorithms
import lessons
from lessons import book, markup, progress, references, returning
from lessons.book import chapter as chapters
from lessons.book import paper
from lessons.book.site import MORE
from tests import wcag
from tests.book import unfolded
from tests.chromium import NEEDED

LARGEST = 15_000_000  # bytes of the whole book
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$]+?)\$", re.S)
CODE = re.compile(r"```.*?```|`[^`]*`", re.S)
DRAWN = """plot => [...plot.shadowRoot.querySelectorAll("canvas")].some(
    (c) => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((value) => value))"""

PUNCTUATION = """all => all.map((one) => {
    const range = document.createRange();
    range.selectNodeContents(one.lastChild);
    const last = [...one.querySelectorAll(".katex-base")].at(-1).getBoundingClientRect();
    return [one.textContent, range.getBoundingClientRect().left < last.right - 4];
})"""
"""A formula's text, and whether the punctuation behind it is on another line than its end."""
BRIGHTNESS = """async (address) => {
    const picture = new Image();
    picture.src = address;
    await picture.decode();
    const canvas = new OffscreenCanvas(picture.width, picture.height), context = canvas.getContext("2d");
    context.drawImage(picture, 0, 0);
    const at = (x) => Math.max(...[0, 1, 2].map((n) => context.getImageData(x, picture.height - 8, 1, 1).data[n]));
    return [at(2), at(picture.width - 3), at(picture.width / 2)];
}"""
"""The brightest colour of a picture near its lower edge: at its left and right edges, and between them."""


def first_folded_figure() -> tuple[str, str, str]:
    """Return the chapter of the first figure in a fold, the fold's anchor and the figure's."""
    return next(
        (one.name, references.fold_anchor(fold.title, one.name), references.figure_anchor(inner.figure))
        for one in lessons.written_chapters()
        for fold in one.blocks()
        if isinstance(fold, markup.Fold)
        for inner in fold.blocks
        if isinstance(inner, markup.LiveFigure)
    )


class Page(HTMLParser):
    """What a page links to, loads and has: (tag, attribute, address), ids, and its data."""

    def __init__(self, text: str):
        super().__init__()
        self.links, self.ids, self.data, self._inside = [], [], None, False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.links += [(tag, name, values[name]) for name in ("href", "src") if name in values]
        self.ids += [values["id"]] if "id" in values else []
        self._inside = values.get("id") == "data"

    def handle_data(self, text):
        if self._inside:
            self.data, self._inside = json.loads(text), False


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of a book that was built once."""
    folder = tmp_path_factory.mktemp("book") / "site"
    book.build(folder)
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path.name: Page(path.read_text("utf-8")) for path in site.glob("*.html")}


@pytest.mark.slow
def test_every_link_inside_the_book_leads_somewhere(site, pages):
    for name, page in pages.items():
        for _, _, address in page.links:
            path, _, anchor = address.partition("#")
            if re.match(r"\w+:", path):
                continue
            target = path or name
            assert (site / target).is_file(), (name, address)
            if anchor and target.endswith(".html"):
                assert unquote(anchor) in pages[target].ids, (name, address)


@pytest.mark.slow
def test_no_page_loads_anything_from_elsewhere(site, pages):
    for name, page in pages.items():
        loaded = [address for tag, _, address in page.links if tag != "a"]
        assert not [address for address in loaded if ":" in address or address.startswith("/")], name
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"url\(['\"]?(?:\w+:|/)", sheet.read_text("utf-8")), sheet


def test_no_anchor_stands_twice_in_a_page(pages):
    for name, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), (name, {i for i in page.ids if page.ids.count(i) > 1})


@pytest.mark.parametrize("name", ["index.html", "paper.html", "gossip.html"])
def test_the_contents_list_the_chapters_of_each_part_below_its_title(name, site):
    html = (site / name).read_text("utf-8")
    at = 0
    for one in map(lessons.chapter, lessons.CHAPTERS):
        if one.name in lessons.PARTS:
            at = html.index(f">{lessons.PARTS[one.name]}</", at)
        at = html.index(one.title(), at)
    assert html.count("<ol") == html.count("</ol>")


@pytest.mark.parametrize("name", lessons.CHAPTERS)
def test_every_figure_question_and_formula_of_a_chapter_is_in_its_page(name, site, pages):
    chapter, page = lessons.chapter(name), pages[f"{name}.html"]
    html = (site / f"{name}.html").read_text("utf-8")
    tex = {" ".join(unescape(found).split()) for found in re.findall(r'class="math \w+">(.*?)</', html, re.S)}
    for block in unfolded(chapters.blocks(chapter)):
        match block:
            case markup.Text(text):
                for pair in FORMULA.findall(CODE.sub("", text)):
                    assert " ".join("".join(pair).split()) in tex
            case markup.LiveFigure(figure):
                assert f"figure-{figure.replace('.', '-')}" in page.ids and figure in page.data["frames"]
            case markup.Predict(item):
                assert f"item-{name}-{item}" in page.ids
    for item in chapter.items:
        cases = page.data["items"][f"{name}.{item.name}"]["cases"]
        assert [case["parameters"] for case in cases] == item.all_parameters()
        assert [case["answer"] for case in cases] == [chapter.golden.answer(item.name, c["parameters"]) for c in cases]


def test_every_algorithm_has_a_page_with_its_idea_its_settings_and_its_file(site):
    for name in algorithms.names():
        page = unescape(re.sub(r"<[^>]+>", "", (site / f"algorithm_{name}.html").read_text("utf-8")))
        first = inspect.getdoc(algorithms.module(name)).splitlines()[0]
        assert re.sub(r"\W", "", first) in re.sub(r"\W", "", page), name
        assert f"/{name}.py" in page and "ALGORITHM = " in page, name
        assert all(knob in page for knob in algorithms.find(name).Settings.model_fields), name


def test_the_documentation_leads_to_every_text_of_the_project(site, pages):
    led = {link for name in ("documentation.html", "algorithms.html") for _, _, link in pages[name].links}
    texts = {path.stem for path in site.glob("*.html")} - {*lessons.CHAPTERS, "index", "paper"}
    assert {f"{name}.html" for name in texts} <= led | {f"{name}.html" for name in MORE}
    assert not [path.name for path in site.glob("*.html") if "&lt;pre" in path.read_text("utf-8")]


def test_the_first_page_and_the_cover_name_the_five_sources_and_lead_to_their_figures(site, pages):
    for name in ("index", "paper"):
        html = unescape((site / f"{name}.html").read_text("utf-8"))
        for author in ("Yook", "Dean", "Viviani", "Sridharan", "Daily"):
            assert author in html.partition("What it accompanies")[2][:9000], (name, author)
    assert "sandblaster.html#figure-sandblaster-few_and_many" in [
        address for _, _, address in pages["index.html"].links
    ]
    assert "#figure-sandblaster-few_and_many" in [address for _, _, address in pages["paper.html"].links]


def test_the_whole_book_is_small(site):
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < LARGEST


def test_runs_and_exercises_lead_into_a_workbench_only_where_its_address_is_given():
    one = lessons.chapter("stragglers")
    assert "?algorithm=" not in str(chapters.values(one, "")["parts"])
    values = chapters.values(one, "http://here:8501")
    assert "http://here:8501/?algorithm=backup" in str(values["parts"])
    assert values["exercise"]["address"] == "http://here:8501/textbook?chapter=stragglers&part=exercise"


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="something other than a book"):
        book.build(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_without_a_browser_printing_says_what_is_missing(site, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ValueError, match="but none of chromium"):
        paper.print_book(site, tmp_path / "book.pdf")


class TestInABrowser:
    pytestmark = NEEDED

    def test_the_text_goes_on_behind_a_prediction_and_an_answer_survives_a_reload(self, tab):
        page = tab("stragglers.html")
        hidden, question = page.locator("#figure-stragglers-more_machines"), page.locator("#item-stragglers-elsewhere")
        assert not hidden.is_visible() and not page.locator("#quiz").is_visible()
        question.get_by_text("It is a little higher").click()
        question.get_by_text("sure", exact=True).click()
        question.get_by_role("button", name="That is my answer").click()
        hidden.wait_for(state="visible")
        assert "Not quite" in question.inner_text() and "The right answer: It is the same" in question.inner_text()
        page.reload()
        question.get_by_text("You said: It is a little higher").wait_for()
        assert hidden.is_visible() and not page.locator("#item-stragglers-saved").is_visible()
        page.get_by_label("Show everything").check()
        assert page.locator("#item-stragglers-saved").is_visible()
        kept = progress.read(page.evaluate(f"localStorage['{progress.KEY}']"))  # as the workbench reads it
        (answer,) = kept.answers
        assert kept.passed == ("stragglers.elsewhere",)
        assert (answer.guess, answer.sure, answer.right, answer.place) == ("other", 2, False, "predict")
        assert returning.fits(lessons.chapter("stragglers").item("elsewhere"), answer)

    @pytest.mark.slow
    def test_no_kind_of_page_violates_wcag_in_light_or_dark(self, tab):
        for name in ("index", "stragglers", "sandblaster", "glossary", "survey", "again", "algorithm_easgd"):
            page = tab(f"{name}.html")
            assert wcag.in_both_schemes(page) == [], name
            page.close()
        assert wcag.violations(tab("paper.html")) == []  # which is never dark

    @pytest.mark.slow
    def test_a_section_that_is_not_open_yet_leads_to_the_question_before_it(self, tab):
        page = tab("stragglers.html#history")
        page.locator("#item-stragglers-elsewhere").wait_for(state="visible")
        assert page.get_by_role("link", name="History").get_attribute("class") == "closed"
        page.wait_for_function("scrollY > 500")

    def test_all_chapters_are_searched_and_what_is_closed_is_not_given_away(self, tab):
        page = tab("index.html")
        page.keyboard.press("/")
        page.keyboard.type("superstep")
        found = page.locator("#found [role=option]")
        found.filter(has_text="share the batch").wait_for()
        assert "a superstep: compute" in found.filter(has_text="share the batch").inner_text()
        assert found.filter(has_text="History").count() == 0
        page.get_by_text(re.compile(r"\d+ more sections? that comes? after a prediction")).wait_for()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("stragglers.html"))

    @pytest.mark.slow
    def test_a_word_that_nothing_has_leads_to_the_nearest_one(self, tab):
        page = tab("index.html")
        page.locator("#search").fill("stragler")
        page.get_by_text("Nothing found. Did you mean").get_by_role("button", name="straggler").click()
        page.locator("#found [role=option]").first.wait_for()
        page.locator("#search").fill("qqqqqqqq")
        page.get_by_text("Nothing found.", exact=True).wait_for()

    def test_formulas_and_pictures_are_drawn_in_light_and_dark(self, tab):
        page = tab("stragglers.html")
        page.get_by_label("Show everything").check()
        assert page.locator(".math").count() == page.locator(".math.drawn .katex").count() > 30
        assert page.locator(".katex-error").count() == 0
        plots = page.locator(".plot:not(.fold *)")
        for number in range(plots.count()):
            page.wait_for_function(DRAWN, arg=plots.nth(number).element_handle())
        before = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.get_by_role("button", name="Light or dark page").click()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before

    def test_a_fold_is_closed_until_a_click_a_key_or_a_link_into_it_opens_it(self, tab):
        name, anchor, figure = first_folded_figure()
        page = tab(f"{name}.html")
        page.get_by_label("Show everything").check()
        fold, plot = page.locator(f"#{anchor}"), page.locator(f"#{figure} .plot")
        assert not plot.is_visible()
        fold.locator("summary").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_function(DRAWN, arg=plot.element_handle())
        text = page.locator(".part p").first.bounding_box()["width"]
        assert plot.locator("canvas").first.bounding_box()["width"] > 0.95 * text
        fold.locator("summary").first.click()
        assert not plot.is_visible()
        for link in (anchor, figure):
            page = tab(f"{name}.html#{link}")
            page.wait_for_function(DRAWN, arg=page.locator(f"#{figure} .plot").element_handle())
            top = "link => Math.abs(document.getElementById(link).getBoundingClientRect().top) < 200"
            page.wait_for_function(top, arg=link)

    @pytest.mark.slow
    def test_what_is_folded_is_found_and_what_was_found_is_open(self, tab):
        name, anchor, figure = first_folded_figure()
        title = lessons.recorded_figure(f"{name}.{figure.rpartition('-')[2]}").question
        page = tab(f"{name}.html")
        page.get_by_label("Show everything").check()
        page.locator("#search").fill(title.rstrip("?"))
        page.locator("#found [role=option]").filter(has_text="Deeper: ").first.click()
        page.locator(f"#{figure} .plot").wait_for(state="visible")
        assert page.url.endswith(f"#{anchor}")

    @pytest.mark.slow
    def test_folds_are_open_on_paper_with_their_pictures_drawn_and_closed_again_after_it(self, tab):
        name, _, figure = first_folded_figure()
        page = tab(f"{name}.html")
        page.get_by_label("Show everything").check()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        plot = page.locator(f"#{figure} .plot")
        assert plot.is_visible() and page.evaluate(DRAWN, plot.element_handle())
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert not plot.is_visible()
        paper_page = tab("paper.html")
        assert paper_page.locator("details.fold:not([open])").count() == 0
        paper_page.wait_for_function(DRAWN, arg=paper_page.locator(f"#{figure} .plot").element_handle())

    def test_a_slider_shows_another_stop(self, tab):
        every = [
            (one.name, name)
            for one in lessons.written_chapters()
            for name in one.figures_on_page
            if one.golden.figure(name).look.slider
        ]
        chapter, name = every[0]
        page = tab(f"{chapter}.html")
        page.get_by_label("Show everything").check()
        figure = page.locator(f"#figure-{name.replace('.', '-')}")
        said = figure.locator("output")
        before = said.inner_text()
        figure.get_by_role("slider").focus()
        page.keyboard.press("ArrowRight")
        assert said.inner_text() != before

    def test_a_timeline_plays(self, tab):
        page = tab("stragglers.html")
        page.get_by_label("Show everything").check()
        moving = page.locator(".movement").first
        moving.locator("[role=img]").focus()
        page.keyboard.press(".")
        moving.locator(".status.at").wait_for()

    @pytest.mark.slow
    def test_a_dark_page_is_printed_dark_on_white_with_every_picture_as_wide_as_the_sheet(self, tab):
        page = tab("stragglers.html")
        page.get_by_role("button", name="Light or dark page").click()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        ink, sheet = page.evaluate(
            "[document.body, document.querySelector('main')].map((e) => e === document.body"
            " ? getComputedStyle(e).color : e.clientWidth)"
        )
        assert ink == "rgb(0, 0, 0)"
        widths = page.eval_on_selector_all(
            ".figure .plot",
            "plots => plots.map(p => p.shadowRoot.querySelector('canvas').getBoundingClientRect().width)",
        )
        assert all(0.9 * sheet < width <= sheet + 1 for width in widths) and len(widths) > 6
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.evaluate("getComputedStyle(document.body).color") != "rgb(0, 0, 0)"

    @pytest.mark.slow
    def test_a_chapter_fits_a_phone(self, tab):
        page = tab("pipedream.html")
        page.set_viewport_size({"width": 390, "height": 844})
        page.get_by_label("Show everything").check()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.get_by_role("button", name="Contents").click()
        page.get_by_role("link", name="History").click()
        page.wait_for_function("scrollY > 2000")
        assert not page.locator("#contents").is_visible()

    @pytest.mark.slow
    def test_a_wide_table_of_a_figure_scrolls_in_itself_on_a_phone(self, tab):
        page = tab("sandblaster.html")
        page.set_viewport_size({"width": 390, "height": 844})
        page.get_by_label("Show everything").check()
        page.evaluate("document.querySelectorAll('.behind details').forEach((one) => { one.open = true })")
        assert page.evaluate(
            "[...document.querySelectorAll('.behind .table')].some(t => t.scrollWidth > t.clientWidth)"
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= 390

    @pytest.mark.slow
    def test_what_is_found_and_what_a_term_means_stay_inside_the_window_of_a_phone(self, tab):
        page = tab("pipelines.html")
        page.set_viewport_size({"width": 390, "height": 844})
        page.get_by_label("Show everything").check()

        def inside(box):
            return box["x"] >= 0 and box["x"] + box["width"] <= 390

        page.locator("#search").fill("bubble")
        page.locator("#found a").first.wait_for()
        assert inside(page.locator("#found").bounding_box())
        page.keyboard.press("Escape")
        terms = page.locator(".term:not(.fold *)")
        assert terms.count() > 4
        for number in range(terms.count()):
            terms.nth(number).focus()
            assert inside(page.locator(".meaning-of").bounding_box())
        page.locator(".meaning-of a").click()
        page.wait_for_url(re.compile(r"glossary.html#term-"))

    @pytest.mark.slow
    def test_code_is_wider_than_the_text_where_the_page_is_empty_beside_it(self, tab):
        page = tab("stragglers.html")
        page.get_by_label("Show everything").check()
        code, text = (page.locator(f".part {one}").first.bounding_box()["width"] for one in (".source pre", "p"))
        assert code > text + 100 and page.evaluate("document.documentElement.scrollWidth") <= 1280

    @pytest.mark.slow
    def test_the_contents_mark_the_quiz_and_the_exercise_too(self, tab):
        page = tab("stragglers.html")
        page.get_by_label("Show everything").check()
        for last in ("Quiz", "Exercise"):
            page.locator("#contents").get_by_role("link", name=last, exact=True).click()
            page.locator("#contents .reading").get_by_text(last, exact=True).wait_for()
        page.goto(page.url.partition("#")[0])
        page.get_by_role("link", name="You were at").wait_for()
        assert "Sources" not in page.locator(".again-here").inner_text()

    @pytest.mark.slow
    def test_a_formula_keeps_its_punctuation_on_its_line_and_is_not_broken_in_a_table(self, tab):
        page = tab("sgd.html")
        page.get_by_label("Show everything").check()
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            joined = page.locator(".part .joined").evaluate_all(PUNCTUATION)
            assert len(joined) > 40 and not [text for text, apart in joined if apart]
        heights = page.locator("td .katex-html").evaluate_all("all => all.map(one => one.getClientRects().length)")
        assert heights and {*heights} == {1}

    @pytest.mark.slow
    def test_a_table_that_is_wider_than_the_page_has_a_shadow_where_it_goes_on(self, tab):
        page = tab("sgd.html")
        page.set_viewport_size({"width": 390, "height": 844})
        page.get_by_label("Show everything").check()
        table = page.locator(".table").filter(has_text="what you must know")
        assert table.evaluate("one => one.scrollWidth > one.clientWidth")
        shadows = []
        for scrolled in (0, 1000):
            table.evaluate("(one, left) => one.scrollTo({left, behavior: 'instant'})", scrolled)
            picture = base64.b64encode(table.screenshot()).decode()
            left, right, empty = page.evaluate(BRIGHTNESS, f"data:image/png;base64,{picture}")
            shadows.append((left < empty - 30, right < empty - 30))
        assert shadows == [(False, True), (True, False)]

    @pytest.mark.slow
    def test_the_contents_mark_no_section_that_comes_after_a_prediction(self, tab):
        page = tab("stragglers.html")
        page.locator("#item-stragglers-elsewhere").wait_for(state="visible")
        page.evaluate("scrollTo({top: document.documentElement.scrollHeight, behavior: 'instant'})")
        page.locator("#contents .reading").wait_for()
        assert page.locator("#contents .reading .closed").count() == 0
        assert page.locator("#contents .reading").inner_text() == "The naive answer: share the batch"

    @pytest.mark.slow
    def test_paper_has_the_whole_text_and_the_answers(self, tab, site, tmp_path):
        page = tab("stragglers.html")
        page.get_by_label("Show everything").check()
        page.emulate_media(media="print")
        assert page.evaluate("document.body.offsetHeight") > 10_000  # what hides the box of the choice hides no page
        page.emulate_media(media="screen")
        page.get_by_label("Show everything").uncheck()
        page.emulate_media(media="print")
        assert page.locator("#figure-stragglers-steps_against_batch").is_visible()
        assert page.locator(".answers").is_visible() and not page.locator("header.bar").is_visible()
        paper.print_page(site / "stragglers.html", tmp_path / "chapter.pdf")
        pdf = (tmp_path / "chapter.pdf").read_bytes()
        assert pdf.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", pdf)) > 8

    def test_a_question_that_was_missed_comes_back_with_other_numbers(self, tab):
        page = tab("stragglers.html")
        question = page.locator("#item-stragglers-elsewhere")
        asked = question.locator(".ask").inner_text()
        question.get_by_text("It is a little higher").click()
        question.get_by_role("button", name="That is my answer").click()
        again = tab("again.html")
        again.get_by_text("1 question is due").wait_for()
        question = again.locator(".question:visible")
        assert question.count() == 1 and question.locator(".ask").inner_text() != asked
        waits_for_all = "but four" not in question.locator(".ask").inner_text()
        question.get_by_text("to the last bit" if waits_for_all else "up or down").click()
        question.get_by_role("button", name="That is my answer").click()
        question.get_by_role("button", name="That was the last").click()
        kept = json.loads(again.evaluate("localStorage['lockstep-progress']"))["answers"]
        assert [(one["place"], one["right"]) for one in kept] == [("predict", False), ("again", True)]
        assert kept[0]["parameters"] != kept[1]["parameters"]

    def test_progress_is_saved_to_a_file_and_read_from_one(self, tab, tmp_path):
        page = tab("index.html")
        mine = {"lockstep": 1, "passed": ["stragglers.elsewhere"], "places": {"stragglers": "history"}}
        (tmp_path / "mine.json").write_text(json.dumps(mine))
        page.locator(".import").set_input_files(tmp_path / "mine.json")
        page.get_by_text("0 answers read").wait_for()
        assert page.get_by_role("link", name="Continue reading").get_attribute("href") == "stragglers.html#history"
        with page.expect_download() as download:
            page.get_by_role("button", name="Save to a file").click()
        assert json.loads(download.value.path().read_text())["passed"] == ["stragglers.elsewhere"]
        (tmp_path / "other.json").write_text('{"hello": 1}')
        page.locator(".import").set_input_files(tmp_path / "other.json")
        page.get_by_text("not progress of a reader").wait_for()
