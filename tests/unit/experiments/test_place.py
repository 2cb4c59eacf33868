"""Where a run took place, in words."""

import pytest

from experiments.experiment import Experiment
from experiments.runs.place import place


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "simulated: 10GbE, laptop devices"),
        ({"cluster": "processes"}, "real processes"),
        ({"cluster": "threads", "jitter": "cloud"}, "real threads, emulating cloud jitter"),
        (
            {"cluster": "processes", "network": "1GbE", "device": "laptop", "slow": "2:3"},
            "real processes, emulating 1GbE, laptop devices, rank 2 slowed 3 times",
        ),
        ({"cluster": "processes", "latency": 0.002}, "real processes, emulating a latency of 2 ms"),
        (
            {"network": "1GbE", "latency": 0.002, "bandwidth": 1.5e8, "per_node": 2},
            "simulated: 1GbE with a latency of 2 ms, 150 MB/s and 2 ranks per node, laptop devices",
        ),
        (
            {"network": "5e-05:1.5e+09:0", "device": "3e+10:2e+10:2e-06"},
            "simulated: a network of 0.05 ms and 1500 MB/s, devices of 30 GFLOP/s",
        ),
        ({"slow": "1:0.5"}, "simulated: 10GbE, laptop devices, rank 1 sped up 2 times"),
        (
            {"algorithm": "asgd", "pause": "1:0.1-0.2", "crash": "2:0.1,3:0.1-0.2"},
            "simulated: 10GbE, laptop devices, rank 1 paused, rank 2 lost, rank 3 lost for a while",
        ),
        ({"slow": "0:3,1:3,2:3,3:3"}, "simulated: 10GbE, laptop devices, 4 ranks slowed"),
    ],
)
def test_a_run_says_what_its_cluster_simulated_or_emulated(settings, words):
    assert place(Experiment(**settings)) == words
