"""Average a model a part at a time, while training continues.

`worker(comm, task, s)` runs on every rank of a simulated cluster. Each worker takes SGD steps on its own, from the
model w that it holds; all share a common model x, with a velocity v.

The worker below is DiLoCo: every `s.period` steps all ranks stop, average how far they have come, and take an outer
step with Nesterov's momentum. It is correct, but sends the whole model at once, and nobody trains meanwhile. Make it
streaming DiLoCo:

- Parameters are cut into K = `s.fragments` parts; part number k is `w[k * d // K : (k + 1) * d // K]`. The parts take
  turns of `s.period // K` steps, in order, again and again, so each has an outer step every `s.period` steps.
- `s.overlap` steps before its turn ends, a part's displacement `x - w` starts on its way: an all-reduce that is not
  waited for. Training continues. With an overlap of 0 it starts and arrives after the last step of the turn.
- After the last step of its turn, the part takes its outer step with the mean p that has arrived: `v = mu * v + p`,
  then `x = x - s.outer_rate * (p + mu * v)`, with `mu = s.outer_momentum`. Of its own part a worker keeps a share:
  `w = s.own_share * w + (1 - s.own_share) * x`. Rank 0 reports x.
- At the very end, what is on its way is applied in the same manner. Then every part whose w has taken steps since its
  last outer step has one more, in order, with a new displacement.

It is graded by the models that rank 0 reports, which have to equal the textbook's, and by its cost, against TARGETS.

What you have: `comm.rank`, `comm.size`; `comm.all_reduce(x, op="mean")`, which waits for all ranks and replaces `x` by
the mean of their `x`; `comm.all_reduce(x, op="mean", async_op=True)`, which returns at once: `.wait()` of what it
returns waits and returns the mean. Leave `x` alone until then. `task.start()`, the same on every rank;
`task.steps(together=True)`; `task.gradient(w)`, once in a step; `task.report(x)`, by which rank 0 reports the common
model; the last report counts; `s.learning_rate`, `s.period`, `s.fragments`, `s.overlap`, `s.own_share`,
`s.outer_rate`, `s.outer_momentum`. Parameters and gradients are NumPy vectors, whose length d is a multiple of K, the
number of parts. NumPy and the standard library may be imported.
"""

import numpy as np

TARGETS = {
    "apart": 1e-6,  # largest difference from the textbook's model, as a share of its largest parameter
    "time": 1.02,  # times what the textbook's worker takes on the same slow line
    "message": 1.02,  # times the largest message of the textbook's worker
}


def worker(comm, task, s):
    """Train and return the common model."""
    w = task.start()  # (d,)
    x, v = w.copy(), np.zeros_like(w)
    alone = 0  # steps since the last outer one
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        w -= s.learning_rate * g
        alone += 1
        if alone == s.period:
            outer_step(comm, task, s, w, x, v)
            alone = 0
    if alone:
        outer_step(comm, task, s, w, x, v)
    return x


def outer_step(comm, task, s, w, x, v):
    p = x - w
    comm.all_reduce(p, op="mean")
    v[:] = s.outer_momentum * v + p
    x -= s.outer_rate * (p + s.outer_momentum * v)
    w[:] = x
    if comm.rank == 0:
        task.report(x)
