"""BMUF filters the mean step of a block: momentum between blocks compensates for the slowdown of model averaging.

A block is `period` local steps of every worker, all from the same point Wg. Their mean displacement G is treated as a
gradient and low-pass filtered; block momentum bm is by default 1 - 1/N, block rate zeta 1:

    G <- mean of w_i - Wg        D <- bm D + zeta G

    classical       W <- W + D                      Wg <- W
    nesterov        W <- W + D                      Wg <- W + bm D      the paper's: W is the model, Wg looks ahead
    nesterov_code   W <- W + D + bm D               Wg <- W             CNTK's, fairseq's: the point ahead is the model

N workers of `period` steps move only as far as one; under a constant drift the filter multiplies that by
zeta / (1 - bm), which is N again. The third form multiplies by (1 + bm) / (1 - bm), 31 instead of 16 for N = 16.
Two more traps: the filter takes 1 / (1 - bm) blocks to fill; and CNTK adds the workers' steps up instead of averaging
them and multiplies by 1 - bm, so its block rate is our zeta / ((1 - bm) N), the same number only for the
default bm, and with bm 0 it is not model averaging.

Price: an all-reduce per block, 2 (N-1) d elements in total by the ring, as many again for each state vector that is
averaged; four more vectors of memory. Staleness: none; models diverge for at most period - 1 steps.
Source: Chen & Huo, ICASSP 2016; BlockMomentumSGD.h of CNTK and bmuf.py of fairseq for the third form.
"""

from typing import Literal

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from algorithms.parts.periodic_averaging import StatePolicy, elements_sent_with_state, sync_optimizer_state

PLAIN = {"block_momentum": 0, "block_rate": 1, "period": 4}


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size of the local steps", gt=0, le=1000)
    period: int = knob(5, "local steps per block", ge=1, le=10_000, unit="steps", postpones=True)
    form: Literal["classical", "nesterov", "nesterov_code"] = knob("nesterov", "block momentum's form")
    block_momentum: float | None = knob(
        None, "bm, fraction of a block's step carried into the next", none="1 - 1 / workers", ge=0, lt=1
    )
    block_rate: float = knob(
        1.0, "zeta, step size between blocks; 1 applies the workers' mean displacement as it is", gt=0, le=100
    )
    update: Rule = knob("sgd", "optimizer of every worker")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    state: StatePolicy = knob(
        "reset", "what the end of a block does to the optimizer's state", unless={"update": ("sgd",)}
    )


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    start, model = kernels.keep(kernels.copy(w)), kernels.keep(kernels.copy(w))  # Wg, W
    step, drift = kernels.state_like(w), kernels.keep(kernels.empty_like(w))  # D, G
    bm = 1 - 1 / comm.size if s.block_momentum is None else s.block_momentum
    stride, look = {"classical": (1, 0), "nesterov": (1, bm), "nesterov_code": (1 + bm, 0)}[s.form]
    rule = optimizer(s.update, w, s.momentum)

    def end_block():
        kernels.displacement(drift, w, start, 1.0)
        comm.all_reduce(drift, op="mean")
        kernels.block_momentum(start, model, step, drift, bm, s.block_rate, stride, look)
        w[:] = start
        sync_optimizer_state(comm, rule, s.state)
        if comm.rank == 0:
            task.report(model)

    alone = 0  # steps of this block
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        rule.step(w, g, s.learning_rate)
        alone += 1
        if alone == s.period:
            end_block()
            alone = 0
    if alone:
        end_block()
    return model


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=elements_sent_with_state,
    compresses="mean",
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd", exactness="RND"),
        *(
            Equivalence(
                f"without block momentum the {form} form is model averaging",
                to="model_averaging",
                exactness="RND",
                workers=4,
                settings=PLAIN | {"form": form, "update": "momentum", "state": "reset"},
                to_settings={"period": 4, "update": "momentum", "state": "reset"},
            )
            for form in ("classical", "nesterov", "nesterov_code")
        ),
    ),
)
