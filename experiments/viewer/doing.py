"""What ranks do, by the kinds of activity that pictures show: KINDS, with compression separated from other updates.

A trace records every kernel outside a gradient as an update. Its label is the kernel's name, which tells compression
from optimizers and averaging.
"""

from collections.abc import Sequence

import numpy as np

import kernels
from experiments.runs.record import Run
from tracing import KINDS, UPDATE, Trace

COMPRESS = "compress"
BORROWED = {"residual", "clip", "matmul", "add", "scale"}  # kernels with other uses where nothing is compressed
OWN = {*kernels.FAMILIES["compression"]} - BORROWED
ORDER = (KINDS[0], COMPRESS, *KINDS[1:])


def compresses(labels: Sequence[str]) -> np.ndarray:
    """Return a mask of the labels of a trace, True for those of kernels that compress or restore what is sent."""
    family = OWN | BORROWED if OWN.intersection(labels) else set()
    return np.array([label in family for label in labels], bool)


def is_compressing(trace: Trace) -> np.ndarray:
    """Return a mask of the spans in which a rank compresses or restores what is sent."""
    mask = compresses(trace.labels)
    return (
        (trace.spans["kind"] == UPDATE) & mask[trace.spans["label"]]
        if mask.any()
        else np.zeros(len(trace.spans["kind"]), bool)
    )


def busy(trace: Trace) -> dict[str, np.ndarray]:
    """Return the time in s that each rank spent on each kind of activity: {kind: (ranks,)}. COMPRESS is included only
    if something is compressed.
    """
    table = dict(zip(KINDS, trace.busy().T, strict=True))
    mine = is_compressing(trace)
    if not mine.any():
        return table
    spans = trace.spans
    table[COMPRESS] = np.bincount(spans["rank"][mine], (spans["end"] - spans["start"])[mine], trace.ranks)
    table["update"] = np.maximum(table["update"] - table[COMPRESS], 0.0)
    return {kind: table[kind] for kind in ORDER}


def shares(run: Run) -> dict[str, float]:
    """Return the shares of the workers' time by kind, as in the summary. COMPRESS is included only if the run
    compresses.
    """
    found = {kind: run.summary.get(f"share_{kind}") or 0.0 for kind in KINDS}
    table = {kind: float(seconds[run.experiment.servers :].sum()) for kind, seconds in busy(run.trace).items()}
    if not table.get(COMPRESS):
        return found
    found[COMPRESS] = table[COMPRESS] / sum(table.values())
    found["update"] = max(found["update"] - found[COMPRESS], 0.0)
    return {kind: found[kind] for kind in ORDER}
