"""Markup: marks in double braces become blocks and numbers, and all other text stays as it is."""

import pytest

import lessons
from experiments.viewer.look import Look
from lessons import markup, movement
from lessons.golden import Golden, RecordedFigure

ROWS = [
    {"law": "cloud", "workers": 2, "speed-up": 1.5},
    {"law": "one slow machine", "workers": 2, "speed-up": 0.75},
    {"law": "cloud", "workers": 32, "speed-up": 23.456},
]
FIGURE = RecordedFigure("here.speed", "How fast?", "nobody", "", {}, Look("workers", ("speed-up",)), (0,), ROWS, {}, ())
GOLDEN = Golden({"here.speed": FIGURE, "there.speed": FIGURE}, {})


def parts(text):
    return markup.blocks(text, "here", GOLDEN)


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ('value("speed.speed-up", law="cloud", workers=32)', "23.5"),
        ('value("speed.speed-up", law="cloud", workers=32) | f(".1f")', "23.5"),
        ('value("speed.speed-up", law="cloud", workers=32) | f(".0f")', "23"),
        ('value("speed.speed-up", law="one slow machine") | f(".0%")', "75\N{NO-BREAK SPACE}%"),
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


def test_a_figure_may_name_settings_to_try_and_is_the_same_figure():
    (block,) = parts("{{ speed try=workers,batch }}")
    assert block == markup.LiveFigure("here.speed", ("workers", "batch"))
    for names in (markup.figure_names, markup.shown_figures, markup.numbered_items):
        assert [*names("{{ speed try=workers,batch }}", "here")] == ["here.speed"]


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
        ("{{ schedule zb_h3 ranks=4 }}", "there is no schedule 'zb_h3'; did you mean zb_h"),
        ("{{ schedule own ranks=4 }}", "there is no schedule 'own'"),
        ("{{ schedule gpipe rank=4 }}", "gpipe has no setting 'rank'; did you mean ranks"),
        ("{{ schedule gpipe ranks=0 }}", "ranks is '0'; it must be 1 to 256"),
        ("{{ schedule interleaved pieces=many }}", "pieces is 'many'; it must be 1 to 64"),
        ("{{ schedule gpipe 4 8 }}", "'4' cannot be read; write name=value"),
        ("{{ timeline algorithm=sync_sdg }}", "sync_sdg"),
        ("{{ timeline algorithm=sync_sgd wokers=8 }}", "no setting 'wokers'; did you mean workers"),
        ("{{ timeline algorithm=sync_sgd cluster=threads }}", "needs a simulated cluster"),
        ("as {{ ref nothing }} shows", "refers to stragglers.nothing, which is shown neither"),
        ("{{ chapter straglers }}", "there is no chapter 'straglers'; did you mean stragglers"),
    ],
)
def test_a_mark_that_means_nothing_is_refused_in_a_sentence(text, words):
    with pytest.raises(ValueError, match=words):
        markup.blocks(text, "stragglers" if "ref" in text else "here", GOLDEN)


def address(chapter, anchor):
    return f"{chapter}.html#{anchor}"


def test_a_reference_is_the_number_of_the_figure_on_the_page_that_shows_it():
    number, there = lessons.chapter("stragglers").number, lessons.chapter("collectives").number
    first, *_, last = shown = lessons.chapter("stragglers").figures_on_page
    own, other = first.partition(".")[2], "collectives.more_ranks"
    text = f"See {{{{ ref {own} }}}}, {{{{ ref {last} }}}} and {{{{ ref {other} }}}}."
    (said,) = markup.blocks(text, "stragglers", GOLDEN)
    count = len(shown) + len(markup.movements(lessons.chapter("stragglers").text(), "stragglers"))
    assert said.markdown == f"See Figure {number}.1, Figure {number}.{count} and Figure {there}.4."
    (linked,) = markup.blocks(text, "stragglers", GOLDEN, address)
    assert f"[Figure {number}.1](#figure-stragglers-{own})" in linked.markdown
    assert f"[Figure {there}.4](collectives.html#figure-collectives-more_ranks)" in linked.markdown


def test_a_figure_that_another_chapter_lends_has_its_number_where_it_is_shown():
    lent = "stragglers.waiting_for_fewer"
    assert lent.startswith("stragglers") and not lessons.chapter("averaging").figure_number(lent)
    (said,) = markup.blocks("{{ ref stragglers.waiting_for_fewer }}", "averaging", GOLDEN)
    assert said.markdown == f"Figure {lessons.chapter('stragglers').figure_number(lent)}"


def test_a_chapter_is_called_by_its_title():
    (said,) = markup.blocks("{{ chapter staleness }}", "here", GOLDEN)
    assert said.markdown == "The parameter server and staleness"
    (linked,) = markup.blocks("In *{{ chapter staleness }}*.", "here", GOLDEN, address)
    assert linked.markdown == "In *[The parameter server and staleness](staleness.html#)*."


def test_movement_is_data_that_is_ready_to_be_drawn():
    schedule, timeline = parts(
        "{{ schedule interleaved ranks=4 chunks=8 pieces=3 latency=0.5 }}\n{{ timeline algorithm=easgd workers=8 }}"
    )
    assert (schedule.plan.schedule, schedule.plan.ranks, schedule.plan.chunks) == ("interleaved", 4, 8)
    assert schedule.plan.options == {"pieces": 3} and schedule.plan.latency == 0.5
    assert schedule.caption == "Interleaved 1F1B: 8 micro-batches on 4 ranks"
    assert schedule.settings == "latency 0.5, pieces 3; time unit: a forward pass takes 1"
    assert (timeline.experiment.algorithm, timeline.experiment.workers) == ("easgd", 8)
    assert timeline.caption == "EASGD on 8 workers" and "workers 8" in timeline.settings
    (wired,) = parts("{{ timeline algorithm=sandblaster backups=false latency=0 bandwidth=1e9 learning_rate=1 }}")
    assert "learning rate 1, backups off, latency 0 s, bandwidth 1 GB/s" in wired.settings
    (slow,) = parts('{{ timeline algorithm=asgd workers=4 jitter="noisy cloud" slow=1:2,3:4 }}')
    assert slow.caption == (
        "Asynchronous SGD on 4 workers in the noisy cloud; worker 1 (2× slower); worker 3 (4× slower)"
    )


def test_what_a_text_plays_has_a_name_in_english_and_a_number_among_the_figures():
    for chapter in lessons.written_chapters():
        moving = markup.movements(chapter.text(), chapter.name)
        names = [m.plan.schedule if isinstance(m, markup.Schedule) else m.experiment.algorithm for m in moving]
        assert set(names) <= set(movement.TITLES)
        numbers = [chapter.figure_number(name) for name in (*chapter.figures_on_page, *(m.link for m in moving))]
        assert sorted(int(n.partition(".")[2]) for n in set(numbers)) == list(range(1, len(set(numbers)) + 1))


def test_source_is_found_with_its_decorators_and_the_comments_above():
    assert markup.source("lessons.figure.Figure").source.startswith("@dataclass(frozen=True)\nclass Figure:")
    assert markup.source("lessons.golden.RecordedFigure.table").source.lstrip().startswith("def table(self")
    assert markup.source("lessons.markup.MARK").source.startswith("MARK = ")
    assert markup.source("algorithms.synchronous.backup").source.startswith('"""Backup workers')


def test_source_is_read_and_not_run(monkeypatch):
    monkeypatch.setattr("importlib.import_module", lambda *_: pytest.fail("it was imported"))
    assert markup.source("lessons.cli.reading.show").line > 1
