"""Where ranks meet: on the loopback if all are on one computer, and with a sentence if they do not."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from cluster.real import processes
from cluster.real.meeting import shared_store

ROOT = Path(__file__).resolve().parents[3]


def listening(comm):
    """The addresses at which this rank, and what it has in its process, can be reached."""
    comm.all_reduce(np.zeros(1_000_000))  # by gloo
    found = psutil.Process().net_connections("inet")
    comm.barrier()
    return sorted({one.laddr.ip for one in found if one.status == psutil.CONN_LISTEN})


@pytest.mark.slow
def test_a_run_on_one_machine_cannot_be_reached_from_another():
    outcome = processes.run(listening, 2)
    assert outcome.error is None
    assert set(map(tuple, outcome.results)) <= {(), ("127.0.0.1",)} and outcome.results[0]


@pytest.mark.slow
def test_a_place_to_meet_that_is_taken_is_told_in_a_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        here = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        with pytest.raises(
            OSError, match=rf"rank 0 cannot reach the meeting point 127.0.0.1, port {port} \(Address"
        ) as told:
            shared_store(here, 5.0)
    assert "\n" not in str(told.value)


def test_ranks_of_open_mpi_on_several_computers_that_do_not_know_rank_0_are_told_what_to_do():
    names = {"RANK": 1, "SIZE": 4, "LOCAL_RANK": 1, "LOCAL_SIZE": 2}
    given = {**os.environ, **{f"OMPI_COMM_WORLD_{name}": str(value) for name, value in names.items()}}
    for rank, sentences in (("0", 1), ("1", 0)):
        command = [sys.executable, "-m", "experiments", "run", "sync_sgd"]
        given["OMPI_COMM_WORLD_RANK"] = rank
        done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr.count("mpirun -x MASTER_ADDR=HOST") == sentences
