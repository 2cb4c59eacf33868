"""DDG runs the backward passes of all modules in parallel, each with the error that the module above sent last time.

Rank k holds module k of K. In iteration t mini-batch t goes forward through all modules; then all modules go backward
in parallel: the last one through mini-batch t, the one below it through t-1, module k through t-(K-1-k).

    w_k <- w_k - lr dL/dw_k at (x_b; w_k as it was when b went forward)        b = t - (K-1-k)

    module 0   F0 .. .. .. | F1 .. .. .. | F2 .. .. B0 | F3 .. .. B1
    module 1   .. F0 .. .. | .. F1 .. B0 | .. F2 .. B1 | .. F3 .. B2
    module 2   .. .. F0 B0 | .. .. F1 B1 | .. .. F2 B2 | .. .. F3 B3

`weights`: with stash, as in the paper, backward uses the weights of the forward pass; with none, as in its code, the
newest. Each is equal to PipeDream with that setting, bit for bit. Only time differs: with the paper's `barrier` between
forward and backward, an iteration takes T_F + T_B / K; without it (T_F + T_B) / K, as in PipeDream.

Price: where a elements per sample cross from one module to the next, 2 batch a per step, there and back. Module k keeps
the activations of K-k mini-batches, and with stash as many versions of its weights.
Staleness: K-1-k updates on module k.
Source: Huo, Gu, Yang & Huang, ICML 2018, arXiv:1804.10574; slowbull/DDG.
"""

from collections import deque
from typing import Literal

import kernels
from algorithms.algorithm import Equivalence, Knobs, cut_model, knob
from algorithms.parts.module_chain import ModuleChain
from algorithms.parts.optimizers import HEAVY, Rule, optimizer


class Settings(Knobs):
    learning_rate: float = knob(0.1, "step size", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer of every module")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    weights: Literal["stash", "none"] = knob(
        "stash", "weights a backward pass uses: stash (those of its forward pass) or none (newest)", postpones=True
    )
    barrier: bool = knob(True, "start backward passes only when all modules have gone forward, as in the paper")


def worker(comm, task, s=Settings()):
    chain = ModuleChain(comm, task)
    module, behind = chain.module, chain.modules_above
    w = module.start()  # (d_k,)
    rule = optimizer(s.update, w, s.momentum)
    kept = deque()  # (w, saved, version of w) of mini-batches that have gone forward and not backward, oldest first
    updates = 0
    for t, x, target in chain.batches(more=behind):
        if x is not None:
            y, saved = module.forward(w, x, f"F{t}")
            kept.append((w, saved, updates))
            dy = chain.send_up(y, target, t)
            if s.barrier:
                comm.barrier()
        if t >= behind:
            seen, saved, version = kept.popleft()
            if behind:
                dy = chain.recv_error()
            dx, g = module.backward(seen if s.weights == "stash" else w, saved, dy, f"B{t - behind}")
            chain.send_down(dx)
            chain.holds([w, seen, *(later for later, *_ in kept)], g, [saved, *(later for _, later, _ in kept)])
            w = kernels.copy(w) if s.weights == "stash" else w
            rule.step(w, g, s.learning_rate)
            task.applied(updates - version)
            updates += 1
            task.report(w, module.where)
    return w


ALGORITHM = cut_model(
    worker,
    Settings,
    deterministic=True,  # stale, but always by the same updates: the network changes when, and not what
    counts_staleness=True,
    equivalences=(
        Equivalence("one module gives SGD", to="sgd"),
        Equivalence("it is PipeDream with stashing", to="pipedream", workers=4),
        Equivalence(
            "with the newest weights, as in the authors' code, it is PipeDream without stashing",
            to="pipedream",
            workers=4,
            settings={"weights": "none", "update": "momentum", "momentum": 0.5},
            to_settings={"weights": "none", "momentum": 0.5},
        ),
    ),
)
