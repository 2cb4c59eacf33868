"""Emulated ranks: what they hold is recorded, and what is real about them does not add up."""

import numpy as np

import kernels
from cluster.devices import Device
from cluster.real import threads
from tracing import HELD


def holder(comm):
    kernels.state_like(np.zeros(100))
    return comm.event_log.held[HELD.index("optimizer state")]


def test_a_rank_on_an_emulated_device_records_the_memory_that_it_holds():
    outcome = threads.run(holder, 2, device=Device(1e9, 1e9, 0.0))
    assert outcome.error is None and outcome.results == [800, 800]
