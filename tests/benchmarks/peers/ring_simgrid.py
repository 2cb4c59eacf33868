"""The ring in SimGrid's Python: an actor and a mailbox per rank. `python3 ring_simgrid.py RANKS SUMS BYTES`

Prints the processor's seconds and the simulated ones. Its network model is the plainest, CM02: latency and bandwidth as
given, flows that share links instead of messages that wait for ports, and no overhead.
"""

import sys
import tempfile
import time

from simgrid import Actor, Engine, Mailbox

PLATFORM = """<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><cluster id="ring" prefix="rank" suffix="" radical="0-{last}" speed="1Gf"
bw="1.17GBps" lat="10us"/></platform>"""


def program(rank: int, ranks: int, steps: int, nbytes: int) -> None:
    """Send pieces on, and take what comes."""
    right, own = Mailbox.by_name(str((rank + 1) % ranks)), Mailbox.by_name(str(rank))
    for _ in range(steps):
        sent = right.put_async(Engine.clock, nbytes)
        rows.append((rank, own.get(), Engine.clock))
        sent.wait()


ranks, sums, nbytes = map(int, sys.argv[1:])
steps, rows = sums * 2 * (ranks - 1), []
engine = Engine(["ring", "--log=root.thres:critical", "--cfg=network/model:CM02"])
with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
    file.write(PLATFORM.format(last=ranks - 1))
    file.flush()
    engine.load_platform(file.name)
for number in range(ranks):
    Actor.create(f"rank {number}", engine.host_by_name(f"rank{number}"), program, number, ranks, steps, nbytes // ranks)
start = time.process_time()
engine.run()
assert len(rows) == ranks * steps
print(time.process_time() - start, engine.clock)
