"""Greedy layer-wise learning trains every module with an auxiliary classifier and a loss of its own.

Rank k holds module k and an auxiliary classifier A_k on its features; the last module has the model's own outputs. The
loss of A_k trains A_k and module k, and nothing below: its input is treated as data.

    h_k = F_k(h_(k-1); w_k)        L_k = loss(A_k(h_k; a_k), y)        (w_k, a_k) <- (w_k, a_k) - lr grad L_k

    module 0   F0 B0 F1 B1 F2 B2 F3 B3
    module 1   .. F0 B0 F1 B1 F2 B2 F3 B3
    module 2   .. .. F0 B0 F1 B1 F2 B2 F3 B3        . idle only while the chain fills

All modules learn in parallel (DGL); or, with `phase`, one after the other, each for that many steps, as in layer-wise
pre-training. The first `frozen` modules are never trained: a control, which shows how much the rest learn without
them. A module may be at most `ahead` mini-batches ahead of the next one, which acknowledges each that it has
received with an empty message.

Price: features and labels travel up, nothing comes down: where a elements per sample cross from one module to the next,
batch (a + 1) per step; a forward and a backward of the classifier. Staleness: none.
Source: Belilovsky, Eickenberg & Oyallon, ICML 2019, arXiv:1812.11446, and ICML 2020, arXiv:1901.08164 (DGL).
"""

from algorithms.algorithm import Equivalence, Knobs, cut_model, knob
from algorithms.parts.module_chain import ModuleChain
from algorithms.parts.optimizers import HEAVY, Rule, optimizer


class Settings(Knobs):
    learning_rate: float = knob(0.1, "step size of modules and classifiers", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer of modules and classifiers")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    head_layers: int = knob(1, "hidden layers of each module's auxiliary classifier; 0 is linear", ge=0, le=8)
    head_width: int = knob(
        64,
        "neurons per hidden layer of an auxiliary classifier",
        unless={"head_layers": (0,)},
        ge=1,
        le=8192,
        unit="neurons",
    )
    phase: int | None = knob(
        None,
        "train modules one after the other, this many steps each; empty trains all at once",
        none="all in parallel",
        ge=1,
    )
    frozen: int = knob(0, "number of first modules that keep their initial weights, as a control", ge=0)
    ahead: int = knob(2, "mini-batches a module may run ahead of the next one", ge=1, le=10_000)


def check(workers, batch, workload, s):
    workload.split(workers)  # raises with the possible numbers of modules
    if s.frozen >= workers:
        raise ValueError(f"frozen is {s.frozen}, so none of {workers} modules would learn; use at most {workers - 1}.")


def elements_sent(shape, s):
    return shape.steps * shape.batch * (sum(shape.boundaries) + shape.workers - 1)


def worker(comm, task, s=Settings()):
    chain = ModuleChain(comm, task, labels=True)
    module = chain.module
    w = module.start()  # (d_k,)
    rule = optimizer(s.update, w, s.momentum)
    a = None
    frozen = comm.rank < s.frozen
    if chain.modules_above and not frozen:
        classifier = module.classifier(s.head_layers, s.head_width)
        a = classifier.start()
        own = optimizer(s.update, a, s.momentum)
    if frozen:
        task.holds("parameters", w.nbytes)
    unacknowledged = 0  # mini-batches that the next module has not acknowledged
    for t, x, target in chain.batches():
        chain.send_down(None)  # acknowledge
        y, saved = module.forward(w, x, f"F{t}")
        if unacknowledged == s.ahead:
            chain.recv_error()
            unacknowledged -= 1
        dy = chain.send_up(y, target, t)
        if chain.modules_above:
            unacknowledged += 1
        if a is not None:
            loss, dy, ga = classifier.gradient(a, y, target)
            task.measure("local loss", loss)
        if not frozen and (s.phase is None or comm.rank == min(s.frozen + t // s.phase, comm.size - 1)):
            g = module.gradient(w, saved, dy, f"B{t}")
            chain.holds([w, a], g, saved)
            rule.step(w, g, s.learning_rate)
            if a is not None:
                own.step(a, ga, s.learning_rate)
            task.applied(0)
        task.report(w, module.where)
    for _ in range(unacknowledged):
        chain.recv_error()
    return w


ALGORITHM = cut_model(
    worker,
    Settings,
    check=check,
    elements_sent=elements_sent,
    scales_loss=False,
    counts_staleness=True,
    equivalences=(Equivalence("one module gives SGD", to="sgd"),),
)
