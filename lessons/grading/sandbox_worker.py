"""The process in which a solution runs, driven by the grader over a socket.

It receives its limits, loads NumPy, confines itself (`sandbox.py`), receives the solution's source, and then serves
requests: call a function, or play ranks of a run whose cluster, data, clock and statistics live in the grader. Expected
results never enter this process, and the grader treats everything that comes out of it as data.

A frame is two lengths, a header in JSON, and the bytes of the arrays that the header refers to.
"""

import contextlib
import json
import linecache
import os
import struct
import sys
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

LENGTHS = struct.Struct(">II")
HEADER, BODY = 1_000_000, 64_000_000  # most bytes of a frame
WHOLE = 2**63  # bound on the magnitude of an integer: no array holds a larger one


def pack(value: Any) -> list[memoryview]:
    """Return a frame with `value`. Raise TypeError if its type cannot be packed.

    A value is None, a number, text, an array, or a tuple, list or dict of these.
    """
    arrays: list[np.ndarray] = []
    header = json.dumps(_encode(value, arrays)).encode()
    body = [memoryview(array.reshape(-1)).cast("B") for array in arrays if array.nbytes]
    return [memoryview(LENGTHS.pack(len(header), sum(map(len, body)))), memoryview(header), *body]


def unpack(header: bytes, body: bytearray) -> Any:
    """Return the value in a frame. Raise ValueError if the frame is malformed."""
    try:
        return _decode(json.loads(header), body)
    except (TypeError, KeyError, AttributeError, RecursionError, MemoryError, OverflowError) as error:
        raise ValueError(f"malformed frame: {type(error).__name__}") from None


def _encode(value: Any, arrays: list[np.ndarray]) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "fiub":
            raise TypeError(f"an array of {value.dtype} cannot be returned; use numbers")
        at = sum(array.nbytes for array in arrays)
        arrays.append(np.ascontiguousarray(value))
        return {"array": [at, value.dtype.str, list(value.shape)]}
    if isinstance(value, tuple):
        return {"tuple": [_encode(part, arrays) for part in value]}
    if isinstance(value, list):
        return [_encode(part, arrays) for part in value]
    if isinstance(value, dict):
        return {"dict": [[_encode(key, arrays), _encode(part, arrays)] for key, part in value.items()]}
    raise TypeError(f"a {type(value).__name__} cannot be returned; use numbers, text, arrays, and lists of them")


def _decode(value: Any, body: bytearray) -> Any:
    if isinstance(value, list):
        return [_decode(part, body) for part in value]
    if isinstance(value, int) and not -WHOLE <= value < WHOLE:
        raise ValueError("it has an integer of more than 64 bits")
    if not isinstance(value, dict):
        return value
    ((kind, inside),) = value.items()
    if kind == "tuple":
        return tuple(_decode(part, body) for part in inside)
    if kind == "dict":
        return {_decode(key, body): _decode(part, body) for key, part in inside}
    at, code, shape = inside
    if kind != "array" or np.dtype(code).kind not in "fiub" or min(at, 0, *shape) < 0:
        raise ValueError("malformed array")
    count = int(np.prod(shape, dtype=object))
    return np.frombuffer(body, code, count, at).reshape(shape) if count else np.zeros(shape, code)


def read_frame(receive: Callable[[memoryview], int], most: tuple[int, int] = (HEADER, BODY)) -> Any:
    """Return the value of the next frame. `receive` fills a buffer from the channel.

    Raise EOFError at the end of the data, and ValueError if the frame is too long or malformed.
    """

    def exactly(count: int) -> bytearray:
        whole = bytearray(count)
        rest = memoryview(whole)
        while len(rest):
            got = receive(rest)
            if not got:
                raise EOFError
            rest = rest[got:]
        return whole

    header, body = LENGTHS.unpack(exactly(LENGTHS.size))
    if header > most[0] or body > most[1]:
        raise ValueError(f"{header + body} bytes are too many for a message")
    return unpack(bytes(exactly(header)), exactly(body))


class Unfit(Exception):
    """Raised if the solution lacks a required function. The message is a sentence for the solution's author."""


