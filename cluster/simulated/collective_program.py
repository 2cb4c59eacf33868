"""Record the operations of a collective once, then only time them.

Which messages a ring sends depends on the number of ranks and the length of the vector, not on its values or on time.
The collective in `cluster.collectives`, which remains the only definition of the algorithm, is therefore run once on an
ideal network, while every rank records its sends, receives and kernels.
"""

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cluster.comm import Comm, Message, nbytes
from cluster.devices import DEVICES
from cluster.faults import NONE
from cluster.network import NETWORKS
from cluster.simulated.compiled_events import CHARGE, OPERATION, RECEIVE, SEND
from kernels import meter_kernels


@dataclass(frozen=True, eq=False)
class Program:
    """The operations of all ranks in one collective, rank by rank, and its messages in the same order."""

    operations: np.ndarray  # of dtype OPERATION
    senders: np.ndarray  # of each message, like the next three
    receivers: np.ndarray
    routes: np.ndarray  # indices into `pairs`
    nbytes: np.ndarray
    starts: list[int]  # the first operation of each rank, followed by the number of operations
    sends: list[int]  # the first message of each rank, followed by the number of messages
    spans: list[int]  # where the spans of each rank begin: there are two for each message that it receives
    pairs: tuple[tuple[int, int], ...]  # (src, dst) of each route
    prices: list[tuple[str, float, float]]  # (kernel, FLOPs, bytes)
    charges: list[list[int]]  # the prices that each rank is charged, in order


@lru_cache(maxsize=16)
def record_program(algorithm: Callable, size: int, length: int | None, dtype: str, scaled: bool) -> Program:
    """Return the program of a collective on `size` ranks, for a vector of `length` numbers (None: without a vector)."""
    from cluster.simulated.simulation import Simulation  # which imports this module

    def program(comm: Comm) -> Transcript:
        transcript = Transcript(comm, prices)
        args = () if length is None else (np.zeros(length, dtype), 2.0 if scaled else 1.0)
        with meter_kernels(transcript):
            algorithm(transcript, *args, tag=0)
        return transcript

    prices: dict[tuple, int] = {}
    outcome = Simulation(size, NETWORKS["ideal"], DEVICES["laptop"], NONE, "fast").run(program)
    if outcome.error:
        raise outcome.error
    return _number_messages(outcome.results, list(prices))


class Transcript:
    """A rank's communicator and kernel meter in one, which records every call."""

    def __init__(self, comm: Comm, prices: dict[tuple, int]):
        self._comm, self._prices = comm, prices
        self.rank, self.size, self.nodes = comm.rank, comm.size, comm.nodes
        self.operations = array("q")  # three numbers each: SEND, dst, bytes; RECEIVE, src, 0; CHARGE, price, 0

    def send(self, x: Message, dst: int, tag: int) -> None:
        self.operations.extend((SEND, dst, nbytes(x)))
        self._comm.send(x, dst, tag)

    def recv(self, src: int, tag: int) -> Message:
        self.operations.extend((RECEIVE, src, 0))
        return self._comm.recv(src, tag)

    def charge(self, kernel: str, flops: float, moved: float, itemsize: int = 4) -> None:
        price = self._prices.setdefault((kernel, flops, moved), len(self._prices))
        self.operations.extend((CHARGE, price, 0))

    def keep(self, kind: str, nbytes: int) -> None:
        """Record nothing: a collective keeps no memory."""


def _number_messages(transcripts: list[Transcript], prices: list[tuple]) -> Program:
    """Return the program with all messages numbered, sender by sender, and each receive matched with its send.

    Between two ranks, messages arrive in the order in which they were sent.
    """
    tables = [np.array(transcript.operations, np.int64).reshape(-1, 3) for transcript in transcripts]
    ranks = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    does, other, size = np.concatenate(tables).T
    sends, receives = np.flatnonzero(does == SEND), np.flatnonzero(does == RECEIVE)
    routes = ranks[sends] * len(tables) + other[sends]
    expected = other[receives] * len(tables) + ranks[receives]
    which = other.copy()
    which[sends] = np.arange(len(sends))
    which[receives[np.argsort(expected, kind="stable")]] = np.argsort(routes, kind="stable")

    operations = np.empty(len(does), OPERATION)
    operations["does"], operations["which"] = does, which
    pairs, routes = np.unique(routes, return_inverse=True)
    first = np.arange(len(tables) + 1)
    return Program(
        operations=operations,
        senders=ranks[sends],
        receivers=other[sends],
        routes=routes,
        nbytes=size[sends],
        starts=np.searchsorted(ranks, first).tolist(),
        sends=np.searchsorted(ranks[sends], first).tolist(),
        spans=(2 * np.searchsorted(ranks[receives], first[:-1])).tolist(),
        pairs=tuple(divmod(pair, len(tables)) for pair in pairs.tolist()),
        prices=prices,
        charges=[table[table[:, 0] == CHARGE, 1].tolist() for table in tables],
    )
