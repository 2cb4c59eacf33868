"""Fit to this machine: what is fitted comes out, where it is kept, and how an experiment takes it over."""

import json
import re

import numpy as np
import pytest

import kernels
from cluster.devices import Device, parse_device
from cluster.network import Link, Network, parse_network
from cluster.real import threads
from cluster.simulated import run as simulate
from experiments.cli.main import main
from experiments.execution.run import check
from experiments.jobs.spec import JobSpec
from experiments.measure import fit
from experiments.measure.script_fit import ScriptFit
from experiments.specification import this_machine
from experiments.specification.experiment import Experiment
from experiments.specification.this_machine import Fit

TRUE = Device(flops=3e10, bandwidth=2e10, overhead=2e-6)
LINK = Link(latency=5e-5, bandwidth=1.5e9, per_byte=6e-10)
NETWORK = Network(LINK, LINK, sum=Link(2e-4, 6e9))
PRICES = ((1e3, 8e3), (2e3, 1.2e4), (3e3, 1.6e4), (2e6, 1.2e7), (8e6, 4.8e7), (1e8, 5e6), (5e8, 2e7))
MADE = Fit(device=TRUE.text, network=NETWORK.text, machine="a machine", moment="2026-11-21T20:00+00:00")
ADD = (("add", 1e6, 1.2e7, 5e-4, 6e-4),)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_RUNS", str(tmp_path / "home"))
    return tmp_path / "home"


def test_the_constants_of_a_device_are_found_again_from_the_times_of_its_kernels():
    found = fit.fit_device([("kernel", f, b, TRUE.seconds(f, b)) for f, b in PRICES])
    np.testing.assert_allclose(
        (found.flops, found.bandwidth, found.overhead), (TRUE.flops, TRUE.bandwidth, TRUE.overhead), rtol=0.01
    )


def test_one_kernel_that_was_disturbed_does_not_move_the_others():
    rows = [("kernel", f, b, TRUE.seconds(f, b)) for f, b in 2 * PRICES]
    rows[3] = (*rows[3][:3], 10 * rows[3][3])
    assert fit.fit_device(rows).bandwidth == pytest.approx(TRUE.bandwidth, rel=0.3)


def test_the_constants_of_a_network_are_found_again_from_the_times_of_its_exchanges():
    sizes = [("message", n) for n in fit.MESSAGES] + [(what, n) for what in ("ring", "all-reduce") for n in fit.SUMS]
    found = fit.fit_network([(what, n, fit.exchange(what, n, NETWORK, TRUE)) for what, n in sizes], TRUE)
    assert found.between.latency == pytest.approx(LINK.latency, rel=1e-3)
    assert (found.between.bandwidth, found.between.per_byte, found.sum.latency, found.sum.bandwidth) == pytest.approx(
        (LINK.bandwidth, LINK.per_byte, 2e-4, 6e9), rel=0.01
    )


