"""run: from an experiment to its record."""

import importlib
import math
import re
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import algorithms
import kernels
from cluster.network import NETWORKS, Link
from experiments.execution.run import check, join, run, warm_up
from experiments.runs.difference import difference
from experiments.runs.evaluations import evaluate
from experiments.runs.summary import digest, summarise
from experiments.specification.conditions import Conditions
from experiments.specification.experiment import Experiment
from kernels import meter_kernels
from tests.tiers import slow_except
from tracing import KINDS

NAMES = algorithms.names()
OF_EACH_KIND = ("sync_sgd", "easgd", "asgd", "hogwild", "dpsgd", "sandblaster", "gpipe", "pipedream", "tensor")


def small(algorithm="sync_sgd", **values):
    workers = 4 if algorithm in ("three_d", "five_d") else algorithms.find(algorithm).defaults.get("workers", 2)
    rate = algorithms.find(algorithm).Settings().learning_rate  # so few steps bear no larger one
    own = {"workers": workers, "steps": 12, "evaluations": 4, "learning_rate": rate}
    return Experiment.of({"algorithm": algorithm, **own, **values})


@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm_gives_a_whole_record(name):
    own = {"batch": 128} if name == "async_svrg" else {}  # its first pass over the data changes nothing
    e = small(name, steps=6, evaluations=3, **own)
    done = run(e)
    assert done.status == "finished" and not done.error
    samples = e.batch  # of a step
    if name in ("chimera", "dualpipe"):
        samples //= 2  # each of two ranks compares half of them
    assert done.summary["steps"] == 6 and done.summary["updates"] > 0 and done.summary["flops"] > 0
    often = name in ("sandblaster", "async_svrg")  # the gradients of some samples are computed more than once in a step
    counted = done.losses["loss"].size * samples
    assert done.summary["samples"] > counted if often else done.summary["samples"] == counted
    assert done.summary["seconds"] > 0 and done.trace.ranks == e.ranks
    assert sum(done.summary[f"share_{kind}"] for kind in KINDS) == pytest.approx(1)
    assert done.parameters.shape == (done.summary["parameters"],)
    tried = done.evaluations
    assert tried["step"][0] == 0 and tried["samples"][0] == 0 and tried["seconds"][0] == 0
    assert tried["step"][-1] == 6 and tried["loss"][-1] < tried["loss"][0]
    assert tried["samples"][-1] == done.summary["samples"]
    assert all(np.all(np.diff(tried[x]) >= 0) for x in ("seconds", "step", "samples", "bytes"))
    assert len(tried["loss"]) <= e.evaluations + 1


@pytest.mark.parametrize("name", slow_except(OF_EACH_KIND, NAMES))
def test_the_same_experiment_gives_the_same_record_bit_for_bit(name):
    e = small(name, jitter="cloud", slow="0:2")
    a, b = run(e), run(Experiment.from_query(e.query()))
    assert difference(a, b) == "" and a.summary["digest"] == b.summary["digest"]


def test_another_seed_gives_another_record():
    assert run(small()).summary["digest"] != run(small(seed=1)).summary["digest"]


def test_the_last_evaluation_is_of_the_model_that_is_shipped():
    done = run(small())
    workload = check(small())
    assert done.evaluations["loss"][-1] == workload.evaluate(done.parameters).loss


def test_evaluations_are_outside_the_clock():
    few, many = run(small("sgd", evaluations=1)), run(small("sgd", evaluations=12))
    assert len(many.evaluations["loss"]) == 13 > len(few.evaluations["loss"])
    assert few.trace.seconds() == many.trace.seconds()
    assert np.array_equal(few.parameters, many.parameters)


