"""Seeds: every experiment of a figure gets its own, and what they gave is averaged."""

import math

import pytest

from lessons import seeds
from lessons.seeds import SEEDS, Seeded

SMALL = {"algorithm": "sgd", "learning_rate": 0.1, "steps": 1}


def given(make):
    """Return the seeds of the experiments that are started, by seed of the figure."""
    return seeds.each(lambda run: make(run), lambda experiment: experiment.seed)


def test_an_experiment_without_a_seed_has_that_of_the_figure():
    assert given(lambda run: run(**SMALL)) == {seed: seed for seed in SEEDS}


def test_repetitions_of_a_figures_own_are_others_under_every_seed():
    tried = given(lambda run: tuple(run(**SMALL, seed=own) for own in range(3)))
    assert len({one for some in tried.values() for one in some}) == 3 * len(SEEDS)
    assert tried[0] == (0, 1, 2)


def test_what_asks_for_no_seed_is_made_once_and_dice_count_as_asking():
    assert given(lambda run: 1) == {0: 1}
    assert given(lambda run: run.seed) == {seed: seed for seed in SEEDS}
    assert Seeded().seed == 0


def test_rows_in_which_no_seed_shows_are_made_twice_and_answers_under_all():
    assert [*given(lambda run: [{"bytes": run.seed * 0}])] == [0, 1]
    assert [*given(lambda run: [{"loss": run.seed}])] == [*SEEDS]
    assert [*given(lambda run: "level" if run.seed < 4 else "first")] == [*SEEDS]


def test_what_all_seeds_agree_on_stays_as_it_is():
    rows = [{"n": 2, "word": "a", "loss": math.inf, "on": True}]
    assert seeds.mean([rows, rows]) == rows and type(seeds.mean([rows, rows])[0]["n"]) is int
    assert seeds.spread([rows, rows]) == [{}]


def test_what_has_no_mean_is_refused():
    with pytest.raises(ValueError, match="words have no mean"):
        seeds.mean([[{"best": "a"}], [{"best": "b"}]])
    with pytest.raises(ValueError, match="differ in rows"):
        seeds.mean([[{"n": 1}], [{"n": 1}, {"n": 2}]])


def test_where_one_seed_diverges_so_does_the_mean():
    assert seeds.mean([[{"loss": 1.0}], [{"loss": math.inf}]]) == [{"loss": math.inf}]
    assert seeds.spread([[{"loss": 1.0}], [{"loss": math.inf}]]) == [{"loss": (1.0, math.inf)}]
