"""Frames: messages as bytes in a stream.

    header    number of bytes of the head (0: end of stream), time of sending, row in the sender's event log, and the
              time at which an emulated network delivers the first byte (NaN: there is no such network)
    head      (channel, message) pickled, with a list [type, shape] in place of each array
    arrays    their bytes, one array after the other, sent from and received into the arrays' own memory

Arrays are not pickled, because pickling an array takes longer than sending it.
"""

import contextlib
import math
import pickle
import socket
import struct
from collections.abc import Callable, Hashable
from queue import SimpleQueue
from threading import Condition, Lock, Thread
from typing import Any

import numpy as np

from kernels import to_device, to_numpy

_HEADER = struct.Struct("<Qdqd")
_AT_ONCE = getattr(socket, "MSG_DONTWAIT", None)
_WHOLE = getattr(socket, "MSG_WAITALL", 0)


def pack(x: Any, arrays: list[np.ndarray]) -> Any:
    """Return `x` with a list in place of each array, and append the arrays to `arrays`.

    Raise ValueError for arrays of objects or records.
    """
    if isinstance(x, np.ndarray):
        if x.dtype.hasobject or x.dtype.names:
            raise ValueError(f"an array of type {x.dtype} cannot be sent; send arrays of numbers.")
        arrays.append(x if x.flags.c_contiguous else x.copy())
        return [x.dtype.str, x.shape]
    if isinstance(x, tuple):
        return tuple([pack(part, arrays) for part in x])
    if hasattr(x, "detach"):  # a torch tensor is copied to CPU memory
        return [*pack(to_numpy(x), arrays), "tensor"]
    return x  # None or a number, as Comm has checked


def unpack(packed: Any, fetch: Callable[[str, tuple], np.ndarray], device: str) -> Any:
    """Return the message given to `pack`. `fetch(type, shape)` returns its next array; tensors go to `device`."""
    if type(packed) is list:
        array = fetch(*packed[:2])
        return array if len(packed) == 2 else to_device(array, device)
    return tuple([unpack(part, fetch, device) for part in packed]) if type(packed) is tuple else packed


def receive(link: socket.socket, into: bytearray | np.ndarray) -> memoryview:
    """Fill `into` with the next bytes of `link`, and return them. Raise EOFError if the link closes first.

    This repeats the call, since after a signal or a timeout of the link the system may return too few bytes.
    """
    memory = memoryview(into).cast("B")
    got = 0
    while got < len(memory):
        n = link.recv_into(memory[got:], 0, _WHOLE)
        if not n:
            raise EOFError
        got += n
    return memory


class Unreadable(Exception):
    """Raised when bytes from a link are not a frame: the sender runs another program, or its memory is corrupt."""


class FrameReader:
    """A reader of one peer's frames."""

    def __init__(self, link: socket.socket):
        self._link, self._header = link, bytearray(_HEADER.size)

    def next(self, device: str) -> tuple[Any, Any, float, int, float] | None:
        """Return (channel, message, sent, row, reaches) of the next frame, None at the end of the stream.

        Raise EOFError if the connection closes without an end of stream, and Unreadable for bytes that are not a frame.
        """
        try:
            return self._next(device)
        except (EOFError, OSError):
            raise
        except Exception as error:  # pickle, types, shapes and sizes can be wrong in any way
            raise Unreadable(f"{type(error).__name__}: {error}") from None

    def _next(self, device: str) -> tuple[Any, Any, float, int, float] | None:
        length, sent, row, reaches = _HEADER.unpack(receive(self._link, self._header))
        if not length:
            return None
        channel, packed = pickle.loads(receive(self._link, np.empty(length, np.uint8)))
        return channel, unpack(packed, self._fetch, device), sent, row, reaches

    def _fetch(self, dtype: str, shape: tuple) -> np.ndarray:
        array = np.empty(shape, dtype)
        if array.size:
            receive(self._link, array.reshape(-1))
        return array


class FrameWriter:
    """A writer of frames to one peer. Frames that the system does not accept at once are sent by a thread."""

    def __init__(self, link: socket.socket):
        self._link, self._turn = link, Lock()
        self._rest: SimpleQueue[bytes | None] = SimpleQueue()
        self.frames = self._queued = 0
        self._left = 0.0  # how many of the queued frames have left; infinite once the thread that sends them has ended
        self._news = Condition(Lock())

    def send(
        self, channel: Hashable, packed: Any, arrays: list[np.ndarray], sent: float, row: int, reaches: float
    ) -> int:
        """Send a frame without blocking. Return a ticket for `flush`. Frames to a lost peer are dropped."""
        head = pickle.dumps((channel, packed), 5)
        bodies = [memoryview(array.reshape(-1)).cast("B") for array in arrays if array.size]
        return self._put([_HEADER.pack(len(head), sent, row, reaches) + head, *bodies])

    def end(self) -> None:
        """Send the end-of-stream frame."""
        self._put([_HEADER.pack(0, 0.0, -1, 0.0)])

    def stop(self) -> None:
        """End the thread, if there is one, once it has tried to send what is queued."""
        with self._turn:
            if self._queued:
                self._rest.put(None)

    def flush(self, ticket: int) -> None:
        """Wait until the frame with this ticket has left, or the thread has ended."""
        with self._news:
            self._news.wait_for(lambda: self._left >= ticket)

    def _put(self, parts: list) -> int:
        with self._turn:
            taken = 0
            if self._left == self._queued and _AT_ONCE is not None:
                with contextlib.suppress(OSError):  # it is full or broken; the reader of this link notices the latter
                    taken = self._link.sendmsg(parts, (), _AT_ONCE)
            self.frames += len(parts[0]) > _HEADER.size
            if taken < sum(map(len, parts)):
                if not self._queued:
                    Thread(target=self._push, daemon=True).start()
                self._queued += 1
                self._rest.put(_after(taken, parts))
            return self._queued

    def _push(self) -> None:
        while (rest := self._rest.get()) is not None:
            with contextlib.suppress(OSError):  # the reader of this link notices
                self._link.sendall(rest)
            with self._news:
                self._left += 1
                self._news.notify_all()
        with self._news:
            self._left = math.inf
            self._news.notify_all()


def _after(taken: int, parts: list) -> bytes:
    """Return the bytes of `parts`, one after the other, without the first `taken` bytes."""
    rest = []
    for part in parts:
        rest.append(part[taken:])
        taken = max(0, taken - len(part))
    return b"".join(rest)