def test_progress_is_told_and_changes_nothing(monkeypatch):
    from cluster.simulated import simulation

    monkeypatch.setattr(simulation, "PROGRESS", 0.0)
    told = []
    done = run(small("easgd", steps=60), told.append)
    assert difference(done, run(small("easgd", steps=60))) == ""
    assert len(told) > 3 and all(0 <= p.fraction <= 1 for p in told)
    assert [p.fraction for p in told] == sorted(p.fraction for p in told) and told[-1].fraction > 0.8
    last = told[-1]
    assert len({len(column) for column in last.curve.values()}) == 1
    assert np.all(np.diff(last.curve["step"]) > 0) and last.loss == last.curve["loss"][-1]
    assert last.evaluation is not None and last.tried["loss"][-1] == last.evaluation.loss


@pytest.mark.parametrize("kind", ["event", "function"])
def test_a_cancelled_run_keeps_what_was_recorded(kind, monkeypatch):
    from cluster.simulated import simulation

    monkeypatch.setattr(simulation, "PROGRESS", 0.0)
    stop = threading.Event()
    done = run(
        small("sgd", steps=100_000),
        lambda progress: stop.set() if progress.seconds > 0.001 else None,
        stop if kind == "event" else stop.is_set,
    )
    assert done.status == "cancelled" and "cancelled" in done.error
    assert 0 < len(done.losses["loss"]) < 100_000 and len(done.evaluations["loss"]) > 1
    assert done.parameters is not None


def test_a_diverged_run_keeps_what_was_recorded_and_says_where():
    done = run(small("sgd", workload="quadratic", learning_rate=1000, steps=300))
    assert done.status == "diverged" and "learning rate" in done.error and "step" in done.error
    assert 0 < len(done.losses["loss"]) < 600 and not np.isfinite(done.losses["loss"][-1])


def test_a_lost_rank_ends_a_synchronous_run_as_failed_and_is_named():
    done = run(small("sync_sgd", crash="1:0.002", steps=200))
    assert done.status == "failed" and "rank 1" in done.error
    assert len(done.losses["loss"]) > 0


def test_an_asynchronous_run_survives_a_lost_worker():
    done = run(small("easgd", crash="2:0.001", steps=100))
    assert done.status == "finished" and any("rank 2" in note for note in done.notes)
    assert np.bincount(done.losses["rank"])[1] == 100 > np.bincount(done.losses["rank"])[2]


@pytest.mark.parametrize(
    "values",
    [{"crash": "1:50"}, {"crash": "1:50-60"}, {"pause": "1:50-51"}, {"pause": "1:50-51", "cluster": "threads"}],
)
def test_a_fault_that_comes_after_the_rank_is_done_is_said_to_have_had_no_effect(values):
    (note,) = [note for note in run(small("easgd", **values)).notes if "Rank 1 had finished" in note]
    assert re.search(
        r"Rank 1 had finished at [\d.e-]+ s, before it was due to (be lost|pause) at 50 s; make the run longer", note
    )


@pytest.mark.parametrize("values", [{"crash": "2:0.001"}, {"crash": "2:0.001-0.002"}, {"pause": "1:0.001-0.002"}])
def test_a_fault_that_took_place_is_not_said_to_have_had_no_effect(values):
    done = run(small("downpour", steps=100, **values))
    assert done.status == "finished" and not [note for note in done.notes if "had finished" in note]


def test_the_summary_adds_up():
    done = run(small("downpour"))
    s = done.summary
    assert s["bytes"] == done.trace.messages["bytes"].sum() and s["messages"] == len(done.trace.messages["src"])
    assert s["loss"] == pytest.approx(done.losses["loss"][-20:].mean())
    assert (
        s["best_held_out_loss"] == done.evaluations["loss"].min() and s["accuracy"] == done.evaluations["accuracy"][-1]
    )
    assert s["samples_per_second"] == pytest.approx(s["samples"] / s["seconds"])
    assert s["staleness_max"] == done.applied["staleness"].max()
    assert done.environment["python"] and len(done.environment["code"]) == 8


