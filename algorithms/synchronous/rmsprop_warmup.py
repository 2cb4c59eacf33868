"""RMSprop warm-up starts very large batches with RMSprop, whose steps are bounded, and blends into momentum SGD.

    m <- a m + (1 - a) g^2
    D <- mu D - (A + (1 - A) (rms_rate / lr) / (sqrt(m) + eps)) g        w <- w + lr D

g is the mean gradient of all workers, A the share of SGD: exp(2 (e - centre) / period) / 2 at epoch e up to the centre,
where it is 1/2, then linear with the same slope up to 1 at centre + period / 2. At A = 0 it is RMSprop with
momentum and its own rate, at A = 1 momentum SGD at the linearly scaled rate, lr = N b / base_batch times the
base rate; `slow_start` then reduces it in four stages. The paper's 10 and 5 epochs are of 90; our runs are shorter.

Price: an all-reduce per step, 2 (N-1) d elements in total by the ring (the paper's have two bytes each: compression
bf16); two more vectors, m and D. Staleness: none.
Source: Akiba, Suzuki & Fukuda, Extremely Large Minibatch SGD, arXiv:1711.04325, 2017.
"""

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, ring_all_reduces
from algorithms.parts.lr_schedules import linear_scaling, sgd_share, slow_start

FORGET, EPS = 0.99, 1e-8


class Settings(Knobs):
    learning_rate: float = knob(0.02, "learning rate of momentum SGD at the base batch", gt=0, le=1000)
    base_batch: int = knob(
        32, "samples per step, over all workers, that the base learning rate is meant for", ge=1, unit="samples"
    )
    rms_rate: float = knob(0.0003, "learning rate of RMSprop, which dominates the first steps", ge=0, le=1000)
    momentum: float = knob(0.9, "mu, decay of the velocity", ge=0, lt=1)
    centre: float = knob(2.0, "epoch at which a step is half SGD and half RMSprop", ge=0, le=1000, unit="epochs")
    period: float = knob(
        1.0, "epochs of the transition from RMSprop to SGD; 0 means at once", ge=0, le=1000, unit="epochs"
    )
    slow_start: float = knob(
        0.0,
        "epochs of a schedule that starts at half the rate and falls three times, 90 in the paper; 0 is off",
        ge=0,
        le=10_000,
        unit="epochs",
    )

    def rate(self, epoch, batch):
        """Return the learning rate of momentum SGD in this epoch, at `batch` samples per step of all workers."""
        full = linear_scaling(self.learning_rate, batch, self.base_batch)
        return full * slow_start(epoch, self.slow_start) if self.slow_start else full


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,), equal on all ranks, and it stays so
    D, m = kernels.state_like(w), kernels.state_like(w)
    for step in task.steps(together=True):
        epoch = step / task.per_epoch
        rate, sgd = s.rate(epoch, comm.size * task.batch), sgd_share(epoch, s.centre, s.period)
        rms = (1 - sgd) * s.rms_rate / rate
        _, g = task.gradient(w)
        comm.all_reduce(g, op="mean")
        kernels.rmsprop_blend(w, D, m, g, rate, s.momentum, FORGET, sgd, rms, EPS)
        if comm.rank == 0:
            task.measure("share of SGD", sgd)
            task.report(w)
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=ring_all_reduces,
    computes_together=True,
    compresses="mean",
    equivalences=(
        Equivalence(
            "without its warm-up and at the base batch it is synchronous SGD with momentum",
            to="sync_sgd",
            batch=4,
            workers=4,
            settings={"centre": 0, "period": 0, "base_batch": 16},
            to_settings={"update": "momentum"},
        ),
    ),
)
