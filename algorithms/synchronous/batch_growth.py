"""Batch growth increases the batch size instead of decaying the learning rate: noise falls as much, in fewer updates.

Noise is proportional to lr / (B (1 - mu)), and each milestone divides it by `factor`. A batch larger than one
mini-batch of every worker is accumulated: over c mini-batches each worker adds up its gradients at the same w, and then
all step once,

    g = (sum of c N gradients) / (c N)        v <- mu v + g        w <- w - lr v

    decay            lr / factor                              as usual
    grow             c factor                                 up to `largest`, then lr decays
    hybrid           c factor once, then lr / factor
    larger_rate      grow, from lr factor and c = factor
    larger_momentum  grow, from lr factor, (1 - mu) / factor and c = factor^2

A milestone takes effect at the next update. An incomplete last update takes the mean of the mini-batches it has.

Price: an all-reduce per update, 2 (N-1) d elements in total by the ring; two more vectors, v and the sum. Staleness:
none.
Source: Smith, Kindermans, Ying & Le, Don't Decay the Learning Rate, Increase the Batch Size, ICLR 2018.
"""

import math

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.lr_schedules import Growth, milestones_passed, with_less_noise
from knobs import Rising


class Settings(Knobs):
    learning_rate: float = knob(0.05, "initial learning rate of the schedules decay, grow and hybrid", gt=0, le=1000)
    momentum: float = knob(0.9, "initial mu; larger_momentum raises it towards 1", ge=0, lt=1)
    schedule: Growth = knob("grow", "how noise is reduced: decay, grow, hybrid, larger_rate or larger_momentum")
    factor: int = knob(5, "factor by which each milestone reduces the noise", ge=2, le=100)
    milestones: Rising = knob("60,120,160", "epochs at which the noise falls", example="30,60,80", unit="epochs")
    largest: int | None = knob(
        None,
        "maximum number of mini-batches a worker accumulates per update; no limit by default",
        none="no limit",
        ge=1,
        le=1_000_000,
    )

    def plan(self, step, per_epoch):
        """Return (learning rate, number of mini-batches, momentum) of an update that begins at this step."""
        given = {"rate": self.learning_rate, "batch": 1, "momentum": self.momentum}
        drops = milestones_passed(step / per_epoch, self.milestones)
        return with_less_noise(self.schedule, drops, factor=self.factor, largest=self.largest, **given)


def elements_sent(shape, s):
    return 2 * (shape.workers - 1) * shape.parameters * updates(s, shape.steps, shape.per_epoch)


def updates(s, steps, per_epoch):
    """Return the number of updates in `steps` mini-batches."""
    done = step = 0
    while step < steps:
        step += s.plan(step, per_epoch)[1]
        done += 1
    return done


def notes(e):
    first = min(e.knobs.milestones, default=math.inf)
    if e.knobs.schedule in ("decay", "grow", "hybrid") and not (e.epochs and e.epochs > first):
        yield f"Until its first milestone, epoch {first:g}, this is sync_sgd with momentum; use milestones 5,10,15."


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,), equal on all ranks, and it stays so
    v, total = kernels.state_like(w), kernels.keep(kernels.zeros_like(w))
    gathered = 0

    def update():
        kernels.scale(total, 1 / gathered)
        comm.all_reduce(total, op="mean")
        kernels.momentum(w, v, total, rate, momentum)
        if comm.rank == 0:
            task.applied(0)
            task.measure("batch size", gathered * comm.size * task.batch)
            task.report(w)

    for step in task.steps(together=True):
        if gathered == 0:
            rate, due, momentum = s.plan(step, task.per_epoch)
            total[:] = 0
        _, g = task.gradient(w)
        kernels.add(total, g)
        gathered += 1
        if gathered == due:
            update()
            gathered = 0
    if gathered:
        update()
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    notes=notes,
    elements_sent=elements_sent,
    computes_together=True,
    counts_staleness=True,
    compresses="mean",
    equivalences=(
        Equivalence(
            "before the first milestone it is synchronous SGD with momentum",
            to="sync_sgd",
            workers=4,
            settings={"milestones": "1000"},
            to_settings={"update": "momentum"},
        ),
    ),
)