@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm": "batch_growth", "milestones": "2,4"},
        {"algorithm": "local_sgd", "switch": 1.0, "period": 10},
    ],
)
def test_half_of_the_bytes_is_a_ratio_of_two_also_where_the_price_depends_on_epochs(settings):
    done = run(
        Experiment.of({"workers": 4, "batch": 100, "steps": 12, "compression": "bf16", "evaluations": 1, **settings})
    )
    assert done.summary["compression_ratio"] == pytest.approx(2)
    assert summarise(done, 0.0)["compression_ratio"] is None  # of an upload nobody knows how long an epoch is


def test_the_shares_of_time_are_of_those_who_train():
    done = run(small("easgd"))
    busy = done.trace.busy()[1:].sum(axis=0)
    assert [done.summary[f"share_{kind}"] for kind in KINDS] == pytest.approx(busy / busy.sum())


def test_the_digest_is_of_parameters_losses_and_evaluations():
    done = run(small())
    w = done.parameters.copy()
    w[-1] += 1
    losses = {**done.losses, "seconds": done.losses["seconds"] + 1e-9}
    tried = {**done.evaluations, "loss": done.evaluations["loss"] * 2}
    others = (replace(done, parameters=w), replace(done, losses=losses), replace(done, evaluations=tried))
    assert len({digest(one) for one in (done, *others)}) == 4


def test_nobody_is_charged_for_an_evaluation():
    charges, w = [], np.zeros(3)
    workload = SimpleNamespace(evaluate=lambda w: (kernels.sgd(w, w, 1.0), (3.0, 0.5))[1])
    with meter_kernels(SimpleNamespace(charge=lambda *price: charges.append(price))):
        assert evaluate(workload, w) == (3.0, 0.5) and not charges
        workload.evaluate(w)
        assert len(charges) == 1


def test_workers_share_out_the_data_and_servers_get_none(monkeypatch):
    tasks = {}
    declared = algorithms.find("downpour")
    watched = replace(
        declared, worker=lambda comm, task, s: tasks.update({comm.rank: task}) or declared.worker(comm, task, s)
    )
    monkeypatch.setattr(algorithms.module("downpour"), "ALGORITHM", watched)
    run(small("downpour", shards=2, workers=3))
    assert [tasks[rank].serves for rank in range(5)] == [True, True, False, False, False]
    assert [(tasks[rank].batches.data_shard, tasks[rank].batches.data_shards) for rank in range(2, 5)] == [
        (0, 3),
        (1, 3),
        (2, 3),
    ]


