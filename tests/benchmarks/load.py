"""A class at once: 30 sessions that open the default experiment. `python -m tests.benchmarks.load [sessions] [pool]`

Sessions speak Streamlit's own protocol, without browsers: they open the page, answer its fragments as a browser would,
and are done when the figures of the finished run are there. Twice: all want the same run, which is done once, and each
wants a seed of its own. An exception on a page, or a session that was cut off, is an error. With the address of a Dask
cluster as `pool`, runs are made there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field

import psutil
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from experiments.runs import store
from tests.benchmarks.measure import machine, row

SESSIONS = 30
PATIENCE = 600  # s
FIGURE, PENDING = "Held-out accuracy", "–"  # of a finished run, and of one in progress


@dataclass
class Session:
    """What one reader went through: s until the page, until the result; bytes; what went wrong."""

    page: float = 0.0
    result: float = 0.0
    received: int = 0
    error: str = ""
    looking: list = field(default_factory=list)  # at fragments, again and again


@contextlib.contextmanager
def served(script: str = "app/main.py", folder: str = "", pool: str = "") -> Iterator[tuple[str, psutil.Process]]:
    """(address, process) of a workbench whose runs are in `folder`, by default none yet; or of another page."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port)]
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "LOCKSTEP_RUNS": folder or empty, "LOCKSTEP_POOL": pool}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = subprocess.Popen([*words, "--server.headless", "true"], env=environment, **quiet)
        try:
            while True:
                with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health"):
                    break
                time.sleep(0.02)
            yield f"127.0.0.1:{port}", psutil.Process(server.pid)
        finally:
            server.terminate()
            server.wait()


async def visit(address: str, query: str, meeting: asyncio.Barrier) -> Session:
    """One reader, who waits on the page until all others have their result, too, and once more to leave."""
    told = Session()
    try:
        link = f"ws://{address}/_stcore/stream"
        async with websockets.connect(link, subprotocols=["streamlit"], max_size=None, origin=None) as line:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(_read(line, query, told), PATIENCE)
            if not told.result and not told.error:
                told.error = f"no result within {PATIENCE} s"
            await meeting.wait()
            await meeting.wait()
    except (OSError, websockets.WebSocketException, asyncio.BrokenBarrierError) as error:
        told.error = told.error or f"{type(error).__name__}: {error}"
        await meeting.abort()
    return told


async def _read(line, query: str, told: Session) -> None:
    """Open the page and take in what the server says until the result is there."""
    begin = time.perf_counter()
    await line.send(_rerun(query))
    while not told.result and not told.error:
        packed = await line.recv()
        told.received += len(packed)
        message = ForwardMsg.FromString(packed)
        element = message.delta.new_element
        kind = element.WhichOneof("type")
        if kind == "markdown":
            told.page = told.page or time.perf_counter() - begin
        elif kind == "exception":
            told.error = element.exception.message
        elif kind == "metric" and element.metric.label == FIGURE and element.metric.body != PENDING:
            told.result = time.perf_counter() - begin
        elif message.WhichOneof("type") == "auto_rerun":
            told.looking.append(asyncio.create_task(_again(line, query, message.auto_rerun, told)))


async def _again(line, query: str, wanted, told: Session) -> None:
    """What a browser does for a fragment that looks again and again."""
    with contextlib.suppress(websockets.WebSocketException):
        while not told.result and not told.error:
            await asyncio.sleep(wanted.interval)
            await line.send(_rerun(query, wanted.fragment_id))


def _rerun(query: str, fragment: str = "") -> bytes:
    message = BackMsg()
    message.rerun_script.query_string = query
    if fragment:
        message.rerun_script.fragment_id, message.rerun_script.is_auto_rerun = fragment, True
    return message.SerializeToString()


async def together(address: str, queries: list[str], server: psutil.Process) -> tuple[list[Session], int]:
    """(what every reader went through, bytes that the server had grown by when all were there)."""
    before, meeting = server.memory_info().rss, asyncio.Barrier(len(queries) + 1)
    visits = [asyncio.create_task(visit(address, query, meeting)) for query in queries]
    with contextlib.suppress(asyncio.BrokenBarrierError):
        await meeting.wait()
    grown = server.memory_info().rss - before
    with contextlib.suppress(asyncio.BrokenBarrierError):
        await meeting.wait()
    return await asyncio.gather(*visits), grown


def main() -> None:
    """Print the rows."""
    sessions, pool = int(sys.argv[1]) if len(sys.argv) > 1 else SESSIONS, sys.argv[2] if len(sys.argv) > 2 else ""
    print(f"{machine()}, load {os.getloadavg()[0]:.1f}")
    for what, queries in (
        ("the same run", [""] * sessions),
        ("a seed each", [f"seed={seed + 1}" for seed in range(sessions)]),
    ):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a worker may still write to it
            with served(folder=folder, pool=pool) as (address, server):
                told, grown = asyncio.run(together(address, queries, server))
            stored = len(store.recent(folder))
        errors = [one.error for one in told if one.error]
        waits = sorted(one.result for one in told if not one.error)
        measured = (
            f"page {statistics.median(one.page for one in told):.1f} s, result {statistics.median(waits):.1f} s in the "
            f"median and {waits[-1]:.1f} s for the last; {grown / sessions / 1e6:.1f} MB and "
            f"{sum(one.received for one in told) / sessions / 1e6:.2f} MB sent for each; {stored} runs stored; "
            f"{len(errors)} errors; load {os.getloadavg()[0]:.1f}"
        )
        place = f", on the Dask cluster {pool}" if pool else ""
        row(f"{sessions} sessions at once, {what}{place}", measured, "no error", not errors)
        for error in errors[:3]:
            print(error)


if __name__ == "__main__":
    main()
