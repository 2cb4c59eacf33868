"""What real ranks could not obey, in sentences."""

import re

import pytest

from cluster.event_log import EventLog
from experiments.execution.notes import notes_on
from experiments.execution.run import check, run
from experiments.specification.experiment import Experiment
from tests.quotes import quote


def said(experiment, **counts):
    """The notes on a run of one second in which rank 1 of two has these counts."""
    logs = [EventLog(rank, lambda: 0.0) for rank in range(2)]
    for log in logs:
        log.mark = 1.0
        log.messages.append((1, 0, 8, 0.0, 0.1, False))
    for name, value in counts.items():
        setattr(logs[1], name, value)
    return notes_on(experiment, logs)


EMULATED = Experiment.of({"cluster": "processes", "network": "1GbE", "device": "laptop"})


@pytest.mark.parametrize("device", ["laptop", "own"])
def test_messages_that_are_later_than_on_the_emulated_network_are_told(device):
    experiment = EMULATED.change(device=device)
    assert said(experiment, overdue=0.04) == []
    (note,) = said(experiment, overdue=0.3)
    assert re.search(quote("messages … 0.3 s too late … network"), note)


def test_a_rank_that_falls_behind_its_device_is_told_of_beside_its_messages():
    device, network = said(EMULATED, late=0.2, overdue=0.3)
    assert re.search(quote("rank … 0.2 s … device … 1 s"), device) and "messages" in network
    assert said(EMULATED, late=0.01) == []


def test_a_share_of_the_time_is_written_as_everywhere():
    (note,) = said(EMULATED.change(device="own"), starved=1.02)
    assert re.search(quote("51 % … core"), note)


def test_real_ranks_that_ignore_the_order_of_sending_say_so():
    asked = Experiment.of({"algorithm": "priority", "cluster": "processes"})
    (note,) = said(asked)
    assert re.search(quote("Real ranks … order priority … no effect"), note)
    assert said(asked.change(order="fifo")) == said(asked.change(cluster="simulated")) == []


def test_a_rank_that_comes_back_after_the_end_of_the_run_is_said_to_have_come_too_late():
    asked = Experiment.of({"algorithm": "easgd", "workers": 2, "seconds": 0.01, "crash": "1:0.002-0.02"})
    (note,) = [note for note in run(asked).notes if "restart at" in note]
    assert re.search(quote("Rank 1 … 0.02 s … 0.02 s … no further step"), note)
    for other in ("1:0.002-0.004", "1:0.002"):  # back in time; lost for good
        assert not [note for note in run(asked.change(crash=other)).notes if "restart at" in note]


def test_more_nics_than_ranks_of_a_node_are_refused_and_those_of_a_preset_are_not():
    experiment = Experiment.of({"network": "NDR", "per_node": 2})
    check(experiment)
    with pytest.raises(ValueError, match=quote("3 … 2 ranks per node")):
        check(experiment.change(nics=3))
