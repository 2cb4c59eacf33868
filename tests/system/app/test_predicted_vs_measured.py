"""Fit to this machine from the page, and the same experiment predicted and measured."""

import re
from dataclasses import replace

import numpy as np
import pytest

from app.comparison import predicted_vs_measured
from app.settings import fitting
from experiments.jobs.job import JobState
from experiments.runs import store
from experiments.runs.parting import Parting
from experiments.specification import this_machine
from experiments.specification.experiment import Experiment
from experiments.specification.this_machine import Fit
from experiments.viewer import curves
from experiments.viewer.canvases import timeline
from tests import fabricated
from tracing import KINDS, WAIT, Trace

MADE = Fit(device="3e+10:2e+10:2e-06", network="5e-05:1.5e+09:0", machine="a machine", moment="2026-11-21T20:00+00:00")
HERE = {"device": MADE.device, "network": MADE.network}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_RUNS", str(tmp_path))
    return tmp_path


@pytest.fixture
def fitted(home):
    this_machine.save(MADE)


def test_a_simulated_run_with_the_numbers_of_this_machine_has_a_real_counterpart_and_the_other_way_round(fitted):
    simulated, real = Experiment(workers=2, **HERE), Experiment(workers=2, cluster="processes")
    assert predicted_vs_measured.counterpart(simulated) == real and predicted_vs_measured.counterpart(real) == simulated


@pytest.mark.parametrize("preset", ["10GbE", "1GbE"])
def test_the_counterpart_has_the_same_settings_and_those_of_this_machine_in_place_of_its_own(fitted, preset):
    settings = {"workers": 2, "network": preset, "latency": 0.002, "slow": "1:3", "pause": "0:0.1-0.2", "crash": "1:9"}
    simulated = Experiment(device=MADE.device, jitter="cloud", **settings)
    real = Experiment(cluster="processes", jitter="cloud", **settings)
    assert real.network == preset and real.device == "own"
    assert predicted_vs_measured.counterpart(simulated) == real and predicted_vs_measured.counterpart(real) == simulated


@pytest.mark.parametrize(
    "experiment",
    [
        Experiment(cluster="threads"),
        Experiment(workers=5, **HERE),
        Experiment(workers=9),
    ],
    ids=["threads", "more ranks than cores", "too many processes"],
)
def test_other_runs_have_no_counterpart(fitted, experiment):
    assert predicted_vs_measured.counterpart(experiment) is None


def test_only_what_is_a_machines_own_needs_a_fit(home):
    own, emulated = Experiment(cluster="processes"), Experiment(cluster="processes", network="1GbE", device="laptop")
    assert predicted_vs_measured.counterpart(own) is None
    assert predicted_vs_measured.counterpart(own.change(network="1GbE")) is None
    simulated = predicted_vs_measured.counterpart(emulated)
    assert simulated == Experiment(network="1GbE") and predicted_vs_measured.counterpart(simulated) == emulated


def test_a_measured_run_that_cannot_be_predicted_says_what_is_missing(page, stored, home):
    stored(Experiment())  # so that the page that opens starts no run
    folder = stored(Experiment(cluster="processes"))
    opened = page()
    opened.session_state.shown = str(folder)
    opened.run()
    assert any("Fit to this machine" in caption.value for caption in opened.caption)
    assert "counterpart-run" not in [button.key for button in opened.button]


def test_the_time_of_a_step_is_the_median_between_two_mini_batches_of_a_rank(made):
    run = made(Experiment(workers=2))
    run.losses.update(rank=np.array([0, 1, 0, 1, 0]), seconds=np.array([1.0, 1.5, 3.0, 3.75, 9.0]))
    assert curves.step_time(run) == 2.25


def test_rank_by_rank_both_traces_are_one(made):
    one, other = made(Experiment(workers=2)).trace, made(Experiment(workers=2, seed=4)).trace
    both = timeline.beside(one, other)
    assert both.ranks == 4
    np.testing.assert_allclose(both.busy()[0::2], one.busy())
    np.testing.assert_allclose(both.busy()[1::2], other.busy())
    np.testing.assert_allclose(both.traffic()[1::2, 1::2], other.traffic())
    assert not both.traffic()[0::2, 1::2].any()
    assert (np.diff(both.spans["start"]) >= 0).all() and (np.diff(both.messages["sent"]) >= 0).all()


def test_the_labels_of_both_are_kept_apart(made):
    one, other = made(Experiment(workers=1)).trace, made(Experiment(workers=1)).trace
    other = timeline.Trace(1, other.spans, other.messages, ("other", *other.labels[1:]))
    both = timeline.beside(one, other)
    words = {rank: {both.labels[n] for n in both.spans["label"][both.spans["rank"] == rank]} for rank in (0, 1)}
    assert "gradient" in words[0] and "other" in words[1] and "gradient" not in words[1]


