"""The exchange: how encoded gradients meet, with what was lost kept for next time.

    v <- g + e        m <- encode(v)        e <- v - decode(m)        g <- mean over the ranks of decode(m)

Messages go to everybody, unless the codec knows better (all-gather); each rank decodes and adds them by rank, so all
ranks have the same bits. What was sent in all steps together and e are all gradients together: nothing is lost.
Source: Seide, Fu, Droppo, Li & Yu, Interspeech 2014; Karimireddy et al., ICML 2019 (error feedback).
"""

from __future__ import annotations

from typing import Any

import kernels


class Exchange:
    """One rank's side of it: a codec and, with `feedback`, its error e, (d,)."""

    def __init__(self, codec, feedback: bool = True):
        self.codec, self.feedback, self.error = codec, feedback, None

    def encode(self, g) -> Any:
        """The message for this gradient; what it leaves out goes into the error."""
        v = self._owed(g)
        message = self.codec.encode(v)
        if self.feedback:
            self.codec.decode(message, self.error)
            self.error[:] = v - self.error
        return message

    def mean(self, comm, g) -> None:
        """g <- the mean over all ranks of what they send of theirs, in place."""
        if hasattr(self.codec, "mean"):
            v = self._owed(g)
            g[:] = v
            kept = self.codec.mean(comm, g)
            if self.feedback:
                self.error[:] = v - kept
            return
        messages = comm.all_gather(self.encode(g))
        part = kernels.empty_like(g)
        g[:] = 0
        for message in messages:
            self.codec.decode(message, part)
            kernels.add(g, part)
        kernels.scale(g, 1 / comm.size)

    def _owed(self, g):
        if not self.feedback:
            return kernels.copy(g)
        if self.error is None:
            self.error = kernels.zeros_like(g)
        return g + self.error


class CompressedComm:
    """A communicator whose means of gradients are compressed; everything else is that of `comm`.

    Only a mean over all ranks of a vector as long as the model is a gradient; sums and short vectors go as they are.
    """

    def __init__(self, comm, exchange: Exchange, length: int):
        self._comm, self._exchange, self._length = comm, exchange, length

    def __getattr__(self, name):
        return getattr(self._comm, name)

    def all_reduce(self, x, op="sum", async_op=False):
        if op != "mean" or len(x) != self._length or async_op:
            return self._comm.all_reduce(x, op, async_op)
        self._exchange.mean(self._comm, x)
        return x
