"""The sweep: which values, which runs, and what they come to beside each other."""

import json
import re
from urllib.parse import urlencode

import numpy as np
import pytest

from app import charts
from app.charts import Shown
from app.comparison import difference, sweep, variation
from app.settings.controls import control
from experiments.jobs.job import JobState
from experiments.jobs.spec import JobSpec
from experiments.runs.scaling import scaling
from experiments.specification.experiment import Experiment, default_rate
from experiments.study import rates
from experiments.viewer import curves
from experiments.wording import units
from tests.quotes import quote


@pytest.mark.parametrize(
    ("name", "now", "stops"),
    [
        ("batch", 32, [8, 16, 32, 64, 128]),
        ("batch", 1, [1, 2, 4]),
        ("latency", None, [0.0, 1e-5, 1e-4, 1e-3, 1e-2]),
        ("latency", 1.0, [0.01, 0.1, 1.0, 10.0]),
    ],
)
def test_a_sweep_stops_around_the_value_of_the_run_and_within_bounds(name, now, stops):
    assert variation.values(control(Experiment, name), now) == pytest.approx(stops)


def test_workers_double_as_far_as_the_experiment_can_run_and_the_bound_is_said():
    stops, why = variation.worker_stops(Experiment(workers=4))
    assert stops == [1, 2, 4, 8, 16, 32]
    assert re.match(quote("Up to 32 workers: 64 … batch 32 … shard"), why)  # it begins with what is made
    stops, why = variation.worker_stops(Experiment(workers=3, batch=8))
    assert stops == [1, 2, 3, 4, 8, 16, 32, 64] and re.search(quote("64 workers: larger"), why)
    stops, why = variation.worker_stops(Experiment(algorithm="gpipe", workers=4))
    assert stops[-1] < 64 and "stages" in why


def test_a_global_batch_is_divided_among_the_workers_as_far_as_it_can_be():
    stops, why = variation.worker_stops(Experiment(workers=4, batch=32), strong=True)
    assert stops == [1, 2, 4, 8, 16, 32, 64] and why.startswith("Up to 64 workers")
    stops, why = variation.worker_stops(Experiment(workers=3, batch=8), strong=True)
    assert stops == [1, 2, 3, 4, 8] and re.search(quote("8 workers: 16 … global batch of 24"), why)


def test_runs_with_the_same_model_are_told_by_their_weights(made):
    one, same, other = (made(Experiment(seed=seed)) for seed in (0, 1, 2))
    for run, weights in ((one, "a"), (same, "a"), (other, "b")):
        run.summary["weights"] = weights
    assert difference.same_model(one, same) and not difference.same_model(one, same, other)
    same.summary["weights"] = one.summary["weights"] = None
    assert not difference.same_model(one, same)


def test_a_map_of_two_settings_has_a_number_or_a_word_in_every_cell(made):
    runs = {(0, 0): made(Experiment()), (1, 0): made(Experiment(workers=2)), (0, 1): "under way", (1, 1): "cannot run"}
    runs[1, 0].status = "diverged"
    grid = charts.Combinations("workers", "latency", ("1", "2"), ("0 s", "1 ms"), runs)
    loss = runs[0, 0].summary["held_out_loss"]
    values = grid.values("held_out_loss")
    assert values.shape == (2, 2) and values[0, 0] == loss and np.isnan(values).sum() == 3
    assert grid.words("held_out_loss") == [[units.number(loss), "diverged"], ["under way", "cannot run"]]
    cells = re.findall(
        r'<td>(?:<button type="button" data-cell="(. .)".*?>)?([^<]*)<', charts.heat(grid, "held_out_loss")
    )
    assert cells == [("0 0", units.number(loss)), ("1 0", "diverged"), ("", "under way"), ("", "cannot run")]


def test_the_delays_of_an_algorithm_can_be_turned_too():
    assert variation.axes(Experiment(algorithm="downpour")) == [
        "workers",
        "batch",
        "latency",
        "n_push",
        "n_fetch",
        "overlap",
    ]
    settings = Experiment(algorithm="downpour").method.Settings
    assert variation.values(control(settings, "overlap"), True) == [False, True]
    assert variation.values(control(Experiment(algorithm="delayed").method.Settings, "delay"), 0) == [0, 1, 2, 4]


@pytest.fixture
def scaled(made):
    """Runs with 1, 2 and 4 workers, of which each does twice as much as the one before, but not in less time."""
    shown = [Shown(f"workers {n}", made(Experiment(workers=n)), 0) for n in (1, 2, 4)]
    for one, rate in zip(shown, (100.0, 150.0, 250.0), strict=True):
        one.run.summary["samples_per_second"] = rate
    return shown


