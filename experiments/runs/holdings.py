"""What ranks held in memory, from the table `memory` of a run."""

from collections.abc import Iterator

import numpy as np

from tracing import HELD, Trace


class Holdings:
    """What the ranks of a run held: its table `memory`, with the columns of tracing.MEMORY, and its trace."""

    memory: dict[str, np.ndarray]
    trace: Trace

    def peak_memory(self) -> np.ndarray:
        """Return the memory of each rank by kind, in bytes, at the moment when that rank held most: (ranks,
        len(HELD)).
        """
        return np.array([now[now.sum(axis=1).argmax()] for _, now in self.holdings()])

    def peaks(self) -> np.ndarray:
        """Return the memory of each rank by kind, in bytes, with each kind at its own peak: (ranks, len(HELD))."""
        return np.array([now.max(axis=0) for _, now in self.holdings()])

    def holdings(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield, for each rank, its rows of `memory`, and the bytes of each kind before and after each row.

        The bytes have the shape (rows + 1, len(HELD)).
        """
        order = np.argsort(self.memory["rank"], kind="stable")
        ends = np.bincount(self.memory["rank"], minlength=self.trace.ranks).cumsum()[:-1]
        for rows in np.split(order, ends):
            kind, nbytes = self.memory["kind"][rows], self.memory["bytes"][rows]
            now = np.zeros((len(kind) + 1, len(HELD)), np.int64)
            for number in range(len(HELD)):
                own = np.flatnonzero(kind == number)
                now[1 + own, number] = np.diff(nbytes[own], prepend=0)
            yield rows, now.cumsum(axis=0)
