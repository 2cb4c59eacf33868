"""The declaration of a compression: one frozen value at the end of its module, like `Algorithm` for an algorithm.

    COMPRESSION = Compression(Codec, Settings)

A compression is chosen separately from the algorithm and wraps its communicator (`algorithms.parts.error_feedback`):
gradients that the algorithm hands to `comm.all_reduce(g, op="mean")`, or pushes to a server, travel as the messages of
a codec. The algorithm's own file does not change, as with the communication hooks of PyTorch's DistributedDataParallel.
A misspelt field raises TypeError.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from algorithms.algorithm import nothing_foretold
from knobs import Knobs


class Codec(Protocol):
    """A rank's encoder and decoder of gradients v, (d,). `Compression` declares which of the methods it has.

    `Codec(s, tensors, rank, size, seed)` makes it: `s` are the settings, `tensors` the slice and the shape of each
    tensor in the gradient, `rank` is this rank among the `size` that train, and all ranks share the `seed`.
    """

    def encode(self, v) -> Any:
        """Return the message for v, without changing v; None if v is not finite and the code cannot express that."""

    def decode(self, message, out) -> None:
        """Decode the message into `out`, (d,)."""

    def add(self, message, total) -> None:
        """Add the decoded message to `total`, (d,), in place. Required only if `combine` is "all-gather"."""

    def mean(self, comm, v) -> Any:
        """Replace v by the mean over ranks of the decoded vectors; return this rank's own decoded vector.

        Required only if `combine` is "codec".
        """


def by_setting(s: Any) -> bool:
    """Return the setting `error_feedback`."""
    return s.error_feedback


def inside_the_codec(s: Any) -> bool:
    """Return False: the codec itself keeps the part that it does not send."""
    return False


def kept_whole(s: Any) -> float:
    """Return 1, the decay of what a message leaves out: all of it is kept."""
    return 1.0


@dataclass(frozen=True)
class Compression:
    """The declaration of a compression module. `s` is an instance of its `Settings`."""

    Codec: Callable[..., Any]
    """Makes a `Codec`, with the methods that `combine` and `pushable` require."""
    Settings: type[Knobs]
    combine: Literal["all-gather", "codec"] = "all-gather"
    """How messages become a mean: every rank receives and adds up all of them, or the codec's own `mean` does it."""
    pushable: bool = True
    """Whether one rank's message can be decoded alone, so that it can be pushed to a server; if not, the codec has a
    `mean` and neither `encode` nor `decode`."""
    unstable: Callable[[Any], Iterable[tuple[str, str]]] = nothing_foretold
    """`unstable(e)`: (setting, why) for each setting that makes experiment `e` diverge, as for an `Algorithm`."""
    error_feedback: Callable[[Any], bool] = by_setting
    """`error_feedback(s)`: True if the part that a message leaves out is added to the rank's next gradient."""
    decay: Callable[[Any], float] = kept_whole
    """`decay(s)`: the factor by which the part that was left out is multiplied before it is added."""
