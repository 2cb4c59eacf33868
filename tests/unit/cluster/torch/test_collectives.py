"""torch.distributed on simulated ranks: what each operation gives."""

import time

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from cluster.torch import simulate


def begin():
    dist.init_process_group()
    return dist.get_rank(), dist.get_world_size()


def collectives():
    r, n = begin()
    x = torch.arange(10.0) + r
    dist.all_reduce(x)
    assert torch.equal(x, n * torch.arange(10.0) + n * (n - 1) / 2)
    x = torch.ones(3) * r
    dist.all_reduce(x, op=dist.ReduceOp.MAX, async_op=True).wait()
    assert x[0] == n - 1
    x = torch.tensor([r + 1.0])
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    assert x == (n + 1) / 2
    x = torch.full((2,), float(r))
    dist.broadcast(x, n - 1)
    assert x[0] == n - 1
    x = torch.full((2,), float(r))
    dist.reduce(x, 0)
    assert r or x[0] == n * (n - 1) / 2
    outs = [torch.zeros(2) for _ in range(n)]
    dist.all_gather(outs, torch.full((2,), float(r)))
    assert [out[0].item() for out in outs] == list(range(n))
    out = torch.zeros(2 * n)
    dist.all_gather_single(out, torch.full((2,), float(r)))
    assert out[::2].tolist() == list(range(n))
    out = torch.zeros(2)
    dist.reduce_scatter_single(out, torch.arange(2.0 * n))
    assert out.tolist() == [2 * r * n, (2 * r + 1) * n]
    dist.reduce_scatter(out, list(torch.arange(2.0 * n).chunk(n)))
    assert out.tolist() == [2 * r * n, (2 * r + 1) * n]
    out = torch.zeros(n)
    dist.all_to_all_single(out, torch.full((n,), float(r)))
    assert out.tolist() == list(range(n))
    outs = [torch.zeros(1) for _ in range(n)]
    dist.all_to_all(outs, [torch.full((1,), float(r * n + i)) for i in range(n)])
    assert [out.item() for out in outs] == [i * n + r for i in range(n)]
    outs = [torch.zeros(1) for _ in range(n)] if r == 0 else None
    dist.gather(torch.full((1,), float(r)), outs)
    assert r or [out.item() for out in outs] == list(range(n))
    out = torch.zeros(1)
    dist.scatter(out, [torch.full((1,), float(i)) for i in range(n)] if r == 0 else None)
    assert out == r
    objects = [None] * n
    dist.all_gather_object(objects, {"r": r})
    assert [one["r"] for one in objects] == list(range(n))
    objects = [{"x": 1}] if r == 0 else [None]
    dist.broadcast_object_list(objects, 0)
    assert objects[0] == {"x": 1}
    dist.barrier()
    dist.monitored_barrier()
    return r


def messages():
    r, n = begin()
    a, b = torch.full((4,), float(r)), torch.zeros(4)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, a, (r + 1) % n), dist.P2POp(dist.irecv, b, (r - 1) % n)])
    for work in works:
        work.wait()
    assert b[0] == (r - 1) % n
    if r:
        dist.send(torch.full((2,), float(r)), 0)
        return None
    x = torch.zeros(2)
    return sorted((dist.recv(x), x[0].item()) for _ in range(n - 1))


