"""Published training throughput, and the errors of the planner's predictions of it.

`published_throughput.csv` has a row for each configuration that its authors measured: the model's shape, the cluster,
the layout, the software's settings, and tokens per second per GPU. An empty cell is a value that was not published: a
micro-batch or a number of stages per rank is then the best of 1, 2, 4 and 8, since the authors tuned them. A throughput
given in FLOP/s is converted by the FLOPs that its source counts:

    model       forward and backward, all attention scores
    causal      the same with half of the scores
    hardware    with full recomputation, 96 layers width^2 (1 + sequence / (6 width) + vocabulary / (16 layers width))
                per token

Five rows contradict their neighbours in their own source. They are marked `inconsistent`, and kept.

Source: llm-foundry's training benchmarks (MPT); Narayanan et al., SC 2021, Table 1; Korthikanti et al., MLSys 2023,
Tables 3 and 5; Grattafiori et al., arXiv:2407.21783, Table 4; NeMo 24.12, performance summary.
"""

import csv
import functools
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from theory.planner.constants import FITTED, Constants
from theory.planner.language_model import CAUSAL, LanguageModel
from theory.planner.memory_use import memory_use
from theory.planner.setup import ATTENTION, GPUS, RECOMPUTE, SHARDS, Gpu, Layout, Setup, Software, take_rows
from theory.planner.step_time import tokens_per_second, utilisation

FILE = Path(__file__).with_name("published_throughput.csv")
TRIED = 1, 2, 4, 8  # micro-batches and stages per rank where none was published


@dataclass(frozen=True)
class PublishedRows:
    """Rows of the table: their setups, as arrays, and the measured tokens per second per GPU."""

    sources: np.ndarray
    models: np.ndarray
    gpus: np.ndarray  # their number
    names: np.ndarray  # of GPUs
    setup: Setup
    is_open: np.ndarray  # whether micro-batch and stages per rank were not published, shape (rows, 2)
    rates: np.ndarray
    inconsistent: np.ndarray
    told: np.ndarray  # utilisation as published, %; NaN if none
    flops: np.ndarray  # TFLOP/s per GPU as published; 0 if none
    parameters: np.ndarray  # as published; 0 if none

    def __len__(self) -> int:
        return len(self.rates)

    def take(self, rows: np.ndarray) -> "PublishedRows":
        """Return the rows that `rows`, a mask or indices, selects."""
        parts = ("model", "gpu", "layout", "software")
        setup = replace(self.setup, **{name: take_rows(getattr(self.setup, name), rows) for name in parts})
        setup = replace(setup, batch=self.setup.batch[rows])
        rest = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "setup"}
        return replace(self, setup=setup, **rest)


class Errors(NamedTuple):
    """The errors of predicted tokens per second, as shares of the published ones."""

    rows: int
    median: float
    ninth: float  # nine of ten are within it
    largest: float
    bias: float  # the median with its sign
    within: float  # share of rows within 20 %
    correlation: float  # rank correlation of the utilisation; NaN for fewer than three rows


@functools.cache
def table() -> PublishedRows:
    """Return all rows of the table."""
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    def column(name: str, kind: type = int, blank: float = 0) -> np.ndarray:
        return np.array([kind(row[name]) if row[name] else blank for row in rows])

    def coded(name: str, of: tuple[str, ...]) -> np.ndarray:
        return np.array([of.index(row[name]) for row in rows])

    model = LanguageModel(
        layers=column("layers"), width=column("width"), heads=column("heads"), kv_heads=column("kv_heads"),
        ffn=column("ffn"), vocabulary=column("vocab"), sequence=column("sequence"), gated=column("gated"),
        tied=column("tied"), learned_positions=column("learned_positions"),
    )  # fmt: skip
    each = [GPUS[row["gpu"]] for row in rows]
    gpu = Gpu(**{f.name: np.array([getattr(one, f.name) for one in each]) for f in fields(Gpu)})
    layout = Layout(
        data=column("data"), tensor=column("tensor"), pipeline=column("pipeline"), context=column("context"),
        pieces=column("stages_per_rank", blank=1), sequence_parallel=column("sequence_parallel"),
        shard=coded("shard", SHARDS), micro_batch=column("micro_batch", blank=1),
        recompute=coded("recompute", RECOMPUTE), groups=np.ones(len(rows), int), defers=np.zeros(len(rows), bool),
    )  # fmt: skip
    software = Software(
        attention=coded("attention", ATTENTION), fp8=np.array([row["precision"] == "fp8" for row in rows]),
        gather_bytes=column("gather_bytes"), reduce_bytes=column("reduce_bytes"),
        gradient_bytes=column("gradient_bytes"), logit_bytes=column("logit_bytes"),
        overlaps=column("tensor_overlap") == 1,
    )  # fmt: skip
    setup = Setup(model, column("global_batch"), gpu, layout, software)
    words = {name: np.array([row[name] for row in rows]) for name in ("source", "model", "gpu", "flops_counted")}
    counted = np.select(
        [words["flops_counted"] == "hardware", words["flops_counted"] == "causal"],
        [hardware_flops(model), model.flops(CAUSAL)], model.flops(),
    )  # fmt: skip
    rates, flops = column("tokens_per_s_per_gpu", float), column("tflops_per_gpu", float)
    is_open = np.array([[not row["micro_batch"], not row["stages_per_rank"]] for row in rows])
    return PublishedRows(
        words["source"], words["model"], column("gpus"), words["gpu"], setup, is_open,
        np.where(rates > 0, rates, flops * 1e12 / counted), column("inconsistent") == 1,
        column("utilisation", float, np.nan), flops, column("params"),
    )  # fmt: skip


