"""Where a run took place, in words."""

import re
from types import SimpleNamespace

import pytest

from cluster.comm import describe_loss
from cluster.real.rank_state import unread
from cluster.waits import Wait, describe_deadlock
from experiments.execution.run import check
from experiments.specification import this_machine
from experiments.specification.experiment import Experiment
from experiments.wording import naming
from experiments.wording.place import place


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "simulated: 10GbE, laptop devices"),
        ({"algorithm": "hogwild"}, "simulated: laptop devices"),
        ({"algorithm": "hogwild", "network": "1GbE"}, "simulated: 1GbE, laptop devices"),
        ({"workers": 1}, "simulated: laptop devices"),
        ({"algorithm": "asgd", "workers": 1}, "simulated: 10GbE, laptop devices"),
        ({"cluster": "processes"}, "real processes"),
        ({"cluster": "threads", "jitter": "cloud"}, "real threads, emulating cloud jitter"),
        (
            {"cluster": "processes", "network": "1GbE", "device": "laptop", "slow": "2:3"},
            "real processes, emulating 1GbE, laptop devices, worker 2 (3× slower)",
        ),
        ({"cluster": "processes", "latency": 0.002}, "real processes, emulating a latency of 2 ms"),
        (
            {"network": "1GbE", "latency": 0.002, "bandwidth": 1.5e8, "per_node": 2, "nics": 2},
            "simulated: 1GbE with a latency of 2 ms, 150 MB/s, 2 ranks per node and 2 NICs per node, laptop devices",
        ),
        (
            {"network": "5e-05:1.5e+09:0", "device": "3e+10:2e+10:2e-06"},
            "simulated: a network of 50 µs and 1.5 GB/s, devices of 30 GFLOP/s",
        ),
        ({"slow": "1:0.5"}, "simulated: 10GbE, laptop devices, worker 1 (2× faster)"),
        (
            {"algorithm": "asgd", "pause": "1:0.1-0.2", "crash": "2:0.1,3:0.1-0.2"},
            "simulated: 10GbE, laptop devices, worker 1 pauses at 100 ms for 100 ms, worker 2 lost at 100 ms, "
            "worker 3 lost at 100 ms, back at 200 ms",
        ),
        ({"cluster": "processes", "crash": "2:0.05"}, "real processes, worker 2 lost at 50 ms"),
        (
            {"cluster": "processes", "network": "ideal", "pause": "1:0.1-0.2,1:0.3-0.4"},
            "real processes, emulating an ideal network, worker 1 pauses at 100 ms for 100 ms and at 300 ms for 100 ms",
        ),
        ({"slow": "0:3,1:3,2:3,3:3"}, "simulated: 10GbE, laptop devices, 4 ranks slower"),
    ],
)
def test_a_run_says_what_its_cluster_simulated_or_emulated(settings, words):
    assert place(Experiment(**settings)) == words


def test_what_was_fitted_to_this_machine_is_called_so_everywhere(monkeypatch):
    fitted = SimpleNamespace(network="5e-05:1.5e+09:0", device="3e+10:2e+10:2e-06")
    monkeypatch.setattr(this_machine, "load", lambda: fitted)
    e = Experiment(network=fitted.network, device=fitted.device)
    assert place(e) == "simulated: this machine's network, this machine's processors"


def test_gpus_that_are_not_there_are_neither_promised_nor_claimed(monkeypatch):
    monkeypatch.setattr(naming.gpus, "count", lambda: 0)
    assert naming.cluster("gpus") == "Real GPUs · none on this machine"
    asked = Experiment(cluster="gpus")
    with pytest.raises(ValueError, match="no CUDA GPU was found on this machine; use processes, which compute"):
        check(asked)
    assert place(asked, gpus=0) == "real processes on the CPU, since there are no GPUs here"
    assert place(asked, gpus=1) == "real GPUs (4 ranks shared 1 GPU)"
    assert place(asked, gpus=4) == place(asked)
    monkeypatch.setattr(naming.gpus, "count", lambda: 4)
    assert naming.cluster("gpus") == place(asked).capitalize().replace("gpus", "GPUs") == "Real GPUs"


def test_a_fault_is_said_in_short_in_headlines_and_in_words_in_legends():
    e = Experiment.of({"algorithm": "asgd", "slow": "3:4,4:2.5", "crash": "2:0.04"})
    slow = ["worker 3 (4× slower)", "worker 4 (2.5× slower)"]
    assert [words for _, words in naming.faults(e)] == [*slow, "worker 2 lost at 40 ms"]
    assert naming.fault(e, "slow") == "worker 3 four times slower and worker 4 2.5 times slower"
    assert naming.without(e, "slow") == "worker 3 and worker 4 as fast as usual"
    assert naming.fault(e, "crash") == "worker 2 lost at 40 ms"
    assert naming.without(e, "crash") == "without the loss of worker 2"
    assert naming.without(Experiment.of({"pause": "1:0.1-0.2,2:0.1-0.2"}), "pause") == (
        "without the pauses of worker 1 and worker 2"
    )


def test_a_message_calls_ranks_and_times_as_the_lanes_do():
    e = Experiment(algorithm="asgd")
    assert (
        naming.readable(e, "Rank 0 waits; rank 3 was lost at 0.001981 s.")
        == "server 0 waits; worker 3 was lost at 1.98 ms."
    )
    assert naming.readable(e, "rank 99, ranks 1 to 3") == "rank 99, ranks 1 to 3"


WAITS = [Wait(1, "any rank", 0.002), Wait(2, 1, 0.003, tag=7), Wait(3, "the others", 0.004, "all-reduce")]
MESSAGES = {
    "a loss": describe_loss(3, 0.001981, 7),
    "a deadlock": describe_deadlock(WAITS, [describe_loss(4, 0.005, -1)]),
    "a message that was never read": unread(1, [(2, ("", 9))])[0],
}


@pytest.mark.parametrize("kind", MESSAGES)
def test_messages_of_a_cluster_write_ranks_and_times_so_that_pictures_can_call_them_by_their_names(kind):
    told = naming.readable(Experiment(algorithm="asgd"), MESSAGES[kind])
    assert "worker" in told and not re.search(r"rank \d", told)
    assert ("ms" in told) == bool(re.search(r"0\.00\d", MESSAGES[kind])) and "0.00" not in told


def test_ranks_that_come_back_are_not_said_to_be_lost_for_good():
    def crash(until):
        lost = ",".join(f"{rank}:0.001{until if rank < 4 else ''}" for rank in range(1, 5))
        return Experiment(algorithm="asgd", crash=lost)

    every = Experiment(algorithm="asgd", crash=",".join(f"{rank}:0.001-0.002" for rank in range(1, 5)))
    assert (
        place(every).endswith("4 ranks lost for a while") and naming.fault(every, "crash") == "4 ranks lost for a while"
    )
    assert place(crash("-0.002")).endswith("4 ranks lost")
    one = Experiment(algorithm="asgd", crash="2:0.001-0.002")
    assert naming.fault(one, "crash") == "worker 2 lost at 1 ms, back at 2 ms"