def groups():
    r, n = begin()
    pairs = [dist.new_group([2 * i, 2 * i + 1]) for i in range(n // 2)]
    x = torch.ones(1) * r
    dist.all_reduce(x, group=pairs[r // 2])
    mesh = init_device_mesh("cpu", (n // 2, 2), mesh_dim_names=("dp", "tp"))
    y = torch.ones(1) * r
    dist.all_reduce(y, group=mesh.get_group("dp"))
    return x.item(), y.item()


@pytest.mark.filterwarnings("ignore")
def test_every_collective_gives_what_torch_promises():
    for ranks in (1, 2, 4, 5):
        assert simulate(collectives, ranks).results == list(range(ranks))


def test_messages_arrive_from_a_rank_and_from_any():
    assert simulate(messages, 4).results[0] == [(1, 1.0), (2, 2.0), (3, 3.0)]


def test_groups_and_meshes_sum_among_their_members():
    assert simulate(groups, 4).results == [(1.0, 2.0), (1.0, 4.0), (5.0, 2.0), (5.0, 4.0)]


def test_any_backend_that_a_script_names_is_ours():
    for backend in (None, "gloo", "nccl", "cpu:gloo,cuda:nccl"):

        def ranks(backend=backend):
            dist.init_process_group(backend)
            x = torch.ones(1)
            dist.all_reduce(x)
            return x.item()

        assert simulate(ranks, 3).results == [3.0, 3.0, 3.0], backend


def test_an_all_reduce_moves_two_n_minus_one_nths_of_the_vector_in_the_time_of_a_ring():
    from cluster.network import NETWORKS

    def ranks():
        begin()
        dist.all_reduce(torch.zeros(1_000_000))

    outcome, link = simulate(ranks, 4, network="1GbE"), NETWORKS["1GbE"].between
    assert outcome.summary.sent.tolist() == [2 * 3 / 4 * 4e6] * 4
    transfer = 2 * 3 / 4 * 4e6 / link.bandwidth + 2 * 3 * (link.latency + link.overhead)
    assert transfer < outcome.summary.communicate[0] < 1.1 * transfer, "the rest is the sums"


def ends_of(messages):
    return sorted((int(src), int(dst)) for src, dst in zip(messages["src"], messages["dst"], strict=True))


def test_a_collectives_messages_are_drawn_from_when_bytes_move_and_not_from_when_a_rank_joins():
    def late(collective):
        r, n = begin()
        time.sleep(0.01 * (r == 3))
        collective(torch.zeros(1000), r, n)

    for collective in (
        lambda x, r, n: dist.all_reduce(x),
        lambda x, r, n: dist.broadcast(x, 3),
        lambda x, r, n: dist.reduce(x, 0),
        lambda x, r, n: dist.all_to_all_single(torch.zeros(1000), x),
    ):
        messages = simulate(late, 4, args=(collective,)).trace.messages
        mine = (messages["src"] == 3) | (messages["dst"] == 3)
        assert mine.any() and messages["sent"][mine].min() >= 0.01
        if len(messages["sent"]) == 4:  # a ring: nothing goes round before all are there
            assert messages["sent"].min() >= 0.01


def test_a_broadcast_is_drawn_as_a_tree_and_a_gather_as_a_star():
    def broadcast():
        begin()
        dist.broadcast(torch.zeros(1000), 0)

    def gather():
        r, n = begin()
        dist.gather(torch.zeros(1000), [torch.zeros(1000) for _ in range(n)] if r == 1 else None, 1)

    tree, star = (simulate(program, 4).trace.messages for program in (broadcast, gather))
    assert ends_of(tree) == [(0, 1), (0, 2), (1, 3)] and set(tree["bytes"]) == {4000}
    relayed = tree["sent"][(tree["src"] == 1)][0]
    assert relayed >= tree["arrived"][tree["dst"] == 1][0], "a rank passes on what it has received"
    assert ends_of(star) == [(0, 1), (2, 1), (3, 1)] and set(star["bytes"]) == {4000}
    arrived = sorted(star["arrived"])
    assert arrived[0] < arrived[1] < arrived[2], "they share the port of the root"


def test_ranks_of_a_group_on_shared_ports_still_pass_everything_round_the_ring():
    from cluster.network import NETWORKS

    def strided():
        r, _ = begin()
        group = dist.new_group([0, 2, 1, 3])
        x = torch.arange(8.0) * (r + 1)
        dist.all_reduce(x, group=group)
        return x[1].item()

    outcome = simulate(strided, 4, network=NETWORKS["10GbE"].on_nodes(2))
    assert outcome.results == [10.0] * 4
    assert len(outcome.trace.messages["src"]) in (4, 24)
