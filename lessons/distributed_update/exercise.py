"""Update each weight on one rank only.

`worker(comm, task, s)` runs on every rank of a simulated cluster. Train with Adam and large batches, so that no
rank keeps more of Adam's moments than it must:

- an update is made of `s.accumulate` mini-batches of each rank, all of them at the same w. Its g is the mean gradient
  of all their samples, over the mini-batches and over the ranks;
- mini-batches need not be equally large: those of step i, counted from 0, have `s.samples[i]` samples, on every rank.
  `task.gradient` returns the mean over a mini-batch's own samples;
- update t, counted from 1, is Adam's, with moments m and v that begin at zero:

      m = s.beta1 * m + (1 - s.beta1) * g
      v = s.beta2 * v + (1 - s.beta2) * g**2
      w = w - s.learning_rate * (m / (1 - s.beta1**t)) / (sqrt(v / (1 - s.beta2**t)) + s.eps)

- each rank keeps m and v of its own piece of w, and of no other, and updates that piece only. Then all ranks get
  all new pieces: before the next gradient each of them has the whole new w;
- the steps need not be a multiple of `s.accumulate`. The rest at the end makes a last update: its g is the mean over
  the remaining samples;
- the weights need not be a multiple of the ranks, and there may be fewer weights than ranks.

The worker below drops a last batch that is not full, and treats all mini-batches as equally large. Otherwise it is
correct, but redundant: every rank keeps all moments and updates all weights. Yours is graded on its updates, on which
gradients each rank receives and which new weights it sends, and on memory, bytes and time against TARGETS.

What you have: `comm.rank`, `comm.size`; `comm.reduce_scatter(x, op="mean")`, which returns this rank's piece of the
mean of all ranks' x, and leaves x as it is; `comm.all_gather(x)`, which returns a list of all ranks' x, by rank;
`comm.all_reduce(x, op="mean")`, which replaces x by that mean on all ranks. The pieces are those of
`np.array_split(x, comm.size)`: consecutive, and the first ones may have one number more. `task.start()`, the same w
on every rank; `task.steps(together=True)`, which ends on all ranks at the same step; `task.gradient(w)`, a loss and
the gradient of the next mini-batch, once in a step; `task.report(w)`, called by rank 0 after each update;
`s.learning_rate`, `s.accumulate`, `s.samples`, `s.beta1`, `s.beta2`, `s.eps`. Weights and gradients are NumPy vectors
of float32. NumPy and the standard library may be imported. Every rank is a process of its own.
"""

import numpy as np

TARGETS = {
    "memory": 7,  # vectors as long as w that a rank may hold at once
    "traffic": 1.02,  # times the bytes of one all-reduce for each update
    "time": 1.02,  # times what a worker with one all-reduce per update takes
}


def worker(comm, task, s):
    """Train and return the final weights."""
    w = task.start()  # (d,)
    m, v = np.zeros_like(w), np.zeros_like(w)
    gradients, t = [], 0
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        gradients.append(g)
        if len(gradients) == s.accumulate:
            g = np.mean(gradients, axis=0)
            comm.all_reduce(g, op="mean")
            t += 1
            m = s.beta1 * m + (1 - s.beta1) * g
            v = s.beta2 * v + (1 - s.beta2) * g**2
            w = w - s.learning_rate * (m / (1 - s.beta1**t)) / (np.sqrt(v / (1 - s.beta2**t)) + s.eps)
            gradients = []
            if comm.rank == 0:
                task.report(w)
    return w
