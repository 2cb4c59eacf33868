"""Folds: what is between their marks is apart from the text, and one that is not whole is refused."""

import pytest

import lessons
from lessons import folds, markup, references
from lessons.chapters import Chapter
from lessons.golden import EMPTY
from tests.book import unfolded

TEXT = """# Title

path

{{ fold Why it is so (in short) }}

inside $a$

{{ schedule gpipe ranks=4 chunks=8 }}

```
# no heading
{{ end fold }}
```

{{ code lessons.folds.path }}

{{ end fold }}

more path

{{ timeline algorithm=easgd workers=3 }}
"""
ADDRESS = "{}#{}".format


def test_a_fold_is_a_block_that_has_its_blocks_in_it():
    before, fold, after, timeline = markup.blocks(TEXT, "stragglers", EMPTY)
    assert (before.markdown, after.markdown) == ("# Title\n\npath", "more path")
    assert (fold.title, fold.label) == ("Why it is so (in short)", "Deeper: Why it is so (in short)")
    words, schedule, code, source = fold.blocks
    assert words.markdown == "inside $a$" and isinstance(schedule, markup.Schedule)
    assert code.markdown == "```\n# no heading\n{{ end fold }}\n```" and source.source.startswith("def path(")
    every = [before, words, schedule, code, source, after, timeline]
    assert list(unfolded([before, fold, after, timeline])) == every


def test_figures_are_numbered_through_a_fold():
    assert [link.split("?")[0] for link in markup.numbered_items(TEXT, "stragglers")] == ["schedules", ""]
    assert len(markup.movements(TEXT, "stragglers")) == 2


def test_a_term_is_explained_in_a_fold_and_where_the_text_comes_to_it():
    text = "A replica.\n\n{{ fold More }}\nA replica, a replica.\n{{ end fold }}\n\nThe replica."
    before, fold, after = markup.blocks(text, "stragglers", EMPTY, ADDRESS)
    assert [one.markdown.count("<abbr") for one in (before, fold.blocks[0], after)] == [1, 1, 0]


def test_what_is_folded_is_no_part_of_the_minutes_and_is_said_beside_them(tmp_path):
    fold = "\n\n{{ fold More }}\n" + "word " * 600 + "\n\n{{ speed }}\n\n| a | b |\n|---|---|\n{{ end fold }}\n\n"
    (tmp_path / "text.md").write_text("# One\n\n" + "word " * 400 + fold + "{{ more }}\n\n## Sources\n" + "book " * 900)
    one = Chapter(tmp_path)
    assert (one.minutes, one.minutes_folded, one.length) == (3, 4, "3 minutes, 4 more to go deeper")
    (tmp_path / "text.md").write_text("# One\n\n{{ fold More }}\nword\n{{ end fold }}\n" + "word " * 400)
    assert (one.minutes, one.minutes_folded) == (2, 1), "what takes any time takes a minute"
    (tmp_path / "text.md").write_text("# One\n\n" + "word " * 400)
    assert (one.minutes, one.minutes_folded, one.length) == (2, 0, "2 minutes")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{ fold One }}\nwords", "here: the fold 'One' does not end; write {{ end fold }} on a line of its own"),
        ("{{ fold One }}\nwords\n{{ end }}", "the fold 'One' does not end"),
        ("words\n{{ end fold }}", "{{ end fold }} ends a fold, and none is open; begin it with {{ fold TITLE }}"),
        ("{{ fold One }}\na\n{{ fold Two }}", "the fold 'Two' begins inside 'One'; end that one first"),
        (
            "{{ fold One }}\n## Head\n{{ end fold }}",
            "the fold 'One' holds a heading, '## Head'; end the fold before it",
        ),
        ("{{ fold One }}\n{{ predict it }}\n{{ end fold }}", "the fold 'One' holds a prediction, '{{ predict it }}'"),
        ("{{ fold }}\na\n{{ end fold }}", "a fold has no title; say what is in it"),
        ("{{ fold A }}\na\n{{ end fold }}\n{{ fold A }}\na\n{{ end fold }}", "two folds are called 'A'"),
        ("{{ fold A }}\n\n{{ end fold }}", "a fold is empty; write something between its marks"),
    ],
)
def test_a_fold_that_cannot_be_is_refused_in_a_sentence(text, words):
    with pytest.raises(ValueError) as refused:
        markup.blocks(text, "here", EMPTY)
    assert words in str(refused.value) and str(refused.value).startswith("here: ")
    folds.pieces(text)  # minutes are counted while an author still writes


@pytest.mark.parametrize("chapter", lessons.written_chapters(), ids=lambda one: one.name)
def test_what_a_prediction_is_about_is_not_folded(chapter):
    """The figure that follows a prediction shows the answer: one who leaves the folds out must see it."""
    blocks = chapter.blocks()
    for place, block in enumerate(blocks):
        if isinstance(block, markup.Predict):
            others = (one for one in blocks[place + 1 :] if not isinstance(one, markup.Text | markup.Predict))
            assert not isinstance(next(others, None), markup.Fold), block.item


def test_a_fold_has_an_anchor_of_its_chapter():
    assert references.fold_anchor("Why $2/h$?", "sgd") == "fold-sgd-why-2-h"
