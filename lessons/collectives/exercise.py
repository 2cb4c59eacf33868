"""Write the line.

`worker(comm, task, s)` runs on every rank of a simulated cluster. `task.start()` is a vector of single-precision
numbers, another one on every rank and as long on all of them. Return the sum of all ranks' vectors, on every rank.

The worker below does so, by way of rank 0. Make it fast. It is graded on

- whether every rank returns the sum, and all the same bits: another order of additions gives other last bits;
- any number of ranks, from one on, and vectors of any length, also shorter than there are ranks;
- a vector of about a megabyte, where it should be as fast as the textbook's ring;
- a few numbers on each of some thirty ranks, where it should be as fast as recursive doubling;
- the bytes that the busiest rank sends of a long vector.

What you have: `comm.rank`, `comm.size`, `comm.send(x, rank)`, `comm.recv(rank)`, also `comm.isend(x, rank)` and
`comm.irecv(rank)`, whose handles have `wait()`; and no collective, since that is what you write. Messages are NumPy
arrays, and a message may be a part of one, as in `x[a:b]`. `send` copies what it sends and does not wait until
somebody receives it, so two ranks may both send first. The network is 10-gigabit Ethernet: a message takes 20
microseconds, in the first 5 of which its sender can do nothing else, and then its bytes pass at 1.17 gigabytes per
second, those of one message at a time out of each rank and into each rank. Your additions take no time; those of the
textbook do, so you may come out ahead. Every rank is a process of its own. NumPy and the standard library may be
imported.
"""

import numpy as np  # noqa: F401  (you may need it)

TARGETS = {
    "long": 1.1,  # times what the ring takes for a vector of about a megabyte
    "short": 1.5,  # times what recursive doubling takes for a few numbers
    "traffic": 1.05,  # times the least bytes that the busiest rank has to send
}


def worker(comm, task, s):
    """Return the sum of the vectors of all ranks."""
    x = task.start()  # (n,)
    if comm.rank:
        comm.send(x, 0)
        return comm.recv(0)
    for rank in range(1, comm.size):
        x += comm.recv(rank)
    for rank in range(1, comm.size):
        comm.send(x, rank)
    return x
