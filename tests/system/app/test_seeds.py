"""Several seeds: runs that differ in nothing else are one line in a band, one row, and are asked for by a switch."""

import pytest

from app.charts.words import figure_of
from app.comparison import reference
from app.session import session
from experiments.specification.experiment import Experiment
from experiments.viewer import race


@pytest.fixture
def five(stored):
    """The default experiment with seeds 0 to 4, as if each had been run before."""
    return [stored(Experiment(seed=seed)) for seed in range(5)]


def told(page):
    return " ".join(str(element.value) for element in page.get("html"))


def test_a_run_is_drawn_with_five_seeds_when_that_is_asked_for(page, five, canvases):
    alone = page()
    assert "seeds" not in told(alone) and not any(line.get("band") for line in canvases(alone)["accuracy"][0]["lines"])
    opened = page("seeds=true")
    assert not opened.exception and "Synchronous SGD, 5 seeds" in told(opened)
    keys = [line["key"] for line in canvases(opened)["loss"][0]["lines"]]
    assert "training: mean of 5 seeds ± standard deviation" in keys
    for chart in ("loss", "accuracy"):
        assert canvases(opened)[chart][0]["lines"][0]["band"]
    runs = [session.load(str(folder)) for folder in five]
    (shown,) = reference.name_runs([(folder.name, run) for folder, run in zip(five, runs, strict=True)])
    assert figure_of(shown, "samples_per_second") in told(opened) and "±" in figure_of(shown, "samples_per_second")
    figures = {metric.label: metric.value for metric in opened.metric}
    assert figures["Samples per second"] == figure_of(shown, "samples_per_second")
    assert "± standard deviation over 5 seeds; timeline of seed 0" in told(opened)
    assert any("for several seeds, the standard deviation" in caption.value for caption in opened.caption)


def test_pinned_runs_are_asked_for_with_five_seeds_too(page, five, stored, canvases):
    others = [stored(Experiment(seed=seed, workers=2)) for seed in range(5)]
    opened = page(f"seeds=true&pin={others[0].name}")
    assert not opened.exception
    for workers in (2, 4):
        assert f"Synchronous SGD, {workers} workers, 5 seeds" in told(opened)
    assert len(canvases(opened)["accuracy"][0]["lines"]) == 2


def test_a_race_of_five_seeds_is_judged_by_all_of_them_and_says_whose_timelines_it_shows(page, five, stored, canvases):
    others = [stored(Experiment(seed=seed, workers=2)) for seed in range(5)]
    opened = page(f"seeds=true&race=1&pin={others[0].name}")
    assert not opened.exception
    pair = reference.name_runs([(one.name, session.load(str(one))) for one in [*others, *five]])
    finish = race.finish([run for one in pair for run in one.runs])
    told_of = canvases(opened)["loss"][0]["finish"]
    assert told_of["target"] == finish and told_of["verdict"] == race.verdict(pair, finish)
    assert "of 5 seeds" in told_of["verdict"] or "all 5 seeds" in told_of["verdict"]
    assert any("Both timelines, seed 0" in one.value for one in opened.markdown)
    calm = page(f"seeds=true&pin={others[0].name}")
    assert any(", pinned (now **" in one.value and "over 5 seeds" in one.value for one in calm.markdown)


def test_pinned_runs_that_differ_only_in_their_seed_are_one_without_being_asked(page, five, canvases):
    opened = page(f"seed=2&pin={five[0].name},{five[1].name}")
    assert not opened.exception and "Synchronous SGD, 3 seeds" in told(opened)
    assert len(canvases(opened)["accuracy"][0]["lines"]) == 1
    labels = [button.label for button in opened.button if button.label.startswith("Unpin")]
    assert labels == ["Unpin: Synchronous SGD, 3 seeds, seed 0", "Unpin: Synchronous SGD, 3 seeds, seed 1"]


def test_only_repeatable_runs_of_different_seeds_belong_together(made):
    real = Experiment(cluster="processes", workers=2)
    for these in (
        [("a", made(real)), ("b", made(real.change(seed=1)))],
        [("0123456789abcdef-upload01234567", made(Experiment())), ("b", made(Experiment(seed=1)))],
        [("a", made(Experiment())), ("b", made(Experiment()))],
    ):
        assert [len(some) for some in reference.groups(these, "")] == [1, 1]
    mine = [("a", made(Experiment())), ("b", made(Experiment(workers=2))), ("c", made(Experiment(seed=1)))]
    assert [[name for name, _ in some] for some in reference.groups(mine, "c")] == [["c", "a"], ["b"]]


def test_a_real_cluster_is_not_asked_for_more_seeds(page, stored):
    stored(Experiment())
    opened = page("seeds=true")
    opened.session_state.shown = str(stored(Experiment(cluster="processes", workers=2)))
    opened.run()
    switch = next(toggle for toggle in opened.toggle if toggle.key == "seeds")
    assert switch.disabled and "5 seeds" not in told(opened)


def test_while_there_are_five_seeds_the_line_on_the_previous_run_says_that_it_is_of_one(page, five, stored):
    before = stored(Experiment(workers=2))
    opened = page("seeds=true")
    opened.session_state["before"] = str(before)
    opened.run()
    (line,) = (one.value for one in opened.markdown if "material/history" in one.value)
    assert "with seed 0 alone" in line
    opened.toggle("seeds").set_value(False).run()
    (line,) = (one.value for one in opened.markdown if "material/history" in one.value)
    assert "alone" not in line
