"""Glossary on hover: the first use of a term in a section has its meaning, and nothing that is not prose is touched."""

import re

import pytest

import lessons
from lessons import glossary
from lessons.glossary import Glossary
from lessons.instructor import sheet as lab
from tests.book import unfolded

TAG = re.compile(r'<abbr class="term" tabindex="0" data-term="[a-z-]+" title="([^"<>]+)">([^<>]+)</abbr>')
each = pytest.mark.parametrize("name", [one.name for one in lessons.written_chapters()])


def marked(text):
    return [word for _, word in TAG.findall(Glossary().explain(text))]


def test_a_term_is_explained_where_a_text_first_uses_it():
    text = "A bubble, and bubbles.\n\n## Next\n\nBubbles again: a *bubble*, stage and\nall-reduces."
    assert marked(text) == ["bubble", "stage", "all-reduces"]
    assert TAG.sub(r"\2", Glossary().explain(text)) == text
    assert TAG.search(Glossary().explain(text))[1] == glossary.meanings()["bubble"]


def test_a_text_in_several_blocks_is_one_text():
    one = Glossary()
    assert TAG.search(one.explain("# Title\n\nThe stage.")) and not TAG.search(one.explain("The stage.\n\n### Sub"))
    assert not TAG.search(one.explain("## New\n\nThe stage."))


def test_titles_of_cited_works_are_left_alone():
    assert marked("A stage.\n\n## Sources\n\n- A. Author, *Momentum in a bubble*") == ["stage"]
    for chapter in lessons.written_chapters():
        pages = [b.markdown for b in chapter.blocks(lambda *place: "there") if hasattr(b, "markdown")]
        whole = "\n\n".join(pages)
        assert "## Sources" in whole and not TAG.search(whole.partition("\n## Sources")[2])


def test_every_term_that_is_explained_has_its_place_in_the_glossary():
    assert all(glossary.page().count(f'id="term-{glossary.anchor(term)}"') == 1 for term in glossary.EXPLAINED)


@pytest.mark.parametrize(
    "text",
    [
        "# The stage\n\n### A bubble",
        "`stage` and $stage$",
        "$$\n\\text{stage}\n$$",
        "```\nstage\n```",
        "[the stage](#stage)",
        '<a title="stage">x</a>',
        "stage-wise, backstage, stages-of",
    ],
)
def test_code_formulas_links_and_headings_are_left_alone(text):
    assert Glossary().explain(text) == text


def test_the_longest_term_is_the_one_that_is_meant():
    assert marked("With weight stashing and vertical\nsync.") == ["weight stashing", "vertical\nsync"]


def test_every_term_that_is_explained_is_used_in_a_text():
    texts = " ".join(" ".join(one.text().lower().split()) for one in lessons.written_chapters())
    assert [term for term in glossary.EXPLAINED if term not in texts] == []


@each
def test_a_page_has_explained_terms_and_no_other_tags_and_a_terminal_has_none(name):
    chapter = lessons.chapter(name)
    blocks = unfolded(chapter.blocks(lambda *place: "there"))
    pages = [b.markdown for b in blocks if hasattr(b, "markdown")]
    assert sum(len(TAG.findall(text)) for text in pages) >= 5
    for text in (*pages, lab.sheet(chapter)):
        assert not re.search(
            r"<[a-zA-Z/!]", glossary.NO_PROSE.sub(lambda m: "" if m[0][0] in "`$" else m[0], TAG.sub("", text))
        )
    assert not any(TAG.search(b.markdown) for b in unfolded(chapter.blocks()) if hasattr(b, "markdown"))
