"""Layer-wise model parallelism cuts a model that is too large for one rank between layers; one rank works at a time.

Rank s holds stage s of S. A mini-batch goes forward through all stages and then backward; then w_s <- w_s - lr g_s (or
the update of another optimizer), which no other stage waits for:

    stage 0   F .. .. .. .. .. B F
    stage 1   .. F .. .. .. B .. ..
    stage 2   .. .. F .. B .. .. ..
    stage 3   .. .. .. F B .. .. ..        . idle: (S-1)/S of the time

Price: where a elements per sample cross from one stage to the next, 2 batch a per step, there and back. Slower than
one rank; the gain is memory: each holds its own layers, and their activations. Staleness: none.
Source: folklore; the baseline of Huang et al., NeurIPS 2019 (Figure 2b), and of Harlap et al., arXiv:1806.03377.
"""

from algorithms.algorithm import Equivalence, Knobs, cut_model, knob
from algorithms.parts.optimizers import HEAVY, Rule, optimizer


class Settings(Knobs):
    learning_rate: float = knob(0.1, "step size", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer of every stage")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def worker(comm, task, s=Settings()):
    stage = task.stage(comm.rank, comm.size)
    w = stage.start()  # (d_s,)
    rule = optimizer(s.update, w, s.momentum)
    for step in task.steps(together=True):
        x, target = stage.chunk(step)
        if not stage.first:
            x = comm.recv(comm.rank - 1)
        y, saved = stage.forward(w, x)
        if stage.last:
            _, dy = stage.loss(y, target, step)
        else:
            comm.send(y, comm.rank + 1)
            dy = comm.recv(comm.rank + 1)
        dx, g = stage.backward(w, saved, dy)
        if not stage.first:
            comm.send(dx, comm.rank - 1)
        task.needs(w, g, saved, task.repeats(stage.part, len(x)))
        if not task.is_usable(g, agree=comm):
            continue
        rule.step(w, g, s.learning_rate)
        task.report(w, stage.where)
    return w


ALGORITHM = cut_model(
    worker,
    Settings,
    skips_overflow=True,
    equivalences=(
        Equivalence("one stage gives SGD", to="sgd"),
        Equivalence("three stages give SGD, bit for bit", to="sgd", workers=3),
    ),
)
