"""Ask the evaluated models of a run for guesses on a few held-out samples; this takes no time on the run's clock.

    images   nine of them, of different classes as far as possible: the class of each
    rows     the first few held-out rows of a table: the class of each, or the number
    points   the class of held-out points in a plane, and of every point of a grid around them
    text     the model continues a held-out text: character after character, drawn from its own probabilities. The
             random numbers of the draw are the same for each model, so that only the model changes what is written.

Untrained models, those of time 0, are not asked.
"""

from collections.abc import Callable, Sequence

import numpy as np

from experiments.runs.evaluations import Model
from experiments.runs.guesses import LONGEST, Guesses
from kernels import meter_kernels
from workloads.sequential import POPULATION
from workloads.supervised import Supervised
from workloads.workload import Workload

IMAGES, DOTS = 9, 90  # samples, at most
GRID = 24  # cells to each side of the grid around points
WRITTEN = 48  # characters that a model writes
MODELS = {"points": 21, "text": 21}  # at most; all those that were evaluated, otherwise
WORK = 1e9  # floating-point operations for all models together, at most
AROUND = 0.06  # margin around points, as a share of their extent


def guess(workload: Workload, models: Sequence[Model]) -> Guesses | None:
    """Return the guesses of these models, in order of time, or None for a workload without samples to show."""
    if not isinstance(workload, Supervised) or not (kind := _kind(workload)):
        return None
    x, target = workload.held_out
    shown = _shown(kind, workload)
    known = [row for row, model in enumerate(models) if model.seconds > 0]
    asked = {"points": len(shown) + GRID**2, "text": WRITTEN}.get(kind, len(shown))
    count = _affordable(workload, asked, min(len(known), MODELS.get(kind, len(known))))
    rows = [known[n] for n in np.unique(np.linspace(0, len(known) - 1, count).astype(int))] if count else []
    empty = np.zeros(0, "U1")
    found = Guesses(
        kind=kind,
        model=np.array(rows, "i4"),
        x=_pictures(workload, x[shown]) if kind == "images" else empty,
        columns=empty,
        answer=empty,
        guess=empty,
        cells=np.zeros((0, 0, 0), "u1"),
        box=np.zeros(0, "f8"),
    )
    ask = [_outputs(workload, models[row].w) for row in rows]
    if kind == "text":
        prompt = x[0]
        written = [[_write(outputs, prompt, workload.labels)] for outputs in ask]
        return found._replace(answer=_text([_joined(prompt, workload.labels)]), guess=_text(written, (len(rows), 1)))
    if kind in ("rows", "numbers"):
        found = found._replace(x=_text(workload.examples), columns=_text(workload.columns))
    if kind == "points":
        cells, box = _boundary(workload, ask)
        found = found._replace(x=x[shown].astype("f4"), cells=cells, box=box)
    named = _number if kind == "numbers" else _class
    return found._replace(
        answer=_text([named(workload, one) for one in _told(workload, target[shown])]),
        guess=_text(
            [[named(workload, one) for one in _judged(workload, outputs(x[shown]))] for outputs in ask],
            (len(rows), len(shown)),
        ),
    )


def _kind(workload: Supervised) -> str:
    """Return the kind of guesses for the workload's samples, or "" if it has no samples to show."""
    if workload.model.outputs[:-1]:
        return "text" if workload.labels and workload.classifies else ""
    if workload.image:
        return "images" if workload.classifies else ""
    if workload.examples:
        return "rows" if workload.classifies else "numbers"
    return "points" if workload.classifies and workload.model.inputs == (2,) else ""


