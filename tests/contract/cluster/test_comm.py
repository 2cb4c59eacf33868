"""The Comm contract: each clause, on the simulated cluster; `tests/system/cluster/test_comm.py` runs them on real ones.

Programs are functions of this module because real ranks are other processes and have to find them.
"""

import re
from functools import partial

import numpy as np
import pytest

import kernels
from cluster import simulated
from cluster.comm import Deadlock, RankFailed, RankLost, shares
from cluster.shared_memory import GUARDS
from tests.quotes import quote
from tracing import COMMUNICATE, KINDS, UPDATE, WAIT

LARGE = 2_000_000  # numbers: more than a socket holds


@pytest.fixture
def cluster():
    """Run a program on the simulated cluster; on real ones in `tests/system/cluster/test_comm.py`."""
    return simulated.run


@pytest.fixture
def run(cluster):
    """run(program, size): an outcome without error."""

    def on_cluster(program, size, **options):
        outcome = cluster(program, size, **options)
        assert outcome.error is None, outcome.error
        return outcome

    return on_cluster


@pytest.fixture
def fail(cluster):
    """fail(program, size): an outcome with an error."""

    def on_cluster(program, size, **options):
        outcome = cluster(program, size, **options)
        assert outcome.error is not None
        return outcome

    return on_cluster


def overwrite_after_send(comm, length):
    if comm.rank == 0:
        x, y = np.ones(length), np.ones(length, np.float32)
        comm.send(x, 1)
        x -= 7
        comm.send((x, (y, 3)), 1)
        x[:] = y[:] = np.nan
        handle = comm.isend(y, 1, tag=1)
        y[:] = 0
        handle.wait()
        return None
    first, (x, (y, three)), z = comm.recv(0), comm.recv(0), comm.recv(0, tag=1)
    return (first == 1).all(), (x == -6).all(), (y == 1).all(), three, np.isnan(z).all()


@pytest.mark.parametrize("length", [5, LARGE])
def test_a_message_is_a_snapshot_at_send(run, length):
    assert run(partial(overwrite_after_send, length=length), 2).results[1] == (True, True, True, 3, True)


def keep_what_was_received(comm):
    if comm.rank == 0:
        for value in (1.0, 2.0):
            comm.send(np.full(4, value), 1)
        return None
    first = comm.recv(0)
    first += 10  # it belongs to the receiver
    second = comm.recv(0)
    return first.tolist(), second.tolist(), first.flags.writeable


def test_a_received_array_is_the_receivers_own(run):
    assert run(keep_what_was_received, 2).results[1] == ([11.0] * 4, [2.0] * 4, True)


