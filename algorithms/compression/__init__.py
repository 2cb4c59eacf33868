"""Compression: gradients that travel as fewer bytes, for any method that averages them or pushes them to a server.

A compression is chosen beside the algorithm and comes with the communicator: what the method hands to
`comm.all_reduce(g, op="mean")` is encoded, travels as the message that the codec made, and is decoded on the other
side; so is the gradient that a worker pushes to a server. The method's own file does not change, as with the
communication hooks of PyTorch's DistributedDataParallel.

One compression, one file: docstring (idea, formula, price, source), `Settings`, and

    class Codec:
        def __init__(self, s, tensors, rank, size, seed)
                                                      tensors: where each tensor lies in the gradient, and its shape
        def encode(self, v) -> Message                the numbers that really travel; v (d,) is left as it is;
                                                      None if v is not finite and the code has no word for that
        def decode(self, message, out) -> None        out (d,) <- what the message says
        def add(self, message, total) -> None         optional, where it is cheaper: total (d,) <- total + what it says
        def mean(self, comm, v) -> kept               optional, where codes meet otherwise than by everybody's going
                                                      to everybody: v <- mean over the ranks of what is kept of each
                                                      rank's v; gives what is kept of this one's

Error feedback is not the codec's business: `exchange.ErrorFeedback` adds what was lost last time before encoding, and
keeps what is lost now. A gradient that is not sent is late, and not lost.
"""

from __future__ import annotations

import difflib
import importlib
from types import ModuleType

COMPRESSIONS: tuple[str, ...] = (
    *("bf16", "int8", "one_bit", "sign", "terngrad", "qsgd", "power_sgd"),
    *("top_k", "random_k", "threshold", "dgc"),
)


def find(name: str) -> ModuleType:
    """The module of a compression by name. ValueError if unknown."""
    if name not in COMPRESSIONS:
        close = difflib.get_close_matches(name, COMPRESSIONS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are none, {', '.join(COMPRESSIONS)}."
        raise ValueError(f"there is no compression {name[:60]!r}; {hint}")
    return importlib.import_module(f"algorithms.compression.{name}")


def pushable(name: str) -> bool:
    """Whether one rank's message can be read alone; if not, the code exists as a mean over all ranks only."""
    return hasattr(find(name).Codec, "encode")


def attach(comm, name: str, s, tensors, seed: int, servers: int = 0, dtype="float32"):
    """`comm` with its gradients compressed: the means of all ranks, or with `servers` what the others push to those.

    `tensors` are those of the model (see workloads.task.Task), `dtype` its numbers.
    """
    from algorithms.parts.error_feedback import CompressedComm, CompressedPushes, ErrorFeedback

    codec = find(name).Codec(s, tensors, comm.rank, comm.size - servers, seed)
    exchange, length = ErrorFeedback(codec, getattr(s, "error_feedback", False)), tensors[-1][0].stop
    return (
        CompressedPushes(comm, exchange, length, servers, dtype) if servers else CompressedComm(comm, exchange, length)
    )
