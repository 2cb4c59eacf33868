"""Errors that a program catches: afterwards everything goes on, on the simulated cluster.

`tests/system/cluster/test_survived.py` holds real ones to the same. Programs are functions of this module because real
ranks are other processes and have to find them.
"""

from functools import partial

import numpy as np
import pytest

import kernels
from cluster import simulated
from cluster.comm import RankLost
from cluster.faults import Faults
from tests.contract.cluster.test_comm import cluster as cluster
from tests.contract.cluster.test_comm import run as run

LARGE = 140_000  # float64: what ranks of one computer sum in shared memory
SHORT = 5


def round_of_everything(comm):
    """Send, receive and reduce in all ways; return what came of it."""
    size, right, left = comm.size, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    handle = comm.irecv(left, tag=3)
    comm.isend(comm.rank, right, tag=3).wait()
    comm.send((comm.rank, np.arange(3.0)), right)
    got = [handle.wait(), comm.recv(left)[0]]
    comm.send(comm.rank, right, tag=4)
    got += comm.recv_any(tag=4)
    works = [comm.all_reduce(np.ones(length), async_op=True) for length in (SHORT, LARGE)]
    sums = [comm.all_reduce(np.ones(length)) for length in (SHORT, LARGE)] + [work.wait() for work in works]
    got += [set(x) for x in sums] + [comm.reduce_scatter(np.ones(size)).tolist()]
    group = comm.split(0)
    got += [group.all_reduce(np.ones(1), async_op=True).wait()[0], comm.broadcast(comm.rank, size - 1)]
    memory = comm.shared(np.full(2, 7.0))
    comm.barrier()
    unread = list(comm.poll())  # before the others can have begun the next round
    return [*got, unread, memory.read().tolist(), comm.all_gather(comm.rank)]


def whole_round(rank, size):
    left, total = (rank - 1) % size, float(size)
    sums = [{total}] * 4 + [[total], total]
    return [left, left, left, left, *sums, size - 1, [], [7.0, 7.0], list(range(size))]


def read_only(length):
    x = np.ones(length)
    x.flags.writeable = False
    return x


RECORDS = np.zeros(2, "i4,f4")
WORDS = np.array(["one", "two"])
OBJECTS = np.array([1, None], object)
REFUSED = {  # what is asked -> the sentence with which it is refused
    "send a list": (lambda comm: comm.send([1], 0), "a message must be"),
    "send a list in a tuple": (lambda comm: comm.send((1, (2, [3])), 0), "a message must be"),
    "send text": (lambda comm: comm.isend("text", 0), "a message must be"),
    "send objects": (lambda comm: comm.send((OBJECTS, 1), 0), "arrays of numbers"),
    "send an array of objects": (lambda comm: comm.send(OBJECTS, 0), "arrays of numbers"),
    "send records": (lambda comm: comm.send((RECORDS, 1), 0), "arrays of numbers"),
    "send words": (lambda comm: comm.send((WORDS,), 0), "arrays of numbers"),
    "send too far": (lambda comm: comm.send(1, comm.size), "no rank"),
    "isend too far": (lambda comm: comm.isend(1, comm.size), "no rank"),
    "send below": (lambda comm: comm.send(1, -1), "no rank -1"),
    "recv too far": (lambda comm: comm.recv(comm.size), "no rank"),
    "recv below": (lambda comm: comm.recv(-1), "no rank -1"),
    "irecv too far": (lambda comm: comm.irecv(comm.size), "no rank"),
    **{
        f"{way} with tag {tag!r}": (lambda comm, ask=ask, tag=tag: ask(comm, tag), "tag")
        for tag in (-1, 2**31, 10**30, 1.0, "one", None, [1])
        for way, ask in {
            "send": lambda comm, tag: comm.send(1, 0, tag),
            "isend": lambda comm, tag: comm.isend(1, comm.rank, tag),
            "recv": lambda comm, tag: comm.recv(0, tag),
            "irecv": lambda comm, tag: comm.irecv(comm.rank, tag),
            "recv_any": lambda comm, tag: comm.recv_any(tag),
            "poll": lambda comm, tag: comm.poll(tag),
        }.items()
    },
    "gather a list": (lambda comm: comm.all_gather([1]), "a message must be"),
    "gather objects": (lambda comm: comm.all_gather(OBJECTS), "arrays of numbers"),
    "a part too few": (lambda comm: comm.all_to_all([1] * (comm.size - 1)), "one part for each"),
    "lists for all": (lambda comm: comm.all_to_all([[1]] * comm.size), "a message must be"),
    "broadcast a list": (lambda comm: comm.broadcast([1], comm.rank), "a message must be"),
    "broadcast too far": (lambda comm: comm.broadcast(1, comm.size), "no rank"),
    "broadcast below": (lambda comm: comm.broadcast(1, -1), "no rank -1"),
    "split by a list": (lambda comm: comm.split([1]), "a message must be"),
    "share with another guard": (lambda comm: comm.shared(np.zeros(2), "iron"), "'iron'"),
    "add to integers atomically": (lambda comm: comm.shared(np.zeros(2, int), "atomic"), "no atomic addition"),
    "scatter a matrix": (lambda comm: comm.reduce_scatter(np.ones((4, 2))), "needs a vector"),
    "scatter a list": (lambda comm: comm.reduce_scatter([1.0]), "not a list"),
    "scatter a mean of integers": (lambda comm: comm.reduce_scatter(np.ones(4, int), "mean"), "mean"),
}
for _length in (SHORT, LARGE):
    for _async_op in (False, True):
        for _what, _sentence, _x, _op in (
            ("a column", "contiguous", lambda n: np.ones((n, 2))[:, 0], "sum"),
            ("what is read-only", "read-only", read_only, "sum"),
            ("integers to a mean", "int64", lambda n: np.ones(n, int), "mean"),
            ("to the largest", "no op 'largest'", np.ones, "largest"),
            ("objects", "object", lambda n: np.full(n, None), "sum"),
            ("half floats", "float16", lambda n: np.ones(n, np.float16), "sum"),
            ("a list", "not a list", lambda n: [1.0] * n, "sum"),
            ("a number", "not a float64", np.float64, "sum"),
        ):

            def _ask(comm, x=_x, length=_length, op=_op, async_op=_async_op):
                return comm.all_reduce(x(length), op, async_op=async_op)

            REFUSED[f"reduce {_length} of {_what}{' in the background' * _async_op}"] = _ask, _sentence


