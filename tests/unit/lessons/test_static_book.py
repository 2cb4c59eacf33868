"""What pages of the static book are made of: Markdown as HTML, and links on the page that is printed."""

import base64

import pytest

import lessons
from experiments.viewer.column_codec import unpack
from lessons import markup
from lessons.book import chapter as chapters
from lessons.book import documentation, exercises, figures, markdown, paper, search


def test_a_formula_stays_tex_and_code_gets_colours():
    made = markdown.render("With $a_1 < b$ and\n\n$$\nx^2\n$$\n\n```python\nx = 1\n```\n")
    assert '<span class="math inline">a_1 &lt; b</span>' in made
    assert '<div class="math block">\nx^2\n</div>' in made
    assert '<span class="mi">1</span>' in made


def test_a_browser_breaks_no_line_within_an_option_that_a_sentence_names():
    made = markdown.render("Try `--cluster simulated -n 4 <b> --one-two`.")
    assert "<code><span>--cluster</span> simulated <span>-n</span> 4 &lt;b&gt; <span>--one-two</span></code>" in made


def test_sections_have_the_words_that_a_reader_sees_and_the_anchor_of_their_heading():
    (_, before), (heading, words) = markdown.sections(
        '# Title\n\nFirst.\n\n## Why, $N$?\n\nA <abbr title="a rank">worker</abbr>\nwaits.'
    )
    assert before == "First." and words == "A worker waits."
    assert (heading.level, heading.anchor) == (2, "why-n")
    assert 'id="why-n"' in markdown.render("## Why, $N$?")


@pytest.mark.parametrize(
    ("there", "here"),
    [
        ("#why", "#averaging--why"),
        ("stragglers.html", "#stragglers"),
        ("stragglers.html#why", "#stragglers--why"),
        ("stragglers.html#figure-stragglers-tail", "#figure-stragglers-tail"),
        ("#item-averaging-left", "#item-averaging-left"),
        ("sgd.html#fold-sgd-why", "#fold-sgd-why"),
        ("https://arxiv.org/abs/1", "https://arxiv.org/abs/1"),
    ],
)
def test_on_paper_a_link_to_another_page_leads_inside_the_one_that_holds_all(there, here):
    article = f'<h2 id="why">Why</h2><a href="{there}">see</a>'
    assert paper.on_one_page("averaging", article) == f'<h2 id="averaging--why">Why</h2><a href="{here}">see</a>'


def test_on_paper_what_is_folded_is_open():
    assert paper.on_one_page("sgd", '<details class="fold" id="fold-sgd-a">') == (
        '<details class="fold" open id="fold-sgd-a">'
    )


def test_what_is_folded_is_a_section_of_its_own_for_the_search():
    fold = markup.Fold("Why $a$", (markup.Text("inside"), markup.LiveFigure("stragglers.more_machines")))
    blocks = [markup.Text("## Head\n\nbefore"), markup.Predict("elsewhere"), fold, markup.Text("after")]
    _, head, found = search.sections(lessons.chapter("stragglers"), blocks)
    assert (head["title"], head["text"]) == ("Head", "before after")
    assert (found["title"], found["anchor"]) == ("Deeper: Why a", "fold-stragglers-why-a")
    assert found["text"].startswith("inside ") and "How" in found["text"] and found["behind"] == ["elsewhere"]


def test_on_paper_a_figure_with_a_slider_has_all_its_stops_in_one_picture():
    pipelines = lessons.chapter("pipelines")
    header, _ = unpack(base64.b64decode(figures.on_paper(pipelines)["pipelines.bubble"]["frame"]))
    assert "stops" not in header and not [line for line in header["lines"] if "stop" in line]
    assert [line["key"] for line in header["lines"] if line["symbol"]] == ["S 2", "S 4", "S 8"]
    assert "pipelines.zoo" not in figures.on_paper(pipelines)


def test_code_in_a_figures_words_and_in_its_source_is_code_on_its_page():
    shown = figures.template_values(lessons.chapter("layouts"), "layouts.one_way_alone", figures.PageData(""))
    assert "<code>lockstep plan</code>" in shown["source"] and "<code>again</code>" in shown["text"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(29433.7, "29,430"), (1288.23, "1,288"), (0.0656, "0.0656"), (5.797e9, "5.797e+09"), (2048, "2,048")],
)
def test_a_number_of_a_figures_rows_has_four_digits_and_no_exponent_below_a_billion(value, shown):
    assert figures._cell(value) == shown


def test_the_program_that_a_task_calls_the_one_below_is_below():
    for chapter in filter(lambda one: one.exercise, map(lessons.chapter, lessons.CHAPTERS)):
        shown = exercises.template_values(chapter, "")
        assert (
            " below " in shown["task"] and "TARGETS" in shown["program"] and "&quot;&quot;&quot;" not in shown["task"]
        )
        assert shown["file"] in "".join(shown["files"])


def test_an_answer_on_paper_is_said_once_and_ends_with_one_full_stop():
    said = {one["anchor"]: one["shown"] for one in chapters.values(lessons.chapter("stragglers"), "")["answers"]}
    assert said["item-stragglers-elsewhere"] == "It is the same, to the last bit."
    assert said["item-stragglers-wasted"] == "", "its explanation begins with it"
    assert said["item-stragglers-speed_up"] == "4.73 times."


def test_the_documentation_shows_the_readme_without_its_pictures():
    _, text = documentation.pages()["readme"]
    assert "docs/pictures" in (markup.ROOT / "README.md").read_text("utf-8")
    assert not any(word in text for word in ("<img", "<picture", "docs/pictures")) and "**Compare algorithms.**" in text