def test_speed_up_and_efficiency_are_those_of_samples_per_second(scaled):
    ideal, faster = charts.speed_up(scaled, (1, 2, 4), None).data
    assert list(ideal.y) == [1, 2, 4] and list(faster.y) == [1, 1.5, 2.5]
    (share,) = charts.efficiency(scaled, (1, 2, 4), None).data
    assert list(share.y) == [100, 75, 62.5]


def test_the_time_of_a_step_is_that_of_the_command_s_table(scaled):
    (line,) = charts.step_time(scaled, (1, 2, 4), None).data
    (found,) = charts.scalings(scaled, None).values()
    seconds = [one.run.summary["seconds"] / one.run.summary["steps"] for one in scaled]
    np.testing.assert_allclose(line.y, np.array(seconds) * 1e3, rtol=1e-6)  # in ms
    assert [one.step_seconds for one in found] == seconds


def test_with_a_target_loss_the_speed_up_is_of_the_time_to_it_as_on_the_command_line(made):
    shown = [Shown(f"workers {n}", made(Experiment(workers=n, target_loss=9.0)), 0) for n in (1, 2)]
    (by, found), *_ = charts.scalings(shown, None).items()
    assert by == "time to a loss of 9" and found == scaling([one.runs for one in shown], ["workers"])


def test_the_time_to_a_loss_is_a_speed_up_of_its_own(scaled):
    loss = 0.5
    times = [curves.time_to_loss(one.run, loss) for one in scaled]
    *_, sooner = charts.speed_up(scaled, (1, 2, 4), loss).data
    np.testing.assert_allclose(sooner.y, times[0] / np.array(times), rtol=1e-6)
    assert "time to a held-out loss of 0.5" in sooner.name


def test_a_loss_that_was_never_better_than_at_the_start_has_no_speed_up(scaled):
    worst = max(one.run.evaluations["loss"][0] for one in scaled)
    assert [line.name for line in charts.speed_up(scaled, (1, 2, 4), worst).data] == ["ideal", "samples per second"]


def test_a_loss_that_was_not_reached_has_no_time(made):
    assert np.isnan(curves.time_to_loss(made(Experiment()), 0.0))


def test_panels_beside_each_other_share_their_axes(scaled):
    most, top = charts.reach(scaled, "seconds")
    panels = [charts.panel([s], "seconds", False, most, top) for s in scaled]
    assert len({(panel.x, panel.y) for panel in panels}) == 1


def test_a_sweep_over_workers_draws_a_picture_each_the_speed_up_and_the_table(page, stored, canvases):
    for workers in (1, 2, 4, 8, 16, 32):
        stored(Experiment(workers=workers))
    opened = page("sweep=workers")
    assert not opened.exception
    assert sum(key.startswith("panel-") for key in canvases(opened)) == 6 and len(opened.get("plotly_chart")) == 3
    assert "overlaid" in canvases(opened)
    words = [element.value for element in opened.caption if "times as many samples per second as 1" in element.value]
    assert words and "of the ideal 32" in words[0]
    assert ", which every run reaches on the way, though it may end higher, they " in words[0]
    table = next(element.value for element in opened.get("html") if "<table>" in str(element.value))
    assert all(f" {n} worker{'s' * (n > 1)}<" in table for n in (1, 2, 4, 8, 16, 32))
    assert "workers waited" in table
    opened.button("open-1").click().run()
    assert opened.session_state.asked == Experiment(workers=2)


def test_rates_that_are_each_runs_own_default_are_told_and_one_that_all_have_is_not(page, stored):
    def told(algorithm):
        for workers in (1, 2, 4, 8, 16, 32, 64):
            stored(Experiment(algorithm=algorithm, workers=workers, steps=2, evaluations=1))
        opened = page(f"algorithm={algorithm}&steps=2&evaluations=1&sweep=workers")
        assert not opened.exception
        return [button.label for button in opened.button if button.key.startswith("open-")]

    few, many = (default_rate("asgd", "digits", {}, workers)["learning_rate"] for workers in (4, 8))
    assert few != many
    assert [f"4 workers, rate {few:g}", f"8 workers, rate {many:g}"] == told("asgd")[2:4]
    assert not any("rate" in label for label in told("sync_sgd"))


def test_a_link_may_ask_for_a_race_and_a_sweep(page, stored):
    for workers in (1, 2, 4, 8, 16, 32, 64):
        stored(Experiment(workers=workers))
    rival = stored(Experiment(algorithm="easgd")).name
    opened = page(f"workers=8&pin={rival}&race=1&sweep=workers")
    assert not opened.exception and opened.button("end-race")
    assert any(button.key.startswith("open-") for button in opened.button)


