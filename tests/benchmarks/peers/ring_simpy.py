"""The ring in SimPy: a process per rank, a store per mailbox. `python ring_simpy.py RANKS SUMS BYTES`

Prints the processor's seconds and the simulated ones. Ports are numbers, as in ours: a resource for each took longer.
"""

import sys
import time

import simpy

LATENCY, BETA, OVERHEAD = 15e-6, 1 / 1.17e9, 5e-6


def main(ranks: int, sums: int, nbytes: int) -> None:
    """Let every rank send its pieces on, add and copy what it gets, `sums` times."""
    env = simpy.Environment()
    mailboxes = [simpy.Store(env) for _ in range(ranks)]
    out, into = [0.0] * ranks, [0.0] * ranks
    taken = nbytes // ranks * BETA
    rows = []

    def deliver(rank, sent):
        def happen(_):
            into[rank] = max(env.now, into[rank]) + taken
            rows.append((rank, sent, into[rank]))
            mailboxes[rank].put(into[rank])

        return happen

    def program(rank):
        right = (rank + 1) % ranks
        for _ in range(sums * 2 * (ranks - 1)):
            yield env.timeout(OVERHEAD)
            leaves = max(env.now, out[rank])
            out[rank] = leaves + taken
            env.timeout(leaves + LATENCY - env.now).callbacks.append(deliver(right, env.now))
            arrived = yield mailboxes[rank].get()
            if arrived > env.now:
                yield env.timeout(arrived - env.now)

    for rank in range(ranks):
        env.process(program(rank))
    start = time.process_time()
    env.run()
    assert len(rows) == ranks * sums * 2 * (ranks - 1)
    print(time.process_time() - start, env.now)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