def test_no_figure_is_nan():
    done = run(small("sgd", workload="quadratic", steps=1))
    assert done.summary["accuracy"] is None and done.summary["staleness_mean"] is None
    assert all(value == value for value in done.summary.values())


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"batch": 65536}, "larger than the shard"),
        ({"workers": 2000}, "larger than the shard"),
        ({"algorithm": "gpipe", "workers": 65}, "65 stages"),
        ({"algorithm": "pipedream", "workers": 64}, "64 stages"),
        ({"algorithm": "gpipe", "chunks": 5}, "5 micro-batches"),
        ({"cluster": "processes", "workers": 1000}, "too many real processes"),
    ],
)
def test_a_mistake_is_found_before_any_rank_trains(values, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        run(small(**values))
    assert "\n" not in str(caught.value)


def test_ranks_of_other_machines_are_not_too_many_for_this_one(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    monkeypatch.setattr("cluster.real.torchrun.run", lambda program, **_: None)
    many = small(cluster="processes", workers=40, batch=8)
    assert join(many) is None
    with pytest.raises(ValueError, match="40 ranks are too many"):
        run(many)


def test_an_algorithm_may_refuse_with_a_reason(monkeypatch):
    def check(workers, batch, workload, s):
        raise ValueError(f"not with {workers}.")

    refusing = replace(algorithms.find("sync_sgd"), check=check)
    monkeypatch.setattr(algorithms.module("sync_sgd"), "ALGORITHM", refusing)
    with pytest.raises(ValueError, match="not with 2"):
        run(small())


def test_overrides_change_the_preset_and_nothing_else():
    preset = NETWORKS["10GbE"]
    assert Conditions.of(small()).network == preset
    changed = Conditions.of(small(latency=0.5, bandwidth=1e6, per_node=2)).network
    assert (changed.between.alpha, changed.between.bandwidth, changed.per_node) == (0.5, 1e6, 2)
    assert changed.within == preset.within and changed.between.overhead == preset.between.overhead
    assert Conditions.of(small(per_node=4, nics=2)).network.nics == 2
    assert Conditions.of(small(network="NDR")).network.nics == 8
    assert Conditions.of(small(latency=0)).network.between == replace(preset.between, latency=0, overhead=0)


def test_disturbances_are_read_and_seeded():
    d = Conditions.of(small(slow="1:3", pause="0:1-2", crash="1:4", jitter="hpc", seed=9)).faults
    assert (d.slow, d.pause, d.crash, d.seed) == ({1: 3.0}, {0: ((1.0, 2.0),)}, {1: 4.0}, 9) and d.jitter


def test_latency_costs_time_but_a_synchronous_method_learns_the_same():
    near, far = run(small(latency=0)), run(small(latency=0.01))
    assert far.trace.seconds() > near.trace.seconds() + 0.1
    assert np.array_equal(near.parameters, far.parameters)


def test_shards_of_a_pipeline_are_one(monkeypatch):
    one, two = run(small("gpipe", workers=1, chunks=1)), run(small("gpipe", workers=2, chunks=1))
    assert np.array_equal(one.parameters, two.parameters)


def test_a_run_of_any_length_keeps_a_bounded_number_of_reports(monkeypatch):
    import experiments.execution.run as module

    kept = []
    gathered = module._gathered
    monkeypatch.setattr(
        module, "_gathered", lambda e, outcome, began: kept.append(outcome.event_logs) or gathered(e, outcome, began)
    )
    done = run(small("sgd", workload="quadratic", steps=1000, evaluations=5))
    assert 5 <= len(kept[0][0].reports) <= 10
    assert len(done.evaluations["loss"]) == 6
    steps = done.evaluations["step"]
    assert steps[-1] == 1000 and np.ptp(np.diff(steps)) <= 250


def test_a_budget_in_seconds_of_the_runs_clock_is_kept():
    done = run(small("sgd", steps=None, seconds=0.005))
    assert 0.005 <= done.trace.seconds() < 0.007


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"cluster": "threads", "crash": "0:1"}, "crash: .*thread"),
        ({"cluster": "threads", "collective": "stream"}, "collective: stream .*simulated"),
        ({"cluster": "gpus", "latency": 0.1}, "latency: .*NCCL"),
        ({"cluster": "gpus", "network": "1GbE"}, "network: .*NCCL"),
        ({"cluster": "gpus", "device": "laptop"}, "device: .*NCCL"),
        ({"cluster": "gpus", "per_node": 2}, "per_node: .*NCCL"),
        ({"cluster": "gpus", "per_node": 2, "nics": 2}, "per_node: .*NCCL"),
        ({"cluster": "processes", "per_node": 2, "nics": 4}, "4 .*2 ranks per node"),
        ({"cluster": "processes", "slow": "1:0.5"}, "slow: .*real rank .*faster"),
        ({"cluster": "processes", "device": "H100"}, r"device: .* H100: a gradient takes [\d.]+ (ns|µs|ms)"),
        ({"cluster": "processes", "bandwidth": 100.0}, "100 bytes/s"),
        ({"cluster": "processes", "crash": "9:1"}, "crash: .*no rank 9"),
    ],
)
def test_a_real_cluster_refuses_what_it_cannot_obey_before_it_starts(settings, said, monkeypatch):
    monkeypatch.setattr("cluster.real.gpus.count", lambda: 8)
    with pytest.raises(ValueError, match=said):
        check(small("downpour", workers=2, **settings))


