"""Train with large batches on workers with little memory.

`worker(comm, task, s)` runs on every rank of a simulated cluster. A worker has room for one mini-batch at a time:
`task.gradient(w)` computes the mean gradient of the next one, once in a step. `s.learning_rate` is the right rate if
every mini-batch makes an update of its own. Train with larger batches:

- an update is made of `s.accumulate` mini-batches of each worker, all of them at the same w, so of
  k = `comm.size` times `s.accumulate` in all. It is w - rate * g, with the mean g of their gradients;
- the rate follows the linear rule, with a gradual warm-up. In update t, counted from 0, it is

      learning_rate + (k * learning_rate - learning_rate) * t / s.warm_up     in the first s.warm_up updates,
      k * learning_rate                                                       after them,
      a tenth of that                                                         from update number s.milestone on;

- the steps need not be a multiple of `s.accumulate`. The rest at the end makes a last update, smaller than the others:
k is then its number of mini-batches, for its mean and for its rate.

The worker below is correct, but does none of this: every step is an update, at the rate for a single mini-batch. Yours
is graded on each of its updates, and on its cost in bytes, time and memory, against TARGETS.

What you have: `comm.rank`, `comm.size`; `comm.all_reduce(x, op="mean")`, which waits for all ranks and replaces `x` by
the mean of their `x`; `task.start()`, the same on every rank; `task.steps(together=True)`, which ends on all ranks at
the same step; `task.gradient(w)`, a loss and a gradient; `task.report(w)`, called by rank 0 after each update;
`s.learning_rate`, `s.accumulate`, `s.warm_up`, `s.milestone`. Parameters and gradients are NumPy vectors of float32,
and what you send is counted in bytes. NumPy and the standard library may be imported. Every rank is a process of its
own.
"""

TARGETS = {
    "traffic": 1.05,  # times the bytes of the textbook's worker, which sends as much as it must
    "time": 1.05,  # times what that worker takes
    "memory": 8,  # vectors as long as w that a worker may hold at once
}


def worker(comm, task, s):
    """Train and return the final parameters."""
    w = task.start()  # (d,)
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        comm.all_reduce(g, op="mean")
        w -= s.learning_rate * g
        if comm.rank == 0:
            task.report(w)
    return w
