"""Emulated ranks: what they hold is recorded, and what is real about them does not add up."""

import math
import socket
import time

import numpy as np
import pytest

import kernels
from cluster.devices import Device
from cluster.network import Link, Network
from cluster.real import threads
from cluster.real.emulated_network import EmulatedNetwork
from cluster.real.links import Links
from tracing import HELD


def holder(comm):
    kernels.state_like(np.zeros(100))
    return comm.event_log.held[HELD.index("optimizer state")]


def test_a_rank_on_an_emulated_device_records_the_memory_that_it_holds():
    outcome = threads.run(holder, 2, device=Device(1e9, 1e9, 0.0))
    assert outcome.error is None and outcome.results == [800, 800]


@pytest.mark.parametrize(("patience", "late"), [(600.0, False), (60.0, True)])
def test_what_reads_a_message_late_does_not_add_up_within_the_patience_of_its_reader(patience, late):
    ends, at, told = socket.socketpair(), Link(0.0, math.inf), []
    links = [Links(rank, {1 - rank: end}, lambda *row: told.append(row)) for rank, end in enumerate(ends)]
    zero = time.monotonic() - 3600
    links[1].emulate(EmulatedNetwork(Network(at, at), 1), zero, patience)
    links[0].send(1, "c", 5, 3400.0, row=0, reaches=3500.0)  # 100 s before it is read
    slot = links[1].slot(0, "c")
    assert links[1].wait(slot, [0], 10.0)
    assert (slot.envelope.arrived >= zero + 3600) == late and (slot.envelope.arrived == zero + 3500) != late
    ((*_, overdue),) = told
    assert 100 <= overdue < 200 if late else overdue == 0, "it says by how much"
    for end in ends:
        end.close()