@pytest.mark.parametrize("device", ["own", "1e6:1e6:1e-2"])
def test_a_whole_batch_method_runs_on_real_ranks_with_less_data_than_the_batch_it_ignores(device):
    e = Experiment.of(
        {"algorithm": "sandblaster", "workload": "spirals", "points": 100, "batch": 500, "cluster": "processes"}
        | {"workers": 2, "steps": 1, "device": device}
    )
    check(e)
    warm_up(e)


def test_the_rank_that_keeps_the_record_under_another_launcher_is_not_killed():
    with pytest.raises(ValueError, match=r"crash: .*rank 0 .*record"):
        check(small("downpour", workers=2, cluster="processes", crash="0:1"), here=False)
    check(small("downpour", workers=2, cluster="processes", crash="1:1"), here=False)


@pytest.mark.parametrize("name", ["network", "device"])
def test_a_simulated_cluster_has_no_network_and_no_device_of_its_own(name):
    with pytest.raises(ValueError, match=f"{name}: .*only on a real cluster"):
        small(**{name: "own"})


def test_a_real_cluster_has_its_own_network_and_device_unless_one_is_given():
    bare = small(cluster="processes")
    assert Conditions.of(bare).network is None and Conditions.of(bare).device is None
    assert not {"network", "device"} & bare.non_defaults().keys()
    given = small(cluster="processes", network="10GbE")
    assert Conditions.of(given).network == Conditions.of(small()).network and given.non_defaults()["network"] == "10GbE"
    assert Experiment.from_query(given.query()) == given and Experiment.from_query(bare.query()) == bare
    assert bare.change(cluster="simulated").network == "10GbE"
    assert small(network="1GbE").change(cluster="processes").network == "1GbE"
    assert Conditions.of(small(cluster="processes", latency=0.1)).network.between == Link(0.1, math.inf)


def test_environment_names_what_is_loaded_only(monkeypatch):
    import sys

    from experiments.runs.summary import environment

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.99"))
    assert environment()["torch"] == "2.99"
    monkeypatch.delitem(sys.modules, "torch")
    assert "torch" not in environment()


@pytest.mark.parametrize("algorithm", ["easgd", "downpour", "gpipe"])
def test_a_real_rank_has_called_every_kernel_of_a_step_before_its_clock_starts(algorithm, monkeypatch):
    from cluster.simulated.rank import Rank

    called, charge, charge_all = set(), Rank.charge, Rank.charge_all

    def charged_together(rank, prices):
        called.update(name for name, *_ in prices.rows)
        charge_all(rank, prices)

    monkeypatch.setattr(Rank, "charge", lambda rank, name, *price: called.add(name) or charge(rank, name, *price))
    monkeypatch.setattr(Rank, "charge_all", charged_together)
    experiment = Experiment(algorithm=algorithm, cluster="processes", workers=2)
    warm_up(experiment)
    warmed = called.copy()
    called.clear()
    run(experiment.change(cluster=None, steps=1, evaluations=1))
    assert warmed == called and len(called) > 2


def test_a_run_that_ends_without_the_result_of_a_rank_that_its_method_needs_has_failed(monkeypatch):
    module = importlib.import_module("experiments.execution.run")
    on_cluster = module._on_cluster
    monkeypatch.setattr(module, "_on_cluster", lambda *args: replace(on_cluster(*args), lost=(1,)))
    for algorithm, status in (
        ("tensor", "failed"),
        ("sync_sgd", "failed"),
        ("asgd", "finished"),
        ("adpsgd", "finished"),
    ):
        done = run(small(algorithm))
        assert done.status == status and ("rank 1 was lost" in done.error) == (status == "failed"), algorithm
