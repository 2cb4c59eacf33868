"""The summary of a run, as the command line prints it."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.cli import show
from experiments.execution.run import run
from experiments.runs.figures import QUANTITIES
from experiments.specification.experiment import Experiment
from experiments.wording import units
from tests import fabricated

HASHES = "weights", "digest"
ROOT = Path(__file__).resolve().parents[3]


def small(**values):
    return run(Experiment.of({"workers": 2, "steps": 4, "evaluations": 1, **values}))


def per_step_and_worker(done):
    return re.search(r"(\S+ \S+) per step and worker", " ".join(show.text(done).split()))[1]


def test_traffic_per_step_counts_the_steps_that_each_worker_has_taken():
    done = fabricated.run(Experiment.of({"algorithm": "asgd", "workers": 4}))
    alone = (done.losses["rank"] == 1) | (done.losses["step"] < 10)  # three workers stop after 10 of 40 steps
    slowed = replace(done, losses={name: column[alone] for name, column in done.losses.items()})
    assert per_step_and_worker(slowed) == units.size(done.summary["bytes"] / (40 + 3 * 10))
    assert per_step_and_worker(done) == units.size(done.summary["bytes"] / (4 * 40))


def test_ranks_that_hold_parts_of_one_model_take_every_step_each():
    done = small(algorithm="gpipe")
    assert len(np.unique(done.losses["rank"])) == 1, "only the last stage has losses"
    assert per_step_and_worker(done) == units.size(done.summary["bytes"] / (2 * 4))


def test_messages_are_counted_where_the_trace_has_each_of_them():
    assert "messages" not in show.text(small()), "a fused all-reduce has none"
    assert "in 16 messages" in show.text(small(collective="ring"))  # 4 steps, 2 (N - 1) of each of N = 2 ranks


def test_a_faster_network_changes_the_digest_and_not_the_weights():
    slow, fast = small(network="1GbE"), small(network="10GbE")
    weights, digests = ([re.search(rf"  {name} +(\w+)", show.text(one))[1] for one in (slow, fast)] for name in HASHES)
    assert weights == [slow.summary["weights"]] * 2
    assert digests == [slow.summary["digest"], fast.summary["digest"]] and digests[0] != digests[1]


def test_the_layer_that_sharded_parameters_are_gathered_for_is_told_apart():
    layer = 4 * (64 * 128 + 128)  # the first of the network, and the larger
    told = " ".join(show.text(small(algorithm="zero3", hidden="128")).split())
    assert f"{units.size(layer)} of the parameters are one gathered layer" in told
    assert "gathered" not in show.text(small(algorithm="zero2", hidden="128"))


def test_the_hash_of_the_model_is_said_to_tell_equal_bits_and_not_equal_training():
    told = " ".join(show.text(small()).split())
    assert "equal bits" in told and "only by rounding" in told


def test_one_step_is_no_steps():
    told = show.text(small(steps=1))
    assert "1 step," in told and "steps," not in told


def test_every_quantity_that_is_measured_is_explained():
    files = [*ROOT.glob("algorithms/**/*.py"), ROOT / "workloads" / "task.py"]
    measured = {name for file in files for name in re.findall(r'\.measure\("([^"]+)"', file.read_text("utf-8"))}
    assert measured == QUANTITIES.keys() and len(measured) > 10
    assert all(one.unit and one.meaning for one in QUANTITIES.values())


@pytest.mark.parametrize("columns", [80, 120])
def test_a_summary_fits_the_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    for names in (tuple(QUANTITIES)[:8], tuple(QUANTITIES)[8:]):
        done = fabricated.run(Experiment.of({"algorithm": "easgd", "workers": 4}), quantities=names)
        done.summary["wall_seconds"] = 99.9
        assert max(map(len, show.text(done).splitlines())) <= columns
