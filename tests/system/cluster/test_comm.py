"""The Comm contract on real clusters: the clauses of `tests/contract/cluster/test_comm.py`, on each."""

from functools import partial

import pytest

from cluster.real import processes, threads
from tests.contract.cluster.test_comm import *  # noqa: F403

CLUSTERS = {
    "sockets": partial(processes.run, backend="sockets"),
    "gloo": partial(processes.run, backend="gloo"),
    "threads": threads.run,
}


@pytest.fixture(params=CLUSTERS)
def cluster(request):
    """Run a program on one real cluster after the other."""
    return CLUSTERS[request.param]