@pytest.mark.parametrize("nbytes", [1 << 20, 1 << 22])
@pytest.mark.parametrize(("what", "once"), [*zip(fit.WAYS, (fit._to_and_fro, fit._ring, fit._all_reduce), strict=True)])
def test_an_exchange_takes_what_the_simulated_cluster_makes_of_it(what, once, nbytes):
    network = parse_network(NETWORK.text)

    def program(comm):
        once(comm, np.zeros(nbytes // 4, np.float32))
        return comm.event_log.clock()

    took = max(simulate(program, 2, network=network, device=TRUE).results) / (2 if what == "message" else 1)
    assert fit.exchange(what, nbytes, network, TRUE) == pytest.approx(took, rel=1e-6)


def test_a_processor_that_carries_bytes_itself_does_not_compute_meanwhile():
    network, n = parse_network(NETWORK.text), 1 << 22

    def program(comm):
        comm.send(np.zeros(n // 8), 1 - comm.rank)
        kernels.add(np.zeros(1 << 20), np.zeros(1 << 20))
        computed = comm.event_log.clock()
        comm.recv(1 - comm.rank)
        return computed, comm.event_log.clock()

    carrying, computing = n * LINK.per_byte, TRUE.seconds(1 << 20, 24 << 20)
    computed, end = simulate(program, 2, network=network, device=TRUE).results[0]
    assert (computed, end - computed) == pytest.approx((carrying + computing, carrying))


def test_real_ranks_refuse_the_network_of_their_own_machine():
    with pytest.raises(ValueError, match=r"network: .*remove the network"):
        check(Experiment.of({"network": NETWORK.text, "cluster": "processes", "workers": 2}))


def test_a_processor_cannot_take_longer_for_a_byte_than_its_link():
    with pytest.raises(ValueError, match="2e-09 s per byte, longer than"):
        parse_network("1e-5:1e9:0:2e-9:1e-5:1e9")


def test_both_ranks_measure_every_kernel_and_every_exchange_at_the_same_time(monkeypatch):
    for name, few in (
        ("KERNELS", ("add", "sgd")),
        ("SIZES", (100, 1_000)),
        ("MESSAGES", (8, 1024)),
        ("SUMS", (4096,)),
        ("LARGE", 0),
    ):
        monkeypatch.setattr(fit, name, few)
    monkeypatch.setattr(fit, "TIME", 1e-4)
    outcome = threads.run(fit.measure, 2)
    assert outcome.error is None
    for calls, exchanges, starved, spread in outcome.results:
        assert [row[:3] for row in calls] == [
            ("add", 100, 1200), ("sgd", 200, 1200), ("add", 1000, 12000), ("sgd", 2000, 12000)
        ]  # fmt: skip
        assert [row[:2] for row in exchanges] == [
            ("message", 8), ("message", 1024), ("ring", 4096), ("all-reduce", 4096)
        ]  # fmt: skip
        assert all(row[-1] > 0 for row in (*calls, *exchanges)) and 0 <= starved < 1 and spread > 0


def test_what_was_measured_is_fitted_and_kept(home, monkeypatch):
    calls = [("add", n, 12 * n, 1e-6 + n * 1e-9) for n in (1e3, 1e6, 1e7)]
    exchanges = [(what, n, 1e-4 + n * 1e-9) for what in fit.WAYS for n in (8.0, 1e6, 4e6)]

    class Outcome:
        error, results = None, [(calls, exchanges, 0.1, 0.02), (calls, exchanges, 0.0, 0.05)]

    scripts = ScriptFit("1e11:3e10:1e-7:5e-6:7e-7:8", NETWORK.text, (("small_mlp", 2e-3, 3e-3),))
    monkeypatch.setattr("cluster.real.processes.run", lambda *args, **options: Outcome)
    monkeypatch.setattr("experiments.measure.script_fit.fit_scripts", lambda progress: scripts)
    made = fit.fit()
    assert (made.script_device, made.script_network, made.programs) == scripts
    assert this_machine.load() == made and [len(row) for row in (*made.kernels, *made.messages)] == [5] * 3 + [4] * 9
    assert (made.spread, made.starved) == (0.05, 0.1)
    assert parse_device(made.device).overhead == pytest.approx(1e-6, rel=0.05)


def test_here_becomes_numbers_so_that_the_experiment_means_the_same_elsewhere(home):
    this_machine.save(MADE)
    experiment = Experiment(device="here", network="here")
    assert (experiment.device, experiment.network) == (MADE.device, MADE.network)
    (home / "here.json").unlink()
    assert Experiment.from_query(experiment.query()) == experiment


@pytest.mark.parametrize("kind", ["device", "network"])
def test_who_has_not_fitted_is_told_how(home, kind):
    with pytest.raises(ValueError, match=f"{kind}: .here. needs a measurement.*; run lockstep fit"):
        Experiment.of({kind: "here"})


@pytest.mark.parametrize("kind", ["device", "network"])
@pytest.mark.parametrize("seen", [{"starved": 0.3}, {"spread": 0.5}])
def test_a_fit_of_a_busy_machine_refuses_to_be_used_unless_it_is_wanted_anyway(home, kind, seen):
    busy = MADE.model_copy(update=seen)
    this_machine.save(busy)
    with pytest.raises(ValueError, match=f"{kind}: .*busy .*fit again.* --anyway"):
        Experiment.of({kind: "here"})
    assert this_machine.load() == busy and this_machine.trusted_fit() is None
    this_machine.save(busy.model_copy(update={"anyway": True}))
    assert getattr(Experiment.of({kind: "here"}), kind) == getattr(MADE, kind)


def test_a_fit_of_before_the_machine_was_asked_how_busy_it_is_can_still_be_used(home):
    old = MADE.model_dump(exclude={"starved", "spread", "anyway"})
    this_machine.save(MADE)
    (home / "here.json").write_text(json.dumps(old))
    assert Experiment.of({"device": "here"}).device == MADE.device


def test_a_damaged_fit_is_none(home):
    this_machine.save(MADE)
    (home / "here.json").write_text('{"device": 3}')
    assert this_machine.load() is None


def test_the_command_tells_the_constants_and_how_to_use_them(home, monkeypatch, capsys):
    made = MADE.model_copy(update={"kernels": ADD, "messages": (("message", 8, 1e-4, 5e-5),)})
    monkeypatch.setattr(fit, "fit", lambda anyway: made)
    assert main(["fit"]) == 0
    told = capsys.readouterr().out
    assert f"--device {made.device}" in told and f"--network {made.network}" in told
    assert "1.20" in told and "0.50" in told  # fitted over measured
    assert main(["fit", "--json"]) == 0
    assert Fit(**json.loads(capsys.readouterr().out)) == made


def test_a_fit_that_cannot_be_used_says_so_first_fails_and_is_not_offered_for_use(home, monkeypatch, capsys):
    monkeypatch.setattr(fit, "fit", lambda anyway: MADE.model_copy(update={"starved": 0.65, "kernels": ADD}))
    assert main(["fit"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert re.match(r"[^.]*busy", told) and "for 65 % of the time" in told
    assert "use it" not in told and MADE.device not in told
    assert main(["fit", "--json"]) == 1


def test_a_fit_as_a_job_of_the_pool_leaves_its_file(home, monkeypatch, tmp_path):
    monkeypatch.setattr(fit, "fit", lambda progress: MADE)
    folder = JobSpec("fit", {"moment": "now"}).perform(tmp_path)
    assert Fit.model_validate_json((folder / "fit.json").read_text()) == MADE
