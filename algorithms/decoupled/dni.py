"""Modules predict the gradient of their outputs (DNI), and learn from the prediction before the true one arrives.

Rank k holds module k. As soon as h_k = F_k(h_(k-1); w_k) is computed, a small network M_k, the synthesiser, predicts
the gradient of the loss at h_k; the module learns from that prediction at once, back-propagates it, and sends the
result down as the target of the synthesiser below. The last module has the loss itself.

    d^ = M_k(h_k; a_k)        w_k <- w_k - lr d^ dh_k/dw_k        d_(k-1) = d^ dh_k/dh_(k-1)
    a_k <- a_k - guess_rate grad |M_k(h_k; a_k) - d_k|^2 / 2

M_k's last layer starts at 0, so lower modules do not move until the first target has arrived. With `labels` it sees the
label, too (cDNI), which a deep model needs. A target may arrive `late` steps after its prediction; then no module waits
for it. `mix` is lambda of BP(lambda): d^ <- (1 - mix) d^ + mix d_k, which waits for d_k; 1 is back-propagation.

Price: where a elements per sample cross from one module to the next, 2 batch a per step, there and back, and a label
for each sample and boundary; a forward and a backward of the synthesiser. Staleness: none, but predictions are biased.
Source: Jaderberg et al., ICML 2017, arXiv:1608.05343, whose synthesisers have batch norm; Czarnecki et al., ICML 2017,
arXiv:1703.00522.
"""

from collections import deque

from algorithms.algorithm import Equivalence, Knobs, cut_model, knob
from algorithms.parts.module_chain import ModuleChain
from algorithms.parts.optimizers import HEAVY, Rule, optimizer


class Settings(Knobs):
    learning_rate: float = knob(0.1, "step size of the modules", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer of every module")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    guess_rate: float = knob(0.03, "learning rate of the synthesisers", gt=0, le=1000)
    guess_layers: int = knob(1, "hidden layers of each gradient-predicting synthesiser; 0 is linear", ge=0, le=8)
    guess_width: int = knob(
        64, "neurons per hidden layer of a synthesiser", unless={"guess_layers": (0,)}, ge=1, le=8192, unit="neurons"
    )
    labels: bool = knob(True, "let the synthesisers see the labels (cDNI)")
    late: int = knob(
        0,
        "steps between a prediction and the true gradient it learns from",
        ge=0,
        le=1000,
        unit="steps",
        postpones=True,
    )
    mix: float = knob(
        0.0, "lambda, fraction of the true gradient mixed into the prediction; 1 is back-propagation", ge=0, le=1
    )


def elements_sent(shape, s):
    labels = shape.workers - 1 if s.labels else 0
    return shape.steps * shape.batch * (2 * sum(shape.boundaries) + labels)


def worker(comm, task, s=Settings()):
    chain = ModuleChain(comm, task, s.labels)
    module = chain.module
    w = module.start()  # (d_k,)
    rule = optimizer(s.update, w, s.momentum)
    a = None
    if chain.modules_above:
        synthesiser = module.synthesiser(s.guess_layers, s.guess_width, s.labels)
        a = synthesiser.start()
        teach = optimizer("sgd", a)
    lessons = deque()  # predictions that have not been compared with their target yet, oldest first

    def learn():
        d = chain.recv_error()
        loss, g = synthesiser.lesson(a, lessons.popleft(), d)
        teach.step(a, g, s.guess_rate)
        task.measure("synthesiser loss", loss)
        return d

    for t, x, target in chain.batches():
        y, saved = module.forward(w, x, f"F{t}")
        dy = chain.send_up(y, target, t)
        if chain.modules_above:
            dy, thought = synthesiser.guess(a, y, target)
            lessons.append(thought)
            if s.mix:
                dy = (1 - s.mix) * dy + s.mix * learn()
        dx, g = module.backward(w, saved, dy, f"B{t}")
        chain.send_down(dx)
        chain.holds([w, a], g, [saved, *lessons])
        rule.step(w, g, s.learning_rate)
        task.applied(0)
        task.report(w, module.where)
        if len(lessons) > s.late:
            learn()
    while lessons:
        learn()
    return w


ALGORITHM = cut_model(
    worker,
    Settings,
    elements_sent=elements_sent,
    scales_loss=False,
    counts_staleness=True,
    equivalences=(
        Equivalence("one module gives SGD", to="sgd"),
        Equivalence(
            "with mix 1 the prediction is the true gradient, so it is back-propagation",
            to="sgd",
            workers=3,
            settings={"mix": 1},
        ),
    ),
)