class LoadedSolution:
    """A solution, loaded as a module. Each method returns {"result": a plain value}, or {"raised": the exception and
    its line}.

    `stubs` is `lessons.grading.remote`, which must be loaded before files are out of reach. `signatures` maps each
    required function to its arguments.
    """

    def __init__(self, stubs: types.ModuleType, name: str, source: str, signatures: dict[str, str]):
        self.stubs = stubs
        self.name, self.source, self.signatures = name, source, signatures
        self.module = types.ModuleType("solution")
        sys.modules["solution"] = self.module
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)

    def load(self) -> dict[str, Any]:
        """Run the file as a module. The value of the result is None."""
        return self._attempt(lambda: exec(compile(self.source, self.name, "exec"), self.module.__dict__))

    def call(self, function: str, *given: Any) -> dict[str, Any]:
        """Call `function` with the values `given` and return its result."""
        return self._attempt(lambda: self._function(function)(*given))

    def find(self, role: str) -> dict[str, Any]:
        """Return {"result": True} if the file has a function that plays `role`, or {"raised": what was raised}
        otherwise.
        """
        return self._attempt(lambda: bool(self._role(role)))

    def play(
        self, request: Callable[..., Any], rank: int, role: str, size: int, per_epoch: int, settings: dict[str, Any]
    ) -> dict[str, Any]:
        """Play a rank with the function `role`, and return what the function returns.

        Its calls of cluster and task go through `request`.
        """
        comm, task = self.stubs.RemoteComm(request, 0, rank, size), self.stubs.RemoteTask(request, per_epoch)
        s = self.stubs.RemoteSettings(settings)
        return self._attempt(lambda: self._role(role)(comm, task, s))

    def _attempt(self, work: Callable[[], Any]) -> dict[str, Any]:
        try:
            value = work()
            pack(value)
            return {"result": value}
        except BaseException as error:
            return {"raised": _describe(error, self.name)}

    def _role(self, role: str) -> Callable[..., Any]:
        return self._function(role, "(comm, task, s)")

    def _function(self, wanted: str, arguments: str = "(...)") -> Callable[..., Any]:
        found = self.module.__dict__.get(wanted)
        if not callable(found):
            arguments = self.signatures.get(wanted, arguments)
            raise Unfit(f"your file has no function {wanted}{arguments}{_defined(self.module)}")
        return found


def serve(channel: int) -> None:
    """Serve the grader's requests on the socket `channel` until it is closed."""
    from greenlet import greenlet

    from lessons.grading import remote, sandbox

    def receive() -> Any:
        return read_frame(lambda rest: os.readv(channel, [rest]), (HEADER, 1 << 30))

    def send(value: Any) -> None:
        for part in pack(value):
            while len(part):
                part = part[os.write(channel, part) :]

    spec = receive()
    sandbox.limit(spec["cpu"], spec["memory"])
    np.zeros(2) @ np.zeros(2)  # BLAS loads lazily, so make it load before files are out of reach
    sys.path[:] = [place for place in sys.path if place not in spec["unreachable"]]
    send({"sandbox": sandbox.confine(spec["readable"], spec["listed"])})

    program = LoadedSolution(remote, *receive())
    hub, ranks = greenlet.getcurrent(), {}

    def play(rank: int, *words: Any) -> dict[str, Any]:
        return program.play(lambda *request: hub.switch({"request": request}), rank, *words)

    send(program.load())
    while True:
        what, *words = receive()
        if what == "call":
            function, *given = words
            send(program.call(function, *given))
            continue
        if what == "find":
            send(program.find(*words))
            continue
        rank, *words = words
        if what == "play":
            ranks[rank] = greenlet(play)
            reply = ranks[rank].switch(rank, *words)
        else:
            reply = ranks[rank].switch(*words)
        try:
            send(reply)
        except TypeError as error:
            send({"raised": str(error)})


def _defined(module: types.ModuleType) -> str:
    """Return the end of a sentence that names the functions that a solution defines."""
    own = [name for name, thing in vars(module).items() if isinstance(thing, types.FunctionType)]
    return f"; it has {', '.join(own[:5])}" if own else ""


def _describe(error: BaseException, name: str) -> str:
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
    where = f" in line {lines[-1].lineno}: `{lines[-1].line}`" if lines else ""
    if isinstance(error, Unfit):
        return str(error)[:600]
    if isinstance(error, SyntaxError) and error.filename == name:
        text = (error.text or "").strip()
        said = error.msg.partition(" (detected at line ")[0]  # the line is already named
        return f"line {error.lineno} is not Python ({said}){f': `{text[:400]}`' if text else ''}"[:600]
    message = str(error) if isinstance(error, Exception) else ""
    return f"{type(error).__name__}{': ' + message[:300] if message else ''}{where}"[:600]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        serve(int(sys.argv[1]))
