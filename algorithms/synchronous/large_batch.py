"""Large-batch SGD scales the learning rate with the batch size, after a warm-up: at first the full rate is too large.

    k = N b / base_batch        lr <- base + (k base - base) t / T        in the first T steps, k base after them

and then the rate decays at each milestone. Every worker takes the Nesterov step with the mean gradient g of all N:

    v <- mu v + g        w <- w - lr (g + mu v)

One step at k lr moves about as far as k steps at lr, as long as gradients change little on the way; early in training
they change much. Warm-up `gradual` rises in every step, `constant` stays at base and then jumps, `none` begins at k
base. The rate is outside v, so v needs no correction when it changes (see momentum).

Price: an all-reduce per step, 2 (N-1) d elements in total by the ring; one more vector, v. Staleness: none.
Source: Goyal et al., Accurate, Large Minibatch SGD, arXiv:1706.02677, 2017.
"""

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, ring_all_reduces
from algorithms.parts.lr_schedules import WarmUp, linear_scaling, milestones_passed, warm_up_rate
from knobs import Rising


class Settings(Knobs):
    learning_rate: float = knob(0.02, "learning rate at the base batch", gt=0, le=1000)
    base_batch: int = knob(
        32, "samples per step, over all workers, that the base learning rate is meant for", ge=1, unit="samples"
    )
    momentum: float = knob(0.9, "mu, decay of the velocity", ge=0, lt=1)
    warm_up: WarmUp = knob("gradual", "how the learning rate rises to its full value: gradual, constant or none")
    warm_up_epochs: float = knob(
        5.0, "epochs until the full learning rate", unless={"warm_up": ("none",)}, ge=0, le=1000, unit="epochs"
    )
    milestones: Rising = knob("30,60,80", "epochs at which the learning rate falls", example="30,60,80", unit="epochs")
    decay: float = knob(0.1, "factor that multiplies the learning rate at each milestone", gt=0, le=1)

    def rate(self, step, per_epoch, batch):
        """Return the learning rate of this step, at `batch` samples per step of all workers."""
        peak = linear_scaling(self.learning_rate, batch, self.base_batch)
        falls = milestones_passed(step / per_epoch, self.milestones)
        length = self.warm_up_epochs * per_epoch
        return warm_up_rate(self.learning_rate, peak, step, length, self.warm_up) * self.decay**falls


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,), equal on all ranks, and it stays so
    v = kernels.state_like(w)
    for step in task.steps(together=True):
        rate = s.rate(step, task.per_epoch, comm.size * task.batch)
        _, g = task.gradient(w)
        comm.all_reduce(g, op="mean")
        if not task.is_usable(g):
            continue
        kernels.nesterov(w, v, g, rate, s.momentum)
        if comm.rank == 0:
            task.measure("learning rate", rate)
            task.report(w)
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=ring_all_reduces,
    computes_together=True,
    skips_overflow=True,
    compresses="mean",
    equivalences=(
        Equivalence(
            "at the base batch it is synchronous SGD with Nesterov's momentum",
            to="sync_sgd",
            batch=4,
            workers=4,
            settings={"base_batch": 16},
            to_settings={"update": "nesterov"},
        ),
        Equivalence(
            "one worker with the base batch gives SGD with Nesterov's momentum",
            to="nesterov",
            batch=4,
            settings={"base_batch": 4},
        ),
    ),
)
