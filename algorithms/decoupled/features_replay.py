"""Features replay stores only the inputs of a module, and repeats the forward pass when their error arrives.

Rank k holds module k of K. As in DDG, in iteration t mini-batch t goes forward, then all modules go backward in
parallel, module k with an error of mini-batch b = t - (K-1-k). But module k has stored only its input h of b; it
repeats the forward pass from h with its newest weights, and goes backward through these:

    w_k <- w_k - lr (d F_k(h; w_k) / d w_k)^T delta        h, delta: of mini-batch b, and K-1-k updates old

    module 0   F0 .. .. .. .. | F1 .. .. .. .. | F2 .. .. R0 B0 | F3 .. .. R1 B1
    module 1   .. F0 .. .. .. | .. F1 .. R0 B0 | .. F2 .. R1 B1 | .. F3 .. R2 B2
    module 2   .. .. F0 B0 .. | .. .. F1 B1 .. | .. .. F2 B2 .. | .. .. F3 B3 ..

Layers that draw random numbers draw new ones in the repeated pass. With a `barrier` between forward and backward, an
iteration takes T_F + (T_F + T_B) / K; without it (2 T_F + T_B) / K, in a full pipeline.

Price: where a elements per sample cross from one module to the next, 2 batch a per step, there and back; one more
forward on all modules but the last. Module k stores K-k inputs, and the activations of one mini-batch.
Staleness: features and errors are K-1-k updates old on module k; the weights are the newest.
Source: Huo, Gu & Huang, NeurIPS 2018, arXiv:1807.04511; slowbull/FeaturesReplay.
"""

from collections import deque

from algorithms.algorithm import Equivalence, Knobs, cut_model, knob
from algorithms.parts.module_chain import ModuleChain
from algorithms.parts.optimizers import HEAVY, Rule, optimizer


class Settings(Knobs):
    learning_rate: float = knob(0.1, "step size", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer of every module")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    first_rate: float = knob(
        1.0, "factor that multiplies the learning rate of the first module; the authors' code uses 2", gt=0, le=100
    )
    barrier: bool = knob(True, "start backward passes only when all modules have gone forward, as in the paper")


def worker(comm, task, s=Settings()):
    chain = ModuleChain(comm, task)
    module, behind = chain.module, chain.modules_above
    w = module.start()  # (d_k,)
    rule = optimizer(s.update, w, s.momentum)
    rate = s.learning_rate * (s.first_rate if module.first and behind else 1)
    kept = deque()  # (h, version of w in its forward) of mini-batches that have not gone backward, oldest first
    updates = 0
    for t, x, target in chain.batches(more=behind):
        if x is not None:
            y, saved = module.forward(w, x, f"F{t}")
            kept.append((x, updates))
            dy = chain.send_up(y, target, t)
            if s.barrier:
                comm.barrier()
        if t >= behind:
            h, version = kept.popleft()
            if behind:
                _, saved = module.forward(w, h, f"R{t - behind}")
                dy = chain.recv_error()
            dx, g = module.backward(w, saved, dy, f"B{t - behind}")
            chain.send_down(dx)
            chain.holds([w], g, saved)
            task.holds("buffers", sum(later.nbytes for later, _ in kept))
            rule.step(w, g, rate)
            task.applied(updates - version)
            updates += 1
            task.report(w, module.where)
    return w


ALGORITHM = cut_model(
    worker,
    Settings,
    counts_staleness=True,
    equivalences=(
        Equivalence("one module gives SGD", to="sgd"),
        Equivalence(
            "if every module is one linear layer, it is PipeDream without stashing",
            to="pipedream",
            workers=8,
            to_settings={"weights": "none"},
        ),
    ),
)
