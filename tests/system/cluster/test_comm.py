"""The Comm contract on real clusters: the clauses of `tests/contract/cluster/test_comm.py`, on each.

Ranks with torch (gloo) differ from those without only in their sums, so other clauses are quick without it only.
"""

import re
from functools import partial

import pytest

from cluster.real import processes, threads
from tests.contract.cluster.test_comm import *  # noqa: F403
from tests.tiers import slow_except

CLUSTERS = {
    "sockets": partial(processes.run, backend="sockets"),
    "gloo": partial(processes.run, backend="gloo"),
    "threads": threads.run,
}


SUMS = re.compile("reduce|sum|trace")


def pytest_generate_tests(metafunc):
    if "cluster" in metafunc.fixturenames:
        quick = CLUSTERS if SUMS.search(metafunc.function.__name__) else ("sockets", "threads")
        metafunc.parametrize("cluster", slow_except(quick, CLUSTERS), indirect=True)


@pytest.fixture
def cluster(request):
    """Run a program on one real cluster after the other."""
    return CLUSTERS[request.param]
