"""Average encoded gradients, and add the encoding error to the next gradient: error feedback.

    v <- g + e        m <- encode(v)        e <- v - decode(m)        g <- mean over the ranks of decode(m)

Messages are all-gathered, unless the codec has a mean of its own; each rank decodes and adds them in the order of
ranks, so all ranks have the same bits. The sum of everything sent and e is the sum of all gradients: nothing is lost,
if a step is linear in the gradient, as in SGD and momentum. Adam's is not (Tang et al., ICML 2021, arXiv:2102.02888).

Price: one more vector of memory, e, on every rank that sends gradients.
Source: Seide, Fu, Droppo, Li & Yu, Interspeech 2014; Karimireddy et al., ICML 2019 (error feedback).
"""

import math
from typing import Any

import numpy as np

import kernels
from algorithms.codec import Compression


def attach(comm, compression: Compression, s, tensors, seed: int, servers: int = 0, dtype="float32"):
    """Return a communicator that wraps `comm` and compresses gradients: those averaged over all ranks or, with
    `servers`, those that workers push to servers.

    `s` are the compression's settings, `tensors` those of the model (`Task.tensors`), `dtype` that of its numbers.
    """
    codec = compression.Codec(s, tensors, comm.rank, comm.size - servers, seed)
    feedback = ErrorFeedback(codec, compression.error_feedback(s), compression.combine, compression.decay(s))
    length = tensors[-1][0].stop
    if servers:
        return CompressedPushes(comm, feedback, length, servers, dtype)
    return CompressedComm(comm, feedback, length)


class ErrorFeedback:
    """A rank's codec and, with `feedback`, its error e, (d,). `combine` is explained at `Compression`.

    The error is multiplied by `decay` after each message, so that parts that are not sent for long are forgotten.
    """

    def __init__(self, codec, feedback: bool = True, combine: str = "all-gather", decay: float = 1.0):
        self.codec, self.feedback, self.combine, self.decay, self.error = codec, feedback, combine, decay, None

    def encode(self, g) -> Any:
        """Return the message for gradient g plus the error. What the message leaves out becomes the new error."""
        v = self._owed(g)
        message = self.codec.encode(v)
        if self.feedback and message is not None:
            kept = kernels.empty_like(v)
            self.codec.decode(message, kept)
            self._keep_rest(kept)
        return message

    def mean(self, comm, g) -> None:
        """Replace g by the mean of the ranks' decoded messages, in place."""
        if self.combine == "codec":
            if self.feedback:
                g[:] = self._owed(g)
            kept = self.codec.mean(comm, g)
            if self.feedback:
                self._keep_rest(kept)
            return
        messages = comm.all_gather(self.encode(g))
        if any(message is None for message in messages):  # a rank's gradient was not finite
            g[:] = math.nan
            return
        g[:] = 0
        for message in messages:
            self.codec.add(message, g)
        kernels.scale(g, 1 / comm.size)

    def _keep_rest(self, sent):
        """Keep what was not sent as the error: e <- decay (v - sent)."""
        kernels.residual(self.error, sent)
        if self.decay < 1:
            kernels.scale(self.error, self.decay)

    def _owed(self, g):
        """Return v, the vector to send. With feedback it is the error's own array, which `_keep_rest` updates."""
        if not self.feedback:
            return g
        if self.error is None:
            self.error = kernels.keep(kernels.zeros_like(g))
        kernels.add(self.error, g)
        return self.error


class CompressedComm:
    """A communicator that compresses gradients when they are averaged; everything else is passed to `comm`.

    A gradient is a vector of the model's length in an all-reduce with op mean; sums and shorter vectors are unchanged.
    """

    def __init__(self, comm, feedback: ErrorFeedback, length: int):
        self._comm, self._feedback, self._length = comm, feedback, length

    def __getattr__(self, name):
        return getattr(self._comm, name)

    def all_reduce(self, x, op="sum", async_op=False, priority=0):
        if op != "mean" or len(x) != self._length or async_op:
            return self._comm.all_reduce(x, op, async_op, priority)
        self._feedback.mean(self._comm, x)
        return x


class CompressedPushes:
    """A communicator that compresses pushes from workers to servers; everything else is passed to `comm`.

    A push is a worker's message to a server that is a vector of the model's length. Answers are unchanged.
    """

    def __init__(self, comm, feedback: ErrorFeedback, length: int, servers: int, dtype):
        self._comm, self._feedback, self._length, self._servers, self._dtype = comm, feedback, length, servers, dtype

    def __getattr__(self, name):
        return getattr(self._comm, name)

    def send(self, x, dst, tag=0):
        if self._comm.rank >= self._servers > dst and getattr(x, "shape", None) == (self._length,):
            x = (self._feedback.encode(x),)
        self._comm.send(x, dst, tag)

    def recv_any(self, tag=0):
        src, x = self._comm.recv_any(tag)
        if src >= self._servers > self._comm.rank and isinstance(x, tuple) and len(x) == 1:
            g = kernels.to_device(np.empty(self._length, self._dtype), self._comm.device)
            if x[0] is None:  # the gradient was not finite
                g[:] = math.nan
            else:
                self._feedback.codec.decode(x[0], g)
            x = g
        return src, x
