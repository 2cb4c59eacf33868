"""Natural gradient with periodic averaging: workers whose steps account for curvature can average less often.

A dense layer's gradient is X^T Y, of its inputs X (with a column of ones for the bias) and its errors Y. The rows of
both are first preconditioned by the inverse of a Fisher matrix each (`parts/fisher.py`): X', Y'.

    w_i <- w_i - lr X'^T Y'        every period        w_i <- (w_1 + ... + w_N) / N

Other layers take plain steps. Each worker has Fisher matrices of its own. lr is that of a worker; N of them averaged
move as far as one, so per sample the rate is lr / N, the paper's effective rate, and for the same effective rate lr
grows with N. `max_change` limits the step of a mini-batch.

Price: an all-reduce per period, 2 (N-1) d elements in total by the ring; 8 n D r FLOPs per layer and mini-batch.
Staleness: none; models diverge for at most period - 1 steps.
Source: Povey, Zhang & Khudanpur, arXiv:1410.7455 (ICLR 2015 workshop).
"""

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.fisher import Fisher
from algorithms.parts.periodic_averaging import elements_sent


class Settings(Knobs):
    learning_rate: float = knob(
        0.2, "step size of a worker; averaging N workers leaves lr / N per sample", gt=0, le=1000
    )
    period: int = knob(10, "local steps between averages", ge=1, le=10_000, unit="steps", postpones=True)
    fisher_rank: int = knob(20, "r, directions kept of a Fisher matrix (its rank)", ge=1, le=1000)
    smoothing: float = knob(4.0, "alpha, how far the Fisher matrix is smoothed towards the identity", ge=0, le=1e12)
    forget: float = knob(0.1, "weight of the newest rows in an update of a Fisher matrix", gt=0, lt=1)
    refresh: int = knob(4, "mini-batches between updates of a Fisher matrix", ge=1, le=10_000)
    max_change: float | None = knob(
        None, "maximum norm of a mini-batch's step; no limit by default", none="no limit", gt=0
    )


def notes(e):
    if "model" not in e.data:
        yield (
            f"{e.workload} has no dense layers to take natural steps in, so this is model_averaging; "
            "use digits, spirals or mnist."
        )


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    sides = {}  # first parameter of a dense layer -> Fisher matrices of its inputs and of its errors
    alone = 0  # steps since the last average
    for _ in task.steps(together=True):
        g = natural(task, w, sides, s)
        if s.max_change is not None:
            kernels.clip(g, s.max_change / s.learning_rate)
        kernels.sgd(w, g, s.learning_rate)
        alone += 1
        if alone == s.period:
            average(comm, task, w)
            alone = 0
    if alone:
        average(comm, task, w)
    return w


def natural(task, w, sides, s):
    g = kernels.empty_like(w)
    task.holds("gradients", g.nbytes)
    layers = task.layerwise()
    layers.forward(w)
    for layer in reversed(layers):
        start = layer.place.start
        gradient, factors = layer.backward_factors(w[layer.place])
        if factors:
            inputs, errors = factors
            n, width = inputs.shape
            X = kernels.empty((n, width + 1), inputs)
            X[:, :width], X[:, width] = inputs, 1
            if start not in sides:
                sides[start] = [Fisher(s.fisher_rank, s.smoothing, s.forget, s.refresh) for _ in factors]
            of_inputs, of_errors = sides[start]
            X, Y = of_inputs.precondition(X), of_errors.precondition(n * errors)  # n: errors are those of the mean
            kernels.matmul(gradient.reshape(width + 1, -1), X.T, Y)
            kernels.scale(gradient, 1 / n)
        g[layer.place] = gradient
    return g


def average(comm, task, w):
    comm.all_reduce(w, op="mean")
    if comm.rank == 0:
        task.report(w)


ALGORITHM = Algorithm(
    worker,
    Settings,
    notes=notes,
    elements_sent=elements_sent,
    equivalences=(
        Equivalence("one worker without dense layers gives SGD", to="sgd"),
        Equivalence("a model without dense layers gives model averaging", to="model_averaging", workers=4),
    ),
)