def test_a_sweep_over_another_setting_shows_what_it_costs_and_gives(page, stored):
    for period in (1, 2, 4, 8, 16):
        stored(Experiment.of({"algorithm": "easgd", "period": period}))
    opened = page("algorithm=easgd&sweep=period")
    assert not opened.exception
    rates = json.loads(opened.get("plotly_chart")[-2].proto.spec)
    assert rates["data"][0]["x"] == ["1", "2", "4", "8", "16"]


def test_a_value_that_cannot_run_says_why_and_the_others_are_shown(page, stored, canvases, monkeypatch):
    stored(Experiment(workers=4))
    done = stored(Experiment(workers=2))

    def ask(work, place):
        if work.workers == 16:
            return JobState("failed", message="16 stages do not fit 3 layers")
        return JobState("finished", folder=done)

    monkeypatch.setattr(sweep.background, "ask", ask)
    opened = page("sweep=workers")
    assert not opened.exception and sum(key.startswith("panel-") for key in canvases(opened)) == 5
    assert any("16 workers" in c.value and "16 stages do not fit 3 layers." in c.value for c in opened.caption)


def test_what_is_not_swept_yet_says_how(page, stored):
    stored(Experiment())
    opened = page()
    assert any("Choose a setting to vary" in caption.value for caption in opened.caption)
    opened.button_group("sweep").set_value("batch")
    assert not opened.exception


def test_two_settings_are_a_map_of_their_combinations(page, stored, monkeypatch):
    wanted = []

    def ask(work, place):
        wanted.append((work.workers, work.batch))
        return JobState("finished", folder=done)

    done = stored(Experiment())
    monkeypatch.setattr(sweep.background, "ask", ask)
    opened = page("sweep=workers&sweep2=batch")
    table = next(node.proto.json for node in opened.get("bidi_component") if "data-cell" in node.proto.json)
    assert not opened.exception and table.count("data-cell") == 25
    opened.session_state["share-view"] = True
    opened.run()
    assert any("sweep2=batch" in block.value for block in opened.code)
    assert urlencode(opened.query_params, doseq=True).startswith("sweep=workers&sweep2=batch")
    older = page("sweep=workers&sweep2=batch+size")  # which had what is on the screen
    assert urlencode(older.query_params, doseq=True).startswith("sweep=workers&sweep2=batch")
    assert set(wanted) == {(n, batch) for n in (1, 2, 4, 8, 16) for batch in (8, 16, 32, 64, 128)}


def test_workers_may_divide_one_global_batch_and_the_page_says_which_scaling_it_is(page, stored, monkeypatch):
    wanted = []

    def ask(work, place):
        wanted.append((work.workers, work.batch))
        return JobState("finished", folder=stored(work))

    stored(Experiment(workers=4, batch=8, steps=2, evaluations=1))
    monkeypatch.setattr(sweep.background, "ask", ask)
    for link, batch, kind in (("", lambda n: 8, "weak"), ("&strong=true", lambda n: 32 // n, "strong")):
        wanted.clear()
        opened = page(f"workers=4&batch=8&steps=2&evaluations=1&sweep=workers{link}")
        assert not opened.exception
        assert {*wanted} == {(n, batch(n)) for n in (1, 2, 4, 8, 16, 32, 64) if kind == "weak" or n <= 32}
        assert any(f"{kind} scaling" in (element.help or "") for element in opened.markdown)
    assert not any("Same global batch" in toggle.label for toggle in page("sweep=batch").toggle)


def test_runs_at_their_best_rates_are_made_once_these_are_known(page, stored, monkeypatch, tmp_path):
    (tmp_path / "rate.json").write_text('{"best": 0.2}')
    done, wanted = stored(Experiment()), []

    def ask(work, place):
        wanted.append(work)
        return JobState("finished", folder=tmp_path if isinstance(work, JobSpec) else done)

    monkeypatch.setattr(sweep.background, "ask", ask)
    opened = page("sweep=batch&best=true")
    assert not opened.exception
    made = {one.batch: one.settings["learning_rate"] for one in wanted if isinstance(one, Experiment)}
    assert made == {8: 0.2, 16: 0.2, 32: rates.rate_in_table(Experiment()), 64: 0.2, 128: 0.2}


def test_real_processes_are_not_swept(page, stored):
    stored(Experiment())
    opened = page("sweep=workers")
    opened.session_state.shown = str(stored(Experiment(cluster="processes", workers=2)))
    opened.run()
    assert any("Sweeps need the simulated cluster" in info.value for info in opened.info)
