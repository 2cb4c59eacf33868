"""What ranks are called, and how many of them are drawn as one."""

import numpy as np
import pytest

from experiments.specification.experiment import Experiment
from experiments.viewer import bars
from experiments.viewer.lanes import group_ranks, groups
from experiments.viewer.pictures import Shown
from experiments.wording.rank_names import rank_names


@pytest.mark.parametrize(
    ("algorithm", "name"),
    [
        ("layer_wise", "stage 3"),
        ("gpipe", "stage 3"),
        ("tensor", "rank 3"),
        ("three_d", "rank 3"),
        ("distbelief", "rank 3"),
        ("hybrid", "rank 3"),
        ("greedy", "module 3"),
        ("sync_sgd", "worker 3"),
        ("asgd", "worker 3"),
    ],
)
def test_a_rank_is_called_a_stage_only_where_it_has_layers_of_its_own(algorithm, name):
    assert rank_names(Experiment(algorithm=algorithm), 4)[3] == name


@pytest.mark.parametrize(("servers", "workers"), [(1, 32), (1, 300), (3, 70), (40, 40), (0, 100)])
def test_no_group_of_ranks_has_servers_and_workers(servers, workers):
    names = [f"server {n}" for n in range(servers)] + [f"worker {n}" for n in range(servers, servers + workers)]
    for most in (16, 32, 64):
        some = groups(names, most)
        assert [n for one in some for n in range(len(names))[one]] == list(range(len(names)))
        assert all(len({name.split()[0] for name in names[one]}) == 1 for one in some)
        assert len(some) == min(most, len(names))


def test_a_server_has_a_bar_of_its_own_among_many_workers(made):
    drawn = bars.shares([Shown("", made(Experiment(algorithm="asgd", workers=40)), 0)])
    assert drawn.ranks[0] == "server 0" and drawn.ranks[1].startswith("workers 1-")


def test_the_traffic_of_a_server_is_not_added_to_that_of_workers():
    names = ["server 0", *(f"worker {n}" for n in range(1, 101))]
    table = np.zeros((101, 101))
    table[0, 1:] = 1
    small, words = group_ranks(table, names, both=True)
    assert words[0] == "server 0" and small[0].sum() == 100 and not small[1:].any()
