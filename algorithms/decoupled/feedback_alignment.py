"""Feedback alignment sends errors through fixed random matrices, by default straight to every layer (direct: DFA).

Back-propagation multiplies an error by the transposed weights of every layer that it passes. Here a fixed random
matrix B replaces them, and the model still learns: the weights learn to align with B, until the error through it is a
descent direction. With `direct` errors skip the layers in between:

    FA    delta_l = (delta_(l+1) B_l) * phi'        from layer to layer, like back-propagation
    DFA   delta_l = (e B_l) * phi'                  e = dL/da, the error at the outputs, straight to every layer
          dW_l = h_(l-1)^T delta_l                  W_l <- W_l - lr dW_l

Rank k holds module k. In FA an error travels down through all modules, so only one works at a time; residual blocks
pass it on through B and along their shortcut. In DFA the last module broadcasts e, and then all layers of all modules
go backward in parallel, the last one with e itself: a step takes T_F and the longest backward pass.

Price: where a elements per sample cross from one module to the next, FA moves 2 batch a per step, there and back; DFA
batch a up, and batch e to each of the other ranks. B is as large as the weights, in DFA outputs x features of each
layer. Staleness: none.
Source: Lillicrap et al., Nature Communications 7:13276, 2016, arXiv:1411.0247; Nokland, NIPS 2016, arXiv:1609.01596.
"""

from algorithms.algorithm import Equivalence, Knobs, cut_model, knob
from algorithms.parts.module_chain import ModuleChain
from algorithms.parts.optimizers import HEAVY, Rule, optimizer


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer of every module")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    direct: bool = knob(
        True, "send errors from the outputs straight to every layer (DFA), not from layer to layer (FA)"
    )


def elements_sent(shape, s):
    errors = (shape.workers - 1) * shape.outputs if s.direct else sum(shape.boundaries)
    return shape.steps * shape.batch * (sum(shape.boundaries) + errors)


def notes(e):
    if e.data.get("model") == "cnn":
        yield (
            "Convolutions hardly align with random feedback (Refinetti et al., ICML 2021, show it for direct "
            "feedback); use a rate of 0.02 at most, or model cnn_bn."
        )


def worker(comm, task, s=Settings()):
    chain = ModuleChain(comm, task)
    module = chain.module
    w = module.start()  # (d_k,)
    rule = optimizer(s.update, w, s.momentum)
    layers = module.direct() if s.direct else module
    b = layers.matrices if s.direct else module.feedback()
    for t, x, target in chain.batches():
        y, saved = layers.forward(w, x, f"F{t}")
        dy = chain.send_up(y, target, t)
        if s.direct:
            g = layers.backward(w, saved, chain.broadcast_error(dy), f"B{t}")
        else:
            dx, g = layers.backward(b, saved, chain.recv_error() if chain.modules_above else dy, f"B{t}")
            chain.send_down(dx)
        chain.holds([w, b], g, saved)
        rule.step(w, g, s.learning_rate)
        task.applied(0)
        task.report(w, module.where)
    return w


ALGORITHM = cut_model(
    worker,
    Settings,
    notes=notes,
    elements_sent=elements_sent,
    counts_staleness=True,
    equivalences=tuple(
        Equivalence(
            claim,
            to="feedback_alignment",
            workers=3,
            to_workers=1,
            settings={"direct": direct},
            to_settings={"direct": direct},
        )
        for claim, direct in (
            ("cutting the model into modules does not change the weights", True),
            ("if errors pass from layer to layer, cutting the model does not change the weights, either", False),
        )
    ),
)