def two_tags_interleaved(comm):
    if comm.rank == 0:
        for i in range(20):
            comm.send(np.arange(i * 1000), 1, tag=3 if i % 2 else 0)
        return None
    odd = [len(comm.recv(0, tag=3)) // 1000 for _ in range(10)]
    even = [len(comm.recv(0)) // 1000 for _ in range(10)]
    return odd, even


def test_messages_of_one_pair_and_tag_arrive_in_the_order_they_were_sent(run):
    assert run(two_tags_interleaved, 2).results[1] == (list(range(1, 20, 2)), list(range(0, 20, 2)))


def serve(comm):
    if comm.rank:
        for i in range(5):
            comm.send((comm.rank * 10 + i, np.full(3, comm.rank)), 0)
        comm.send(None, 0)
        return None
    heard = {src: [] for src in range(1, comm.size)}
    open_ = comm.size - 1
    while open_:
        src, message = comm.recv_any()
        if message is None:
            open_ -= 1
        else:
            assert (message[1] == src).all()
            heard[src].append(message[0])
    return heard


def test_a_server_receives_from_anybody_and_knows_from_whom(run):
    assert run(serve, 4).results[0] == {r: [10 * r + i for i in range(5)] for r in (1, 2, 3)}


def receive_from_anybody_with_a_tag(comm):
    if comm.rank:
        comm.send("no" == "yes", 0, tag=1)
        comm.send(comm.rank, 0, tag=comm.rank + 5)
        return None
    picked = [comm.recv_any(tag=7), comm.recv_any(tag=6)]
    return picked, sorted(comm.recv_any(tag=1) for _ in range(2))


def test_receive_from_anybody_takes_only_its_tag(run):
    assert run(receive_from_anybody_with_a_tag, 3).results[0] == ([(2, 2), (1, 1)], [(1, False), (2, False)])


def look(comm):
    if comm.rank:
        comm.recv(0)
        for _ in range(2):
            comm.send(comm.rank, 0, tag=4)
        comm.send(comm.rank, 0, tag=5)
        comm.recv(0)
        return None
    before = list(comm.poll(4))  # nobody has been asked yet
    comm.send(None, 2)
    while not comm.poll(5):
        pass
    after_two = list(comm.poll(4)), list(comm.poll(5)), list(comm.poll(0))
    comm.send(None, 1)
    while comm.poll(5) != [2, 1]:
        pass
    both = list(comm.poll(4))
    taken = comm.recv(2, tag=4), comm.recv(1, tag=4)
    left = list(comm.poll(4))
    for src in (1, 2):
        comm.recv(src, tag=4), comm.recv(src, tag=5), comm.send(None, src)
    return before, after_two, both, taken, left, list(comm.poll(4))


def test_poll_sees_what_has_come_and_only_that_earliest_first(run):
    assert run(look, 3).results[0] == ([], ([2, 2], [2], []), [2, 2, 1, 1], (2, 1), [2, 1], [])


def ask_beforehand(comm):
    if comm.rank == 0:
        for i in range(4):
            comm.isend(i, 1).wait()
        comm.send("other" and 9, 1, tag=2)
        return None
    first, second = comm.irecv(0), comm.irecv(0)
    third = comm.recv(0)  # comes after what was asked for before
    other = comm.irecv(0, tag=2)
    return second.wait(), first.wait(), first.wait(), third, other.wait(), comm.recv(0)


def test_messages_fill_receives_in_the_order_these_were_asked_for(run):
    assert run(ask_beforehand, 2).results[1] == (1, 0, 0, 2, 9, 3)


def ask_one_beforehand(comm):
    if comm.rank:
        comm.recv(0)
        for i in range(3):
            comm.send(10 * comm.rank + i, 0)
        comm.send(None, 0, tag=1)
        return None
    first, second = comm.irecv(1), comm.irecv(1)
    for other in (1, 2):
        comm.send(None, other)
    for other in (1, 2):
        comm.recv(other, tag=1)
    there = list(comm.poll())
    others = [comm.recv_any() for _ in there]
    return there, others, list(comm.poll()), second.wait(), first.wait()


def test_receives_from_anybody_and_poll_leave_to_a_posted_receive_what_is_for_it(run):
    there, others, left, *waited = run(ask_one_beforehand, 3).results[0]
    assert sorted(there) == [1, 2, 2, 2] and [src for src, _ in others] == there and left == []
    assert sorted(x for _, x in others) == [12, 20, 21, 22] and waited == [11, 10]


def wait_for_anybody_after_asking(comm):
    if comm.rank:
        comm.recv(0)
        return comm.send(1, 0), comm.send(2, 0)
    handle = comm.irecv(1)
    comm.send(None, 1)
    return comm.recv_any(), handle.wait()  # the message that comes first is not for whoever waits for anybody


def test_a_wait_for_anybody_takes_nothing_that_a_receive_was_posted_for(run):
    assert run(wait_for_anybody_after_asking, 2).results[0] == ((1, 2), 1)


def wait_for_everything_twice(comm):
    other = 1 - comm.rank
    x, sent, asked = np.full(3, comm.rank + 1.0), comm.isend(comm.rank, other), comm.irecv(other)
    large = comm.isend(np.ones(LARGE), other, tag=1)
    work = comm.all_reduce(x, async_op=True)
    said = [handle.wait() for handle in (sent, sent, asked, asked, large, large)]
    comm.recv(other, tag=1)
    return said, work.wait() is work.wait() is x, x.tolist()


def test_a_handle_that_is_waited_for_again_says_the_same(run):
    for rank, result in enumerate(run(wait_for_everything_twice, 2).results):
        assert result == ([None, None, 1 - rank, 1 - rank, None, None], True, [3.0] * 3)


def overlap(comm):
    x, y = np.full(200_000, comm.rank + 1.0), np.full(7, comm.rank, np.float32)
    work = comm.all_reduce(x, async_op=True), comm.all_reduce(y, "mean", async_op=True)
    z = np.zeros(1000, np.float32)
    for _ in range(10):
        kernels.add(z, np.ones(1000, np.float32))
    comm.send(comm.rank, (comm.rank + 1) % comm.size)
    left = comm.recv((comm.rank - 1) % comm.size)
    also = comm.all_reduce(np.array([1.0]))[0]
    reduced = [handle.wait() for handle in reversed(work)]
    again = work[0].wait()
    return reduced[1] is x and again is x, x.max(), x.min(), y.tolist(), z.sum(), left, also


@pytest.mark.parametrize("size", [1, 2, 3])
def test_an_all_reduce_goes_on_while_its_rank_does_something_else(run, size):
    total = size * (size + 1) / 2
    for rank, result in enumerate(run(overlap, size).results):
        assert result == (True, total, total, [(size - 1) / 2] * 7, 10_000, (rank - 1) % size, size)


def hurry(comm):
    vectors = [np.full(1000, 10.0**i) for i in range(3)]
    work = [comm.all_reduce(x, "mean", async_op=True, priority=3 - i) for i, x in enumerate(vectors)]
    comm.all_reduce(vectors[0].copy(), priority=1)
    return [float(handle.wait()[-1]) for handle in work]


def test_every_cluster_takes_the_hint_which_sum_is_urgent(run):
    assert run(hurry, 2).results == [[1.0, 10.0, 100.0]] * 2


LENGTHS = (0, 1, 3, 10, 300_001)  # the last one is what gloo sums itself
TYPES = (np.float32, np.float64)


def mine(rank, length, dtype):
    return np.random.default_rng([rank, length]).standard_normal(length).astype(dtype)


def reduce_everything(comm):
    results = {}
    for length in LENGTHS:
        for dtype in TYPES:
            for op in ("sum", "mean"):
                x = mine(comm.rank, length, dtype)
                same = comm.all_reduce(x, op) is x
                y = mine(comm.rank, length, dtype)
                piece = comm.reduce_scatter(y, op)
                kept = np.array_equal(y, mine(comm.rank, length, dtype))
                results[length, np.dtype(dtype).name, op] = same, x, piece, kept
    return results


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_all_reduce_and_reduce_scatter_are_the_sum_or_the_mean_over_the_ranks(run, size):
    results = run(reduce_everything, size).results
    for length in LENGTHS:
        for dtype in TYPES:
            parts = [mine(rank, length, dtype) for rank in range(size)]
            for op in ("sum", "mean"):
                expected = np.sum(parts, axis=0, dtype=np.float64) / (size if op == "mean" else 1)
                for rank, result in enumerate(results):
                    same, x, piece, kept = result[length, np.dtype(dtype).name, op]
                    assert same and kept and x.dtype == piece.dtype == dtype
                    np.testing.assert_allclose(x, expected, rtol=0, atol=8 * np.finfo(dtype).eps)
                    np.testing.assert_allclose(
                        piece, expected[shares(length, size)[rank]], rtol=0, atol=8 * np.finfo(dtype).eps
                    )
                    assert np.array_equal(x, results[0][length, np.dtype(dtype).name, op][1])  # the same bits


def reduce_a_matrix(comm):
    x = np.arange(6.0).reshape(2, 3) + comm.rank
    return comm.all_reduce(x), x


def test_an_array_of_any_shape_is_reduced_in_place(run):
    for returned, x in run(reduce_a_matrix, 2).results:
        assert np.array_equal(x, np.arange(6.0).reshape(2, 3) * 2 + 1) and np.array_equal(returned, x)


def gather_everything(comm):
    pieces = comm.all_gather((comm.rank, np.arange(comm.rank), None))
    vectors = comm.all_gather(mine(comm.rank, 10, np.float32)[: comm.rank + 1])
    x = np.full(3, comm.rank)
    own = comm.all_gather(x)[comm.rank]
    x += 100
    return pieces, vectors, own


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_all_gather_gives_everybodys_message_whatever_its_size(run, size):
    for rank, (pieces, vectors, own) in enumerate(run(gather_everything, size).results):
        assert [(r, a.tolist(), n) for r, a, n in pieces] == [(r, list(range(r)), None) for r in range(size)]
        assert all(np.array_equal(v, mine(r, 10, np.float32)[: r + 1]) for r, v in enumerate(vectors))
        assert own.tolist() == [rank] * 3


def give_each_its_own(comm):
    parts = [(np.full(rank, 10 * comm.rank + rank), None) for rank in range(comm.size)]
    received = comm.all_to_all(parts)
    for part, _ in parts:
        part += 100
    return [part.tolist() for part, _ in received], comm.all_to_all([comm.rank] * comm.size)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_all_to_all_gives_each_rank_its_part_of_every_ranks_message(run, size):
    for rank, (parts, numbers) in enumerate(run(give_each_its_own, size).results):
        assert parts == [[10 * source + rank] * rank for source in range(size)]
        assert numbers == [*range(size)]


def broadcast_from_each(comm):
    heard = []
    for src in range(comm.size):
        heard.append(comm.broadcast((src, np.full(src + 1, src)) if comm.rank == src else None, src))
        comm.barrier()
    return [(number, array.tolist()) for number, array in heard]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_broadcast_gives_the_sources_message_to_everybody(run, size):
    assert run(broadcast_from_each, size).results == [[(s, [s] * (s + 1)) for s in range(size)]] * size


def meet_at_barriers(comm):
    seen = []
    for late in range(comm.size):
        if comm.rank == late:
            for other in range(comm.size):
                comm.send(late, other)  # to itself as well
        comm.barrier()
        seen.append(comm.recv(late))
        comm.barrier()
    return seen


@pytest.mark.parametrize("size", [1, 3])
def test_a_rank_can_write_to_itself_and_to_everybody(run, size):
    assert run(meet_at_barriers, size).results == [list(range(size))] * size


MESSAGES = (
    None,
    3,
    2.5,
    True,
    np.float32(1.5),
    np.arange(6, dtype=np.int64).reshape(2, 3),
    np.zeros((0, 4), np.float32),
    np.array(7.0),
    (),
    (1, None, (np.arange(3.0), (2,)), np.float64(4)),
)


def send_every_kind(comm):
    if comm.rank == 0:
        for message in MESSAGES:
            comm.send(message, 1)
        comm.send(np.arange(12.0).reshape(3, 4)[:, ::2], 1)
        return None
    return [comm.recv(0) for _ in MESSAGES], comm.recv(0)


def alike(a, b):
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)
    return type(a) is type(b) and a == b


def test_a_message_is_none_a_number_an_array_or_a_tuple_of_these(run):
    received, strided = run(send_every_kind, 2).results[1]
    assert all(map(alike, MESSAGES, received))
    assert strided.flags.c_contiguous and strided.tolist() == [[0, 2], [4, 6], [8, 10]]


def large_then_small(comm):
    other = 1 - comm.rank
    for size in (LARGE, 1, LARGE // 2, 0, 3, LARGE, 2):
        comm.send(np.full(size, size, np.int64), other)  # both at once: nobody waits for a receiver
    received = [comm.recv(other) for _ in range(7)]
    return [len(x) for x in received], all((x == len(x)).all() for x in received)


def test_large_and_small_messages_follow_each_other(run):
    assert run(large_then_small, 2).results == [([LARGE, 1, LARGE // 2, 0, 3, LARGE, 2], True)] * 2


def divide(comm):
    rows = comm.split(comm.rank // 2)
    columns = comm.split(comm.rank % 2)
    x = np.array([float(comm.rank)])
    in_rows, in_columns = rows.all_reduce(x.copy())[0], columns.all_reduce(x.copy())[0]
    comm.send(1, (comm.rank + 1) % comm.size)  # the same pair and tag in two groups
    rows.send(2, (rows.rank + 1) % rows.size)
    own = rows.recv_any(), comm.recv_any()
    again = comm.split(comm.rank // 2)  # the same ranks, and yet another group
    rows.send(3, rows.rank)
    again.send(4, again.rank)
    fourth, third = again.recv(again.rank), rows.recv(rows.rank)
    alone = rows.split(rows.rank)
    nested = alone.size, alone.rank, alone.all_gather(comm.rank)
    some = comm.split(0 if comm.rank in (1, 3) else None)
    members = some and some.all_gather(comm.rank)
    values = in_rows, in_columns, fourth, third
    return (rows.rank, rows.size), (columns.rank, columns.size), values, own, nested, members


def test_split_makes_groups_that_do_not_hear_each_other_and_can_be_split_again(run):
    results = run(divide, 4).results
    ranks, rows_and_columns = range(4), [[r[i] for r in results] for i in (0, 1)]
    assert rows_and_columns == [[(r % 2, 2) for r in ranks], [(r // 2, 2) for r in ranks]]
    assert [r[2] for r in results] == [(1.0, 2.0, 4, 3), (1.0, 4.0, 4, 3), (5.0, 2.0, 4, 3), (5.0, 4.0, 4, 3)]
    assert [r[3] for r in results] == [((1 - r % 2, 2), ((r - 1) % 4, 1)) for r in ranks]
    assert [r[4] for r in results] == [(1, 0, [r]) for r in ranks]
    assert [r[5] for r in results] == [None, [1, 3], None, [1, 3]]


def sum_large_vectors_in_groups(comm):
    groups = [comm.split(comm.rank % 2), comm.split(comm.rank % 2), comm.split(0 if comm.rank else None), comm]
    works = [g.all_reduce(np.full(200_000, 10.0**comm.rank), async_op=True) for g in groups if g]
    sums = [work.wait() for work in works]
    return [float(x[0]) for x in sums if (x == x[0]).all()]


def test_each_group_sums_its_own_vectors(run):
    results = run(sum_large_vectors_in_groups, 3).results
    assert results == [[101, 101, 111], [10, 10, 110, 111], [101, 101, 110, 111]]


def share(comm):
    shared = comm.shared(np.arange(6.0) if comm.rank == 0 else np.zeros(6))
    other = comm.shared(np.zeros((2, 2), np.float32))
    first = shared.read()
    comm.barrier()
    for rank in range(comm.size):  # one after the other: unlocked adds may be lost
        if rank == comm.rank:
            shared.add(np.ones(6))
            shared.add(np.full(2, 10.0), slice(4, 6))
            shared.add(np.array([100.0, 100.0]), np.array([0, 0]))
            other.add(np.ones((2, 2), np.float32))
        comm.barrier()
    copy = shared.read()
    copy += 1000
    return (
        first.tolist(),
        shared.read().tolist(),
        shared.read(np.array([5, 0])).tolist(),
        shared.read(slice(1, 3)),
        other,
    )


def share_and_show(comm):
    *seen, some, other = share(comm)
    return (*seen, some.tolist(), other.read().tolist())


def test_shared_memory_is_read_and_added_to_by_all_ranks(run):
    for size in (1, 3):
        total = [i + size for i in range(6)]
        total[0], total[4], total[5] = total[0] + 200 * size, total[4] + 10 * size, total[5] + 10 * size
        expected = ([0, 1, 2, 3, 4, 5], total, [total[5], total[0]], total[1:3], [[size] * 2] * 2)
        assert run(share_and_show, size).results == [expected] * size


def look_and_guard(comm):
    shared = comm.shared(np.arange(3.0), "atomic")
    comm.barrier()
    if comm.rank == 0:
        shared.add(np.ones(3))
    comm.barrier()
    try:
        comm.shared(np.zeros(2), "iron")
    except ValueError as error:
        return shared.vector.tolist(), str(error)


def test_shared_memory_can_be_looked_at_and_a_guard_that_there_is_not_is_refused(run):
    for seen, refused in run(look_and_guard, 2).results:
        assert seen == [1, 2, 3]
        assert refused == "there is no guard 'iron' of shared memory; use one of none, atomic, writes, locked."


def share_what_rank_zero_gives(comm):
    kinds = np.arange(4.0), np.zeros((3, 3), np.float32), np.arange(7, dtype=np.int16)
    vectors = [comm.shared(kinds[(comm.rank + i) % 3]) for i in range(3)]
    seen = [vector.read() for vector in vectors]
    part = vectors[0].read(slice(0, 2))
    comm.barrier()
    part[:] = 100  # a copy
    comm.barrier()
    return [(x.dtype.str, x.tolist()) for x in (*seen, vectors[0].read())]


def test_the_shared_vector_is_in_all_that_of_rank_zero_and_what_is_read_is_a_copy(run):
    kinds = [("<f8", [0.0, 1.0, 2.0, 3.0]), ("<f4", [[0.0] * 3] * 3), ("<i2", list(range(7)))]
    assert run(share_what_rank_zero_gives, 3).results == [[*kinds, kinds[0]]] * 3


ADDITIONS = (  # shape of the vector, delta, where
    (6, np.ones(6), None),
    (6, np.arange(12.0)[::2], None),
    (6, np.ones(6, np.float32), None),
    (6, np.ones(1), None),
    (6, 2.0, None),
    (6, np.ones(3), slice(1, None, 2)),
    (6, np.ones(2), np.array([-1, -6])),
    (6, np.array([1.0, 2.0]), np.array([3, 3])),
    (6, np.ones(1), np.array([4, 5])),
    (6, np.ones(2), np.array([True, False, False, True, False, False])),
    (6, np.ones(0), np.array([], int)),
    (6, np.ones(3), None),
    (6, np.ones(3), slice(0, 2)),
    (6, np.ones(2), np.array([0, 6])),
    (6, np.ones(3), np.array([0, 1])),
    ((2, 3), np.ones((2, 3)), None),
    ((3, 3), np.ones((2, 3)), slice(0, 3, 2)),
    ((2, 3), np.ones((2, 3)), np.array([-1, 0])),
)


def add_in_all_ways(comm, guard):
    left = []
    for kind in (np.float32, np.float64):
        for shape, delta, where in ADDITIONS:
            shared, error = comm.shared(np.ones(shape, kind), guard), ""
            if comm.rank == 0:
                try:
                    shared.add(delta, where)
                except Exception as raised:
                    error = type(raised).__name__
            comm.barrier()
            left.append((error, shared.read().tolist()))
    return left


@pytest.mark.parametrize("guard", GUARDS)
def test_an_addition_is_that_of_numpy_under_every_guard_and_adds_nothing_where_that_refuses(run, guard):
    expected = []
    for shape, delta, where in ADDITIONS:
        x, error = np.ones(shape), ""
        try:
            np.add.at(x, slice(None) if where is None else where, delta)
        except (ValueError, IndexError) as raised:
            x, error = np.ones(shape), type(raised).__name__
        expected.append((error, x.tolist()))
    assert {error for error, _ in expected} == {"", "ValueError", "IndexError"}
    first, second = run(partial(add_in_all_ways, guard=guard), 2).results
    assert first == expected * 2 and [x for _, x in second] == [x for _, x in expected] * 2


class Add:
    """Steps that add one to every number of a vector."""

    where, price = slice(None), (1e3, 1e3)

    def __init__(self, steps):
        self.steps = steps

    def parts(self):
        return (Add(1) for _ in range(self.steps))

    def __call__(self, w, atomic):
        for _ in range(self.steps):
            (kernels.descend_atomic if atomic else kernels.sgd)(w, np.full(len(w), -1.0, w.dtype), 1.0)
        return 0.5 * self.steps


STEPS = 60


def step_and_add(comm, guard):
    shared, places = comm.shared(np.zeros(20_000), guard), np.array([0, -1, 7, 7])
    comm.barrier()
    losses = shared.walk(Add(STEPS))[0]
    for _ in range(STEPS):
        shared.add(np.ones(20_000))
        shared.add(np.ones(10_000), slice(10_000))
        shared.add(np.ones(4), places)
    comm.barrier()
    x = shared.read()
    return losses, [sorted(set(x[part].tolist())) for part in (slice(8, 10_000), slice(10_000, -1), [0], [-1], [7])]


@pytest.mark.parametrize("guard", GUARDS[1:])
def test_under_a_guard_no_step_and_no_addition_is_lost_whoever_else_writes(run, guard):
    for size in (1, 3):
        each = size * STEPS
        sums = [[3 * each], [2 * each], [4 * each], [3 * each], [5 * each]]
        assert run(partial(step_and_add, guard=guard), size).results == [(0.5 * STEPS, sums)] * size


def step_and_read(comm):
    shared, torn = comm.shared(np.zeros(200_000), "locked"), 0
    comm.barrier()
    if comm.rank:
        shared.walk(Add(STEPS))
    else:
        for _ in range(4 * STEPS):
            x = shared.read()
            torn += int(x.min() != x.max())
    comm.barrier()
    return torn, sorted(set(shared.read().tolist()))


def test_under_the_lock_nobody_reads_a_part_of_a_step(run):
    assert run(step_and_read, 3).results == [(0, [2.0 * STEPS])] * 3


def wait_for_each_other(comm):
    comm.event_log.step = 3
    return comm.recv(1 - comm.rank, tag=6)


def wait_for_one_that_has_finished(comm):
    return comm.recv(1) if comm.rank == 0 else None


def wait_for_anybody(comm):
    return comm.recv_any(tag=2) if comm.rank < 2 else comm.barrier()


def test_a_deadlock_says_who_waits_for_whom(fail):
    error = fail(wait_for_each_other, 2).error
    assert isinstance(error, Deadlock) and "timeout" not in str(error)  # found at once
    assert {(wait.rank, wait.source, wait.tag) for wait in error.waits} == {(0, 1, 6), (1, 0, 6)}
    assert all(str(wait) in str(error) for wait in error.waits)


def test_waiting_for_a_rank_that_has_finished_is_a_deadlock(fail):
    error = fail(wait_for_one_that_has_finished, 2).error
    assert isinstance(error, Deadlock)
    assert [(wait.rank, wait.source, wait.tag) for wait in error.waits] == [(0, 1, 0)]


def test_waiting_for_anybody_while_nobody_sends_is_a_deadlock(fail):
    error = fail(wait_for_anybody, 3).error
    assert isinstance(error, Deadlock)
    assert {(wait.rank, wait.source, wait.tag) for wait in error.waits} >= {(0, "any rank", 2), (1, "any rank", 2)}
    assert [wait.collective for wait in error.waits if wait.rank == 2] == ["barrier"]


def leave_some_unread(comm):
    if comm.rank == 0:
        comm.send(1, 1), comm.send(2, 1), comm.send(3, 1, tag=4), comm.send(4, 1, tag=5)
    else:
        comm.recv(0, tag=5)


def test_messages_nobody_read_are_named_and_are_no_error(run):
    notes = run(leave_some_unread, 2).notes
    assert len(notes) == 2
    for note, words in zip(
        notes, ("rank 1 … 2 messages … rank 0 … tag 0", "rank 1 … 1 message … rank 0 … tag 4"), strict=True
    ):
        assert re.search(quote(words), note)


def raise_in_step_seven(comm):
    comm.event_log.losses.append((6, 1, comm.event_log.clock(), 0.5))
    comm.barrier()
    comm.event_log.step = 7
    if comm.rank == 1:
        raise LookupError("the batch is gone")
    return comm.recv(1)


def test_an_exception_is_named_with_its_rank_and_step_and_nothing_recorded_is_lost(fail):
    outcome = fail(raise_in_step_seven, 3)
    assert isinstance(outcome.error, RankFailed) and not isinstance(outcome.error, RankLost)
    assert (outcome.error.rank, outcome.error.step) == (1, 7)
    assert re.search(quote("rank 1 … step 7 … LookupError: the batch is gone"), str(outcome.error))
    assert isinstance(outcome.error.__cause__, LookupError)
    assert outcome.results == [None] * 3
    assert [event_log.losses[0][3] for event_log in outcome.event_logs] == [0.5] * 3


def send_too_far(comm):
    comm.send(1, 5)


def test_a_rank_that_does_not_exist_is_refused_in_one_sentence(fail):
    assert re.search(quote("no rank 5 … 0 to 1"), str(fail(send_too_far, 2).error))


def send_a_list(comm):
    comm.send((1, [2.0]), 1 - comm.rank)


def test_what_is_no_message_is_refused_in_one_sentence(fail):
    error = fail(send_a_list, 2).error
    assert re.search(quote("message … not a list"), str(error))


def reduce_a_column(comm):
    comm.all_reduce(np.zeros((4, 4))[:, 1])


def test_all_reduce_refuses_an_array_it_cannot_change_in_place(fail):
    assert "contiguous" in str(fail(reduce_a_column, 2).error)


def reduce_integers(comm, method, op):
    x = np.arange(3) + comm.rank
    with pytest.raises(ValueError, match="mean") as refused:
        getattr(comm, method)(x, op)
    return str(refused.value), comm.all_reduce(x).tolist()


@pytest.mark.parametrize("method", ["all_reduce", "reduce_scatter"])
def test_integers_are_summed_and_their_mean_is_refused(run, method):
    for refused, total in run(partial(reduce_integers, method=method, op="mean"), 2).results:
        assert re.search(quote("int64 … mean … floats … sum"), refused)
        assert total == [1, 3, 5]
    for refused, _ in run(partial(reduce_integers, method=method, op="largest"), 2).results:
        assert re.search(quote("'largest' … sum or mean"), refused)


def a_little_of_everything(comm):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for step in range(3):
        comm.event_log.step = step
        with comm.event_log.doing(0, "gradient"):
            g = np.full(300_001, comm.rank + 1.0, np.float32)
        comm.all_reduce(g)
        comm.send((g, 1.0), right, tag=2)
        x, _ = comm.recv(left, tag=2)
        kernels.add(x, g)
    comm.barrier()
    return x


def test_every_cluster_writes_the_same_trace(run):
    reference = simulated.run(a_little_of_everything, 3).trace()
    outcome = run(a_little_of_everything, 3)
    trace = outcome.trace()
    assert [x[0] for x in outcome.results] == [12.0] * 3
    assert {n: c.dtype for n, c in trace.spans.items()} == {n: c.dtype for n, c in reference.spans.items()}
    assert {n: c.dtype for n, c in trace.messages.items()} == {n: c.dtype for n, c in reference.messages.items()}
    assert np.array_equal(trace.traffic(), reference.traffic())
    single = ~trace.messages["collective"]
    assert single.sum() == 9 and (trace.messages["bytes"][single] == 300_001 * 4 + 8).all()
    assert (trace.messages["tag"][single] == 2).all() and (trace.messages["tag"][~single] < 0).all()
    assert (trace.messages["arrived"] > trace.messages["sent"]).all()
    assert (trace.spans["end"] >= trace.spans["start"]).all() and (trace.spans["start"] >= 0).all()
    for rank in range(3):
        own = trace.spans["rank"] == rank
        kinds, steps = trace.spans["kind"][own], trace.spans["step"][own]
        assert (kinds == KINDS.index("compute")).sum() == 3 and {COMMUNICATE, UPDATE} <= set(kinds.tolist())
        assert {0, 1, 2} == set(steps.tolist())
        assert (np.diff(trace.spans["start"][own]) >= 0).all()
        assert (trace.spans["start"][own][1:] >= trace.spans["end"][own][:-1] - 1e-9).all()  # one thing at a time
    assert {"gradient", "add"} <= set(trace.labels)


def come_late(comm):
    for _ in range(3):
        if comm.rank == 1:
            comm.recv(0)
            spend(comm, 0.05)
            comm.send(1.0, 0)
            spend(comm, 0.05)
        else:
            comm.send(1.0, 1)
            comm.recv(1)
        comm.all_reduce(np.ones(200_000))


def spend(comm, seconds):
    """Compute for so long on whatever clock the cluster has."""
    x = np.zeros(1_000_000, np.float32)
    end = comm.event_log.clock() + seconds
    with comm.event_log.doing(0, "gradient"):
        while comm.event_log.clock() < end:
            kernels.add(x, x)


def test_waiting_for_a_late_rank_ends_when_it_sends_and_the_rest_is_communication(run):
    outcome = run(come_late, 2)
    punctual, late = outcome.event_logs
    sent = np.array([message[3] for message in late.messages])
    waits = [row for row in punctual.spans if row[0] == WAIT and row[4] in ("receive", "all-reduce")]
    assert {row[4] for row in waits} == {"receive", "all-reduce"}
    for _, start, end, *_ in waits:
        assert np.abs(sent - end).min() < 1e-9
        assert end > start and any(row[0] == COMMUNICATE and row[1] == end for row in punctual.spans)


def sum_random_numbers(comm):
    return comm.all_reduce(mine(comm.rank, 100_001, np.float32), "mean")


def test_a_sum_has_the_same_bits_on_every_cluster(run):
    reference = simulated.run(sum_random_numbers, 3).results[0]
    for x in run(sum_random_numbers, 3).results:
        assert np.array_equal(x, reference)
