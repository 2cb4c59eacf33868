"""Markup: marks in double braces become blocks and numbers, and all other text stays as it is."""

import pytest

from experiments.plots.chart import Look
from lessons import markup
from lessons.golden import Golden, RecordedFigure

ROWS = [
    {"law": "cloud", "workers": 2, "speed-up": 1.5},
    {"law": "one slow machine", "workers": 2, "speed-up": 0.75},
    {"law": "cloud", "workers": 32, "speed-up": 23.456},
]
FIGURE = RecordedFigure(
    "here.speed", "How fast?", "nobody", "", {}, Look("workers", ("speed-up",)), (0,), ROWS, [{}, {}], ()
)
GOLDEN = Golden({"here.speed": FIGURE, "there.speed": FIGURE}, {})


def parts(text):
    return markup.blocks(text, "here", GOLDEN)


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ('value("speed.speed-up", law="cloud", workers=32)', "23.5"),
        ('value("speed.speed-up", law="cloud", workers=32) | f(".1f")', "23.5"),
        ('value("speed.speed-up", law="cloud", workers=32) | f(".0f")', "23"),
        ('value("speed.speed-up", law="one slow machine") | f(".0%")', "75%"),
        ('value("there.speed.speed-up", workers=32) | f(".2f")', "23.46"),
        ('value("speed.law", **{"speed-up": 0.75})', "one slow machine"),
        ('value("speed.workers", law="one slow machine")', "2"),
        ('(value("speed.speed-up", workers=32) / value("speed.workers", workers=32)) | f(".2f")', "0.73"),
    ],
)
def test_a_number_comes_from_the_row_that_fits(mark, said):
    assert parts("It is {{ " + mark + " }} times.") == [markup.Text(f"It is {said} times.")]
    assert parts("{{ " + mark + " }}") == [markup.Text(said)]


def test_figures_code_and_predictions_stand_between_texts():
    text = (
        "# Title\n\none\n{{ predict it }}\n{{ speed }}\n{{ other.figure }}\n\n{{ code lessons.markup.source }}\ntwo\n"
    )
    title, ask, mine, others, code, end = parts(text)
    assert (title.markdown, end.markdown) == ("# Title\n\none", "two")
    assert (ask, mine, others) == (
        markup.Predict("it"),
        markup.LiveFigure("here.speed"),
        markup.LiveFigure("other.figure"),
    )
    assert code.path == "lessons/markup.py" and code.source.startswith("def source(")


def test_formulas_and_blocks_of_code_keep_their_braces():
    text = '$\\frac{{a}}{{b}}$ and {x}\n\n```\n{{ speed }}\n{{ value("a.b") }}\n```'
    assert parts(text) == [markup.Text(text)]
    assert markup.figure_names(text, "here") == []


def test_figures_are_named_in_the_order_of_their_first_mention():
    text = '{{ value("b.y", x=1) / value("on.c.z") }}\n{{ a }}\n{{ there.b }}\n{{ b }}\n{{ code lessons.markup }}\n'
    assert markup.figure_names(text, "here") == ["here.b", "on.c", "here.a", "there.b"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{{ value("speed.speed-up", workers=2) }}', "2 rows have {'workers': 2}; expected one"),
        ('{{ value("speed.nothing", workers=32) }}', "there is no column 'nothing'"),
        ('{{ value("speed.speed-up", machines=32) }}', "there is no column 'machines'"),
        ('{{ value("gone.speed-up") }}', "here.gone is not in the golden file"),
        ('{{ value("speed.law", workers=32) | f(".1f") }}', "Unknown format code 'f'"),
        ('{{ value("speed.law", workers=32 }}', "unexpected"),
        ('{{ valu("speed.law", workers=32) }}', "'valu' is undefined"),
        ('{{ value("speed.law", workers=32).__class__.mro() }}', "unsafe"),
        ('{{ 1 / (value("speed.workers", workers=32) - 32) }}', "division by zero"),
        ("{{ value speed.law where workers=32 }}", "is invalid"),
        ("so {{ value speed.law where workers=32 }}", "must stand alone"),
        ("so {{ speed }} it is", "must stand alone"),
        ("{{ draw speed }}", "is invalid"),
        ("{{ code lessons.markup.nothing }}", "there is no 'nothing' in lessons/markup.py"),
        ("{{ code nowhere.at.all }}", "no module"),
    ],
)
def test_a_mark_that_means_nothing_is_refused_in_a_sentence(text, words):
    with pytest.raises(ValueError, match=words):
        parts(text)


def test_source_is_found_with_its_decorators_and_the_comments_above():
    assert markup.source("lessons.figure.Figure").source.startswith("@dataclass(frozen=True)\nclass Figure:")
    assert markup.source("lessons.golden.RecordedFigure.table").source.lstrip().startswith("def table(self")
    assert markup.source("lessons.markup.MARK").source.startswith("MARK = ")
    assert markup.source("algorithms.synchronous.backup").source.startswith('"""Backup workers')


def test_source_is_read_and_not_run(monkeypatch):
    monkeypatch.setattr("importlib.import_module", lambda *_: pytest.fail("it was imported"))
    assert markup.source("lessons.__main__.show").line > 1