def make_mistakes(comm):
    """Let rank 1 ask for what is refused, one after the other; nobody else knows. Return what was not as it should."""
    wrong, rounds = {}, 0
    for number, (name, (ask, sentence)) in enumerate(REFUSED.items()):
        if comm.rank == 1:
            try:
                wrong[name] = ask(comm)
            except Exception as error:
                if type(error) is not ValueError or sentence not in str(error):
                    wrong[name] = f"{type(error).__name__}: {error}"
        if number % 4 == 0 or number == len(REFUSED) - 1:
            rounds += 1
            if (got := round_of_everything(comm)) != whole_round(comm.rank, comm.size):
                wrong[f"after {name}"] = got
    return wrong, rounds


def test_whoever_asks_for_what_is_refused_may_go_on_and_nobody_else_notices(run):
    rounds = -(-len(REFUSED) // 4) + (len(REFUSED) % 4 != 1)
    assert run(make_mistakes, 3).results == [({}, rounds)] * 3


KINDS = {
    "lengths": lambda rank, length: (np.ones(length + rank), "sum"),
    "types": lambda rank, length: (np.ones(length, (np.float32, np.float64)[rank]), "sum"),
    "ops": lambda rank, length: (np.ones(length), ("sum", "mean")[rank]),
}


def disagree(comm, length, kind, async_op):
    """Sum what differs from rank to rank, in a group for that; return all that was heard of it, and a round after."""
    group, heard = comm.split(0), []
    x, op = KINDS[kind](comm.rank, length)

    def attempt(call, *args, **options):
        try:
            result = call(*args, **options)
            heard.append(result.wait() if options else result)
        except ValueError as error:
            heard.append(str(error))

    attempt(group.all_reduce, x, op, **({"async_op": True} if async_op else {}))
    comm.send(1, 1 - comm.rank)
    group.send(2, 1 - comm.rank)
    sent = group.recv(1 - comm.rank), comm.recv(1 - comm.rank)
    attempt(group.all_reduce, np.ones(SHORT))
    attempt(group.all_reduce, np.ones(LARGE), async_op=True)
    attempt(group.barrier)
    attempt(group.split, 0)
    return heard, sent, round_of_everything(comm)


def disagree_in_all_ways(comm):
    ways = [(length, kind, async_op) for length in (SHORT, 2 * LARGE) for kind in KINDS for async_op in (False, True)]
    return [disagree(comm, *way) for way in ways]


def test_ranks_that_disagree_about_a_sum_are_told_and_only_that_group_has_no_collectives_any_more(run):
    for rank, ways in enumerate(run(disagree_in_all_ways, 2).results):
        for heard, sent, after in ways:
            assert ("mismatched" in heard[0] or "different lengths" in heard[0]) and heard == [heard[0]] * 5
            assert sent == (2, 1) and after == whole_round(rank, 2)


def lose_a_rank(comm, die):
    """Rank 2 dies; rank 0 catches what it hears of that, in groups of these two, and goes on with rank 1."""
    pairs = [comm.split(None if comm.rank == 1 else 0) for _ in range(4)]
    survivors = comm.split(None if comm.rank == 2 else 0)
    if comm.rank == 2:
        comm.send("x" == "y", 0)
        die(comm)
    heard = []
    if comm.rank == 0:
        posted = comm.irecv(2, tag=8)
        asked = [partial(comm.recv, 2, tag=8), posted.wait, posted.wait, partial(comm.recv, 2, tag=8)]
        for length, pair in zip((SHORT, LARGE), (pairs[:2], pairs[2:]), strict=True):
            work = pair[0].all_reduce(np.ones(length), async_op=True)
            asked += [work.wait, work.wait, pair[0].barrier]
            asked += [partial(pair[1].all_reduce, np.ones(length)), partial(pair[1].all_reduce, np.ones(length))]
        for ask in asked:
            with pytest.raises(RankLost) as lost:
                ask()
            heard.append(lost.value.rank)
        heard += [comm.recv_any(), comm.recv_any(), list(comm.poll())]
    messages = comm.send(1, 1 - comm.rank, tag=9), comm.recv(1 - comm.rank, tag=9)
    return heard, messages, round_of_everything(survivors)


def compute_until_the_end(comm):
    x = np.zeros(1000)
    while True:
        kernels.add(x, x)


def check_survivors(results):
    heard, *rest = results[0]
    assert heard == [2] * 14 + [(2, False), (2, None), []]
    assert rest == [(None, 1), whole_round(0, 2)] and results[1] == ([], (None, 1), whole_round(1, 2))


@pytest.mark.parametrize("collective", ["fast", "ring"])
def test_whoever_catches_that_a_rank_is_lost_goes_on_with_the_others(collective):
    program = partial(lose_a_rank, die=compute_until_the_end)
    outcome = simulated.run(program, 3, collective=collective, faults=Faults(crash={2: 0.01}))
    assert outcome.error is None, outcome.error
    check_survivors(outcome.results)