def test_the_counterpart_is_offered_and_then_laid_beside_the_run(page, stored, fitted, canvases, monkeypatch):
    simulated = Experiment(workers=2, **HERE)
    stored(simulated)
    folder = stored(Experiment(workers=2, cluster="processes", seed=0))
    monkeypatch.setattr(
        predicted_vs_measured.background, "ask", lambda work, place: JobState("finished", folder=folder)
    )
    opened = page(simulated.query())
    assert "counterparts" not in canvases(opened)
    opened.button("counterpart-run").click().run()
    assert not opened.exception and "counterparts" in canvases(opened)
    assert canvases(opened)["counterparts"][0]["saved"]["file"].endswith("-measured-and-predicted")
    (told,) = [element.value for element in opened.markdown if "The run took " in element.value]
    assert "100.0 % of the measured time" in told and "No kind of span differs by more than 10 %" in told
    (table,) = [element.proto.body for element in opened.get("html") if "<th>ratio<" in element.proto.body]
    assert table.count("<td>1</td>") == len(KINDS)
    assert any("Measured: real processes. Predicted: simulated" in element.value for element in opened.caption)


def test_the_measured_runs_own_notes_stand_beside_the_prediction(page, stored, fitted, monkeypatch, folders, canvases):
    simulated = Experiment(workers=2, **HERE)
    stored(simulated)
    measured = replace(fabricated.run(Experiment(workers=2, cluster="processes")), notes=("rank 1 fell behind",))
    folder = store.save(measured, folders)
    monkeypatch.setattr(
        predicted_vs_measured.background, "ask", lambda work, place: JobState("finished", folder=folder)
    )
    opened = page(simulated.query())
    opened.button("counterpart-run").click().run()
    assert any("orker 1 fell behind" in one.value for one in opened.caption)
    lanes = canvases(opened)["counterparts"][0]["lanes"]
    assert lanes[:2] == ["worker 0 measured", "worker 0 predicted"] and not opened.exception


def test_a_kind_that_takes_next_to_nothing_has_no_ratio(monkeypatch):
    drawn, run = [], fabricated.run(Experiment(workers=2))
    spans = run.trace.spans
    waits = spans["kind"] == WAIT
    shorter = spans | {"end": np.where(waits, spans["start"] + 1e-9, spans["end"])}
    calm = replace(run, trace=Trace(run.trace.ranks, shorter, run.trace.messages, run.trace.labels))
    monkeypatch.setattr(predicted_vs_measured.st, "html", drawn.append)
    predicted_vs_measured._totals(run, calm)
    (row,) = re.findall("<th>wait</th>.*?</tr>", drawn[0])
    assert "<td>–</td>" in row and "<td>1</td>" in drawn[0]


def test_a_counterpart_that_failed_on_a_busy_machine_can_be_tried_again(page, stored, fitted, monkeypatch):
    simulated, real = Experiment(workers=2, **HERE), Experiment(workers=2, cluster="processes")
    stored(simulated)
    opened, submitted = page(simulated.query()), []
    pool = predicted_vs_measured.session.pool()
    monkeypatch.setattr(pool, "submit", lambda owner, work: submitted.append(work) or work.key())
    monkeypatch.setattr(pool, "state", lambda key: JobState("failed", message="This machine is too slow."))
    opened.button("counterpart-run").click().run()
    opened.button("again-counterpart").click().run()
    assert not opened.exception and submitted.count(real) == 2


def test_the_sentence_names_the_step_as_the_timeline_does_and_the_kind():
    told = predicted_vs_measured.describe_first_difference(Parting(4, "wait", 0.001, 0.0025, 7, 40))
    assert "in step 5, in *wait*: 1 ms predicted and 2.5 ms measured" in told and "7 of 40 steps" in told


def test_a_machine_that_was_fitted_is_among_the_devices_and_networks(page, stored, fitted):
    stored(Experiment())
    opened = page()
    assert "this machine · 30 GFLOP/s" in opened.selectbox("device").options
    assert "this machine · 50 µs · 1.5 GB/s" in opened.selectbox("network").options


def test_numbers_from_a_link_are_shown_as_numbers(page, stored, home):
    experiment = Experiment(device="4e+10:1e+10:1e-06", network="1e-05:1e+09:0")
    stored(experiment)
    opened = page(experiment.query())
    assert not opened.exception and opened.selectbox("device").value == "4e+10:1e+10:1e-06"
    assert "in numbers · 40 GFLOP/s" in opened.selectbox("device").options


@pytest.mark.parametrize(
    ("cluster", "chosen"), [("simulated", (MADE.device, MADE.network)), ("processes", ("own", "own"))]
)
def test_a_fit_is_chosen_when_it_is_done_and_a_real_cluster_keeps_its_own(
    page, stored, home, monkeypatch, cluster, chosen
):
    stored(Experiment())
    monkeypatch.setattr(fitting, "is_allowed", lambda: True)
    opened = page(Experiment(cluster=cluster).query())
    asked = []

    def done(job_spec, waiting, place):
        asked.append(job_spec.kind)
        this_machine.save(MADE)
        return home

    monkeypatch.setattr(fitting.background, "fetch", done)
    opened.button("fit").click().run()
    assert asked == ["fit"] and not opened.exception
    assert (opened.session_state.device, opened.session_state.network) == chosen


def test_a_server_for_others_does_not_offer_to_measure_itself(page, stored, monkeypatch):
    stored(Experiment())
    monkeypatch.setattr(fitting, "is_allowed", lambda: False)
    assert "fit" not in [button.key for button in page().button]


def test_a_server_that_is_for_this_machine_only_is_known_by_its_address(monkeypatch):
    for address, ours in (("127.0.0.1", True), ("localhost", True), ("0.0.0.0", False), (None, False)):
        monkeypatch.setattr(fitting.st, "get_option", lambda name, address=address: address)
        assert fitting.is_allowed() is ours
