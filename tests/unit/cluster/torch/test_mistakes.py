"""What people are told about mistakes: the rank, the operation, and the line of the script."""

import os
import re

import pytest
import torch
import torch.distributed as dist

from cluster.comm import ClusterError, Deadlock, RankFailed, RankLost
from cluster.faults import Faults
from cluster.torch import simulate
from cluster.torch.launch import warn_of_version
from cluster.torch.machines import SimulatedMachines
from cluster.torch.refusals import NotSimulated
from tests.quotes import quote


def begin():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def line(function, offset):
    return f"line {function.__code__.co_firstlineno + offset} of test_mistakes.py"


def test_collectives_that_do_not_match_are_named_with_both_lines():
    def lengths():
        r, _ = begin()
        dist.all_reduce(torch.ones(3 + (r == 1)))

    def kinds():
        r, _ = begin()
        x = torch.ones(3)
        dist.broadcast(x, 0) if r else dist.all_reduce(x)

    with pytest.raises(ClusterError, match=quote("4 numbers … 3 numbers … collective 1 of group 'default'")) as error:
        simulate(lengths, 2)
    assert str(error.value).count(line(lengths, 2)) == 2
    with pytest.raises(ClusterError, match=quote("rank 1 calls broadcast … rank 0 calls all_reduce")):
        simulate(kinds, 2)


def test_a_deadlock_says_who_is_missing_and_where_the_others_wait():
    def skip():
        r, _ = begin()
        if r != 2:
            dist.all_reduce(torch.ones(3))

    with pytest.raises(
        Deadlock, match=quote("all_reduce of group 'default' … rank 2 is missing: it has ended")
    ) as error:
        simulate(skip, 3)
    assert line(skip, 3) in str(error.value)


def test_two_ranks_that_send_first_wait_forever_unless_sends_are_eager():
    def send_first():
        r, _ = begin()
        x = torch.full((4,), float(r))
        dist.send(x, 1 - r)
        dist.recv(x, 1 - r)
        return x[0].item()

    with pytest.raises(Deadlock, match=quote("ranks 0 and 1 wait in send (line … each for the other")) as error:
        simulate(send_first, 2)
    assert [(wait.rank, wait.source) for wait in error.value.waits] == [(0, 1), (1, 0)]
    assert simulate(send_first, 2, eager=16).results == [1.0, 0.0]
    with pytest.raises(Deadlock):
        simulate(send_first, 2, eager=15)


def test_a_receive_of_another_size_is_an_error_and_not_half_a_message():
    def receive():
        r, _ = begin()
        dist.recv(torch.zeros(5), 0) if r else dist.send(torch.zeros(4), 1)

    with pytest.raises(ClusterError, match=quote("rank 1 receives 5 numbers … rank 0 has sent 4")):
        simulate(receive, 2)


def test_a_wait_for_a_message_that_nobody_sends_names_the_line():
    def receive():
        r, _ = begin()
        if r:
            dist.recv(torch.zeros(5), 0)

    with pytest.raises(Deadlock, match=quote("rank 1 waits for a message (line … from rank 0")) as error:
        simulate(receive, 2)
    assert line(receive, 3) in str(error.value)


def test_a_deadlock_tells_of_ranks_at_one_line_together_and_once():
    def receive(whom):
        r, n = begin()
        dist.recv(torch.ones(1), whom(r) % n)

    for whom, words in (
        (lambda r: r + 1, "each from the next rank"),
        (lambda r: r - 1, "each from the previous rank"),
        (lambda r: r + 3, "each from the rank 3 after it"),
        (lambda r: r - 5, "each from the rank 5 before it"),
        (lambda r: r ^ 1, "each from another rank"),
    ):
        with pytest.raises(Deadlock) as error:
            simulate(lambda whom=whom: receive(whom), 64)
        told = str(error.value)
        assert re.search(quote(f"ranks 0 to 63 wait for a message (line … {words}, since"), told)
        assert told.count(line(receive, 2)) == 1 and len(error.value.waits) == 64 and len(told) < 200

    def meet():
        r, _ = begin()
        if r not in (1, 5, 6, 7):
            dist.all_reduce(torch.ones(1))

    with pytest.raises(Deadlock, match=quote("ranks 1 and 5 to 7 are missing: they have ended")) as error:
        simulate(meet, 64)
    assert "ranks 0, 2 to 4 and 8 to 63 wait in all_reduce" in str(error.value)


def test_a_lost_rank_is_reported_to_those_who_wait_for_it():
    def train():
        begin()
        x = torch.ones(300, 300)
        for _ in range(50):
            dist.all_reduce(x @ x)

    with pytest.raises(RankLost, match=quote("rank 2 was lost … waits for it in all_reduce")):
        simulate(train, 4, faults=Faults(crash={2: 0.002}))
    with pytest.raises(ValueError, match="cannot restart"):
        simulate(train, 4, faults=Faults(crash={2: 0.002}, back={2: 0.003}))


def test_what_is_not_simulated_is_refused_with_the_line_and_what_to_do_instead():
    def cuda():
        return torch.zeros(3).to("cuda")

    def forks():
        return os.fork()

    def remote():
        from torch.distributed import rpc

        rpc.init_rpc("worker")

    for program, words in ((cuda, "CUDA … CPU"), (forks, "os.fork … mp.spawn"), (remote, "rpc … send and recv")):
        with pytest.raises(NotSimulated, match=quote(words)) as error:
            simulate(program, 2)
        assert f"of {os.path.basename(__file__)}" in str(error.value)


def test_what_runs_in_another_way_is_noted():
    from torch.utils.data import DataLoader, TensorDataset

    def others():
        assert not torch.cuda.is_available()
        begin()
        loaded = DataLoader(TensorDataset(torch.ones(32)), batch_size=4, num_workers=2)
        model = torch.compile(torch.nn.Linear(4, 4))
        return sum(x.sum().item() for (x,) in loaded), model(torch.ones(2, 4)).shape

    outcome = simulate(others, 2)
    assert outcome.results == [(32.0, (2, 4))] * 2
    assert any("torch.compile" in note for note in outcome.notes) and any(
        "DataLoader" in note for note in outcome.notes
    )


def test_a_training_without_end_may_stop_after_some_steps():
    def train():
        begin()
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        while True:
            model(torch.ones(2, 3)).sum().backward()
            optimizer.step()

    assert simulate(train, 3, steps=4).summary.steps == 4


def test_a_wrong_number_of_ranks_is_told_what_to_do():
    def two():
        dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=2)

    with pytest.raises(RankFailed, match=quote("of 2 … of 3 … simulate 2 ranks")):
        simulate(two, 3)
    for wrong, words in (({"ranks": 0}, "ranks: 0"), ({"ranks": 2, "clock": "wall"}, "clock … roofline or measured")):
        with pytest.raises(ValueError, match=quote(words)):
            SimulatedMachines(**wrong)


def test_a_version_of_torch_that_was_not_tried_is_named(monkeypatch):
    assert warn_of_version() == ""
    monkeypatch.setattr(torch, "__version__", "2.99.0")
    assert "2.99.0" in warn_of_version()