def _shown(kind: str, workload: Supervised) -> np.ndarray:
    """Return the indices of the held-out samples that are shown."""
    target = workload.held_out[1]
    if kind == "points":
        return np.arange(0, len(target), -(-len(target) // DOTS))
    if kind != "images":
        return np.arange(min(len(target), len(workload.examples)))
    order = np.argsort(target, kind="stable")
    turn = np.empty(len(target), int)  # how many of its class come before it
    turn[order] = np.concatenate([np.arange(count) for count in np.unique(target, return_counts=True)[1]])
    return np.sort(np.argsort(turn, kind="stable")[:IMAGES])


def _affordable(workload: Supervised, samples: int, models: int) -> int:
    """Return for how many of `models` models the outputs of `samples` samples can be computed within WORK FLOPs."""
    population = min(POPULATION, workload.samples) if workload.over_batch else 0
    each = (samples + population) * sum(layer.flops for layer in workload.model.layers)
    return min(models, int(WORK // max(each, 1)))


def _outputs(workload: Supervised, w: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that computes the outputs of the model w for samples. This takes no time on any rank's
    clock.
    """
    with meter_kernels(None), np.errstate(all="ignore"):
        statistics = workload.model.statistics(w, workload.x)

    def outputs(x: np.ndarray) -> np.ndarray:
        with meter_kernels(None), np.errstate(all="ignore"):
            return workload.model.infer(w, np.ascontiguousarray(x), statistics)

    return outputs


def _judged(workload: Supervised, y: np.ndarray) -> list:
    """Return the class or number that each row of outputs predicts, or None where outputs are not finite."""
    finite = np.isfinite(y).all(1)
    values = y.argmax(1) if workload.classifies else y[:, 0]
    return [value if known else None for value, known in zip(values.tolist(), finite, strict=True)]


def _told(workload: Supervised, target: np.ndarray) -> list:
    return (target if workload.classifies else target[:, 0]).tolist()


def _class(workload: Supervised, value: int | None) -> str:
    if value is None:
        return ""
    return workload.labels[value] if workload.labels else str(value)


def _number(workload: Supervised, value: float | None) -> str:
    """Convert a standardised number back to the table's own unit."""
    if value is None:
        return ""
    middle, spread = workload.unit
    return f"{middle + spread * value:.4g}"


def _pictures(workload: Supervised, x: np.ndarray) -> np.ndarray:
    """Return samples as images, (n, height, width), scaled to values from 0 to 255."""
    low, high = float(x.min()), float(x.max())
    scaled = (x.reshape(len(x), *workload.image) - low) / ((high - low) or 1.0)
    return (255 * scaled).round().astype("u1")


def _boundary(workload: Supervised, ask: Sequence[Callable[[np.ndarray], np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the class that each model assigns to each cell of a grid around the training points, (models, GRID, GRID),
    and the grid's box.
    """
    low, high = workload.x.min(0), workload.x.max(0)
    (left, bottom), (right, top) = low - AROUND * (high - low), high + AROUND * (high - low)
    u, v = np.meshgrid(np.linspace(left, right, GRID), np.linspace(bottom, top, GRID))
    grid = np.stack([u.ravel(), v.ravel()], 1).astype(workload.dtype)
    cells = [outputs(grid).argmax(1).reshape(GRID, GRID) for outputs in ask]
    box = np.array([left, right, bottom, top], "f8")
    return np.array(cells, "u1").reshape(len(ask), GRID, GRID), box


def _write(outputs: Callable[[np.ndarray], np.ndarray], prompt: np.ndarray, labels: Sequence[str]) -> str:
    """Return the WRITTEN characters with which the model continues `prompt`, (context,), or "" if the model
    diverged.
    """
    draw = np.random.default_rng(0).random(WRITTEN)
    seen = prompt.copy()
    for chance in draw:
        y = outputs(seen[None, -len(prompt) :])[0, -1].astype(float)
        if not np.isfinite(y).all():
            return ""
        odds = np.exp(y - y.max()).cumsum()
        seen = np.append(seen, min(int(np.searchsorted(odds, chance * odds[-1])), len(labels) - 1))
    return _joined(seen[len(prompt) :], labels)


def _joined(tokens: np.ndarray, labels: Sequence[str]) -> str:
    return "".join(labels[token] for token in tokens)


def _text(values: Sequence, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return texts as an array, each cut to LONGEST characters."""
    array = np.array(values, f"U{LONGEST}")
    array = array.astype(f"U{max(1, np.char.str_len(array).max(initial=0))}")
    return array if shape is None else array.reshape(shape)