def hardware_flops(model: LanguageModel):
    """Return the FLOPs per token with full recomputation, as Narayanan et al. count them."""
    layers, h, s = model.layers, model.width, model.sequence
    return 96 * layers * h**2 * (1 + s / (6 * h) + model.vocabulary / (16 * layers * h))


def predict(rows: PublishedRows, constants: Constants = FITTED) -> np.ndarray:
    """Return predicted tokens per second per GPU, shape (rows,)."""
    return np.max([np.where(allowed, tokens_per_second(setup, constants), 0) for setup, allowed in _tried(rows)], 0)


def complete(rows: PublishedRows) -> Setup:
    """Return the rows' setups without gaps.

    Where no micro-batch or number of stages per rank was published, the setup has the values with the highest predicted
    throughput.
    """
    tries = list(_tried(rows))
    rates = [np.where(allowed, tokens_per_second(setup), 0) for setup, allowed in tries]
    best = np.argmax(rates, 0)
    at = rows.setup.layout
    for name in ("micro_batch", "pieces"):
        found = np.array([getattr(setup.layout, name) for setup, _ in tries])
        at = replace(at, **{name: found[best, np.arange(len(rows))]})
    return replace(rows.setup, layout=at)


def _tried(rows: PublishedRows):
    """Yield (setup, whether it is possible) for each micro-batch and number of stages per rank to try."""
    setup, at = rows.setup, rows.setup.layout
    for size in TRIED if rows.is_open[:, 0].any() else TRIED[:1]:
        for count in TRIED if rows.is_open[:, 1].any() else TRIED[:1]:
            micro = np.where(rows.is_open[:, 0], size, at.micro_batch)
            pieces = np.where(rows.is_open[:, 1], count, at.pieces)
            fits = (
                ~rows.is_open[:, 1] | (pieces == 1) | ((at.pipeline > 1) & (pieces <= setup.model.layers / at.pipeline))
            )
            yield replace(setup, layout=replace(at, micro_batch=micro, pieces=pieces)), fits


def errors(rows: PublishedRows, predicted: np.ndarray) -> Errors:
    """Return the errors of `predicted` tokens per second per GPU, compared with the published ones."""
    off = predicted / rows.rates - 1
    size = np.abs(off)
    of = utilisation(rows.setup, np.array([predicted, rows.rates]))
    alike = float(np.corrcoef(of.argsort(1).argsort(1))[0, 1]) if len(rows) > 2 else float("nan")
    return Errors(
        len(rows), float(np.median(size)), float(np.quantile(size, 0.9)), float(size.max()), float(np.median(off)),
        float((size <= 0.2).mean()), alike,
    )  # fmt: skip


def nearest(rows: PublishedRows, known: PublishedRows) -> np.ndarray:
    """Return a baseline prediction of tokens per second per GPU, shape (rows,): copy the nearest published
    configuration.

    Each row gets the utilisation of the most similar row of `known` with the same GPU and precision.
    """

    def place(some: PublishedRows) -> np.ndarray:
        model = some.setup.model
        coordinates = [model.parameters, model.sequence, some.gpus, 4.0 ** (some.setup.layout.recompute > 0)]
        return np.log2(np.array(coordinates, float)).T

    away = np.abs(place(rows)[:, None] - place(known)).sum(2)
    away += 1e6 * (_kind(rows)[:, None] != _kind(known))
    found = utilisation(known.setup, known.rates)[away.argmin(1)]
    return found / utilisation(rows.setup, np.ones(len(rows)))


def constant(rows: PublishedRows, known: PublishedRows) -> np.ndarray:
    """Return a baseline prediction of tokens per second per GPU, shape (rows,): a constant utilisation.

    Each row gets the median utilisation of the `known` rows with the same GPU and precision.
    """
    found = utilisation(known.setup, known.rates)
    medians = {kind: np.median(found[_kind(known) == kind]) for kind in set(_kind(known))}
    chosen = np.array([medians.get(kind, np.median(found)) for kind in _kind(rows)])
    return chosen / utilisation(rows.setup, np.ones(len(rows)))


def _kind(rows: PublishedRows) -> np.ndarray:
    return np.char.add(rows.names, rows.setup.software.fp8.astype("U5"))


def leave_out(
    rows: PublishedRows, groups: np.ndarray, method: Callable[[PublishedRows, PublishedRows], np.ndarray]
) -> np.ndarray:
    """Return a cross-validated prediction for each row. One group at a time is predicted, by `method(rows of the group,
    all other rows)`.
    """
    predicted = np.zeros(len(rows))
    for group in np.unique(groups):
        mine = groups == group
        predicted[mine] = method(rows.take(mine), rows.take(~mine))
    return predicted


def memory_shares(rows: PublishedRows) -> np.ndarray:
    """Return the predicted memory of each row as a share of its GPU's."""
    return memory_use(complete(rows)).total / rows.setup.gpu.memory
