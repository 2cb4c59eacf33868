"""Front matter: every chapter says what it asks and teaches, and what cannot be tested is refused."""

import pytest

import lessons
from lessons import folds, front_matter, markup
from lessons.chapters import WORDS_A_MINUTE, Chapter

GOOD = 'title = "One"\ndifficulty = 2\nprerequisites = ["stragglers"]\nobjectives = ["Compute it", "Predict it"]\n'
each = pytest.mark.parametrize("name", lessons.CHAPTERS)


@each
def test_a_chapter_says_what_it_asks_and_what_one_can_do_afterwards(name):
    chapter = lessons.chapter(name)
    assert (chapter.folder / "chapter.toml").is_file() and bool(chapter.front.title) != chapter.has_text
    assert len(chapter.front.objectives) >= 2 and chapter.front.background
    before = lessons.CHAPTERS[: chapter.number - 1]
    assert set(chapter.front.prerequisites) <= {*before}, "what is needed comes before"
    assert chapter.number == lessons.CHAPTERS.index(name) + 1 and chapter.minutes > 0


def test_parts_begin_with_chapters_and_the_first_with_the_book(draft):
    assert [*lessons.PARTS] == [name for name in lessons.CHAPTERS if name in lessons.PARTS]
    assert next(iter(lessons.PARTS)) == lessons.CHAPTERS[0]
    titles = [lessons.chapter(name).part for name in lessons.CHAPTERS]
    assert list(dict.fromkeys(titles)) == [*lessons.PARTS.values()] and titles == sorted(titles, key=titles.index)
    assert lessons.chapter("choosing").part != lessons.chapter("fully_sharded").part
    assert Chapter(lessons.chapter(draft).folder.parent / "template").part == "", "it is not registered"


SHORT = "sgd", "collectives", "stragglers", "shared_memory", "pipelined_backprop", "decoupled", "choosing"


@pytest.mark.parametrize("name", SHORT)
def test_words_and_figures_take_a_first_reader_twenty_minutes_at_most(name):
    path = folds.path(lessons.chapter(name).text()).partition("\n## Sources")[0]
    figures = [mark for mark in markup.ALONE_IN_TEXT.findall(path) if mark.split()[1] not in ("code", "predict")]
    assert len(markup.MARK.sub("", path).split()) / WORDS_A_MINUTE + len(figures) <= 20


def test_minutes_are_words_and_marks(tmp_path):
    (tmp_path / "text.md").write_text("# One\n\n" + "word " * 400 + "\n\n{{ more }}\n{{ code lessons.figure }}\n")
    assert Chapter(tmp_path).minutes == 4
    (tmp_path / "text.md").write_text((tmp_path / "text.md").read_text() + "\n{{ predict how_many }}\n")
    assert Chapter(tmp_path).minutes == 7, "a prediction takes three"
    with (tmp_path / "text.md").open("a") as file:
        file.write('{{ value("a.b") }}\n\n## Sources\n\n' + "book " * 1000)
    assert Chapter(tmp_path).minutes == 7


def test_a_chapter_of_figures_numbers_them_in_the_order_of_its_file(draft):
    chapter = lessons.chapter(draft)
    assert chapter.figures_on_page == [f"{draft}.{name}" for name in lessons.figures(draft)]
    assert chapter.figure_questions == {f"{draft}.{name}": one.question for name, one in lessons.figures(draft).items()}
    assert chapter.figure_number(chapter.figures_on_page[1]) == f"{chapter.number}.2"
    assert chapter.figure_number(f"{draft}.no") == ""


@pytest.mark.parametrize(
    ("was", "becomes", "words"),
    [
        ("difficulty = 2", "difficulty = 4", "difficulty is 4; use 1"),
        ("Compute it", "Understand it", "'Understand it' cannot be tested; begin with one of Choose"),
        ("title", "titel", "has no field 'titel'; use title"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(tmp_path, was, becomes, words):
    (tmp_path / "chapter.toml").write_text(GOOD)
    assert front_matter.read(tmp_path / "chapter.toml").objectives == ("Compute it", "Predict it")
    (tmp_path / "chapter.toml").write_text(GOOD.replace(was, becomes))
    with pytest.raises(ValueError, match=words):
        front_matter.read(tmp_path / "chapter.toml")
