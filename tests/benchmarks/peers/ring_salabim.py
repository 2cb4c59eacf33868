"""The ring in salabim: a component per rank, a store per mailbox. `python ring_salabim.py RANKS SUMS BYTES`

Prints the processor's seconds and the simulated ones. Without monitors, which are on unless one says so.
"""

import sys
import time

import salabim

LATENCY, BETA, OVERHEAD = 15e-6, 1 / 1.17e9, 5e-6


class Rank(salabim.Component):
    """A rank that sends its pieces on, adds and copies what it gets."""

    def process(self):
        env, at = self.env, self.number
        for _ in range(steps):
            yield self.hold(OVERHEAD)
            now = env.now()
            leaves = max(now, out[at])
            out[at] = leaves + taken
            Message(right=(at + 1) % ranks, sent=now, at=leaves + LATENCY, suppress_trace=True)
            yield self.from_store(mailboxes[at])
            arrived = self.from_store_item().arrived
            if arrived > env.now():
                yield self.hold(arrived - env.now())


class Message(salabim.Component):
    """A message on its way."""

    def setup(self, right, sent):
        self.right, self.sent = right, sent

    def process(self):
        self.arrived = into[self.right] = max(self.env.now(), into[self.right]) + taken
        rows.append((self.right, self.sent, self.arrived))
        yield self.to_store(mailboxes[self.right], self)


ranks, sums, nbytes = map(int, sys.argv[1:])
steps, taken = sums * 2 * (ranks - 1), nbytes // ranks * BETA
out, into, rows = [0.0] * ranks, [0.0] * ranks, []
salabim.yieldless(False)
env = salabim.Environment(trace=False)
mailboxes = [salabim.Store(f"mailbox {rank}", monitor=False) for rank in range(ranks)]
for number in range(ranks):
    Rank(f"rank {number}").number = number
start = time.process_time()
env.run()
assert len(rows) == ranks * steps
print(time.process_time() - start, env.now())
