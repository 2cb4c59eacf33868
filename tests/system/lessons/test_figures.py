"""Every figure of the textbook is run, shows what it claims to show, and is what the text says it is."""

from types import SimpleNamespace

import pytest

import lessons
from experiments.plots.chart import chart
from lessons import golden, seeds
from lessons.averaging.experiments import at_best
from lessons.figure import figure

FIGURES = [(chapter, name) for chapter in lessons.CHAPTERS for name in lessons.figures(chapter)]
each = pytest.mark.parametrize(("chapter", "name"), FIGURES, ids=[".".join(pair) for pair in FIGURES])


@pytest.mark.slow
@pytest.mark.usefixtures("rates_are_stated")
@each
def test_every_seed_and_the_mean_show_what_it_claims_and_the_mean_is_what_the_text_says(chapter, name):
    shown, kept = lessons.figures(chapter)[name], lessons.recorded_figure(f"{chapter}.{name}")
    samples = seeds.each(shown.rows)
    missed = {
        claim: under
        for claim, holds in shown.claims.items()
        if (under := [seed for seed, rows in samples.items() if not holds(rows)])
    }
    assert not missed, samples
    mean = seeds.mean([*samples.values()])
    assert all(holds(mean) for holds in shown.claims.values()), mean
    assert kept is None or golden.differences(kept.rows, mean) == []
    assert chart(mean, shown.look, seeds.spread([*samples.values()])).data


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
