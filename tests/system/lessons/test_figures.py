"""Every figure of the textbook is run, shows what it claims to show, and is what the text says it is."""

from types import SimpleNamespace

import pytest

import lessons
from experiments.viewer.look import apart
from lessons import golden, seeds
from lessons.averaging.experiments import at_best
from lessons.figure import Look, columns_read, figure
from tests.book import differences_under_one_seed

FIGURES = [(chapter, name) for chapter in lessons.CHAPTERS for name in lessons.figures(chapter)]
each = pytest.mark.parametrize(("chapter", "name"), FIGURES, ids=[".".join(pair) for pair in FIGURES])

QUICK = (  # that tell a golden file that its code has left behind, before anything lands: 13 s in all
    "sgd.longest_step",
    "collectives.busiest",
    "collectives.more_ranks",
    "decoupled.old_errors",  # tanh at large rates, where a last bit grows
    "shared_memory.speed_up",  # the lock
    "shared_memory.lost_additions",
)
some_are_quick = pytest.mark.parametrize(
    ("chapter", "name"),
    [
        pytest.param(*pair, id=".".join(pair), marks=[] if ".".join(pair) in QUICK else pytest.mark.slow)
        for pair in FIGURES
    ],
)


@pytest.mark.usefixtures("rates_are_stated")
@some_are_quick
def test_one_of_the_seeds_gives_what_is_recorded_of_it(chapter, name):
    """That all recorded seeds show what is claimed, and the mean too, is tested with the golden files.

    A figure that is not recorded, since no text shows it, is run under all seeds.
    """
    shown, kept = lessons.figures(chapter)[name], lessons.recorded_figure(f"{chapter}.{name}")
    if kept is None:
        kept = golden.record_figure(name, shown, seeds.each(shown.rows))
        assert all(map(kept.shows, shown.claims)), kept.samples
    else:
        assert differences_under_one_seed(kept, shown, chapter) == []
    assert not_seen(shown, kept.rows) == []
    assert kept.frame()


def not_seen(figure, rows):
    """What a reader cannot see: columns that are not there, rows drawn over each other, claims about what is not drawn.

    Words cannot be drawn, and bytes, seconds and losses have no axis in common: of the claims about numbers one in
    four, and one at least, has to be about what is drawn, if in other units. The others are checked in the table.
    """
    look = figure.look
    if look is None:
        return ["it has no look."]
    groups, drawn = apart(look), {*look.y, *look.theory}
    if missing := {look.x, *groups, *drawn} - {*rows[0]}:
        return [f"rows have no {', '.join(sorted(missing))}."]
    places = [tuple(str(row[name]) for name in (look.x, *groups)) for row in rows]
    found = [f"{place} is drawn twice." for place in {*places} if places.count(place) > 1 and look.x not in look.theory]
    numbers = {n for n in rows[0] if n not in (look.x, *groups) and all(type(row[n]) in (int, float) for row in rows)}
    seen = drawn | {n for n in numbers if any(_proportional(rows, n, other) for other in drawn)}
    read = {claim: columns_read(holds, rows) & numbers for claim, holds in figure.claims.items()}
    unseen = [claim for claim, names in read.items() if names and not names & seen]
    if len(unseen) > 3 / 4 * sum(map(bool, read.values())):
        found.append(f"not drawn: {'; '.join(unseen)}.")
    return found


def _proportional(rows, one, other):
    """Whether two columns are the same in other units."""
    quotients = [row[one] / row[other] for row in rows if row[other]]
    return len(quotients) == len(rows) and quotients == pytest.approx([quotients[0]] * len(rows), rel=1e-3)


@each
def test_what_it_compares_is_drawn(chapter, name):
    """Of figures that no chapter shows rows are not kept; the test above looks at theirs."""
    shown, kept = lessons.find(f"{chapter}.{name}"), lessons.recorded_figure(f"{chapter}.{name}")
    assert shown.look
    assert kept is None or not_seen(shown, kept.rows) == []


def test_a_look_that_leaves_out_what_is_claimed_is_seen():
    rows = [{"ranks": n, "kind": kind, "ring": n, "tree": 1} for n in (2, 4) for kind in "ab"]
    claims = {"trees do not grow": lambda rows: {row["tree"] for row in rows} == {1}}

    def told(look):
        return not_seen(figure("?", source="nobody", claims=claims, look=look)(lambda run: rows), rows)

    assert told(Look("ranks", ("ring", "tree"), "kind")) == []
    assert told(Look("ranks", ("ring",), "kind")) == ["not drawn: trees do not grow."]
    assert told(Look("ranks", ("star",), "kind")) == ["rows have no star."]
    assert len(told(Look("ranks", ("tree",)))) == 2 and told(None) == ["it has no look."]


@each
def test_it_says_what_it_asks_and_who_asked_first(chapter, name):
    shown = lessons.find(f"{chapter}.{name}")
    assert shown.question.endswith("?") and shown.source and shown.claims and shown.text


def test_an_unknown_figure_is_refused_with_a_hint():
    with pytest.raises(ValueError, match="there is no figure"):
        lessons.find("worm_up")


def test_a_rate_that_is_left_to_the_default_is_seen(rates_are_stated):
    with pytest.raises(AssertionError, match="may change"):
        seeds.run_now(algorithm="sgd", steps=1)
    assert seeds.run_now(algorithm="sgd", steps=1, learning_rate=0.1).status == "finished"


def test_a_best_rate_lies_between_others_that_were_tried():
    def ended(*losses):
        return {
            rate: SimpleNamespace(summary={"held_out_loss": loss}) for rate, loss in zip((1, 2, 4), losses, strict=True)
        }

    assert at_best(ended(0.5, 0.25, None)) == 0.25
    for losses in ((0.25, 0.5, None), (0.5, 0.25, 0.125)):
        with pytest.raises(ValueError, match="at an end"):
            at_best(ended(*losses))


def test_a_claim_that_does_not_hold_is_seen():
    @figure("Is one two?", source="nobody", claims={"it is": lambda rows: rows[0]["n"] == 2})
    def one(run):
        """No."""
        return [{"n": 1}]

    assert [holds(one.rows(None)) for holds in one.claims.values()] == [False]
