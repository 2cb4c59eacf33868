"""The planner against published throughput, and the time of its search. `python -m tests.benchmarks.planner`

Rows that leave something out fit the constants to the rest first.
"""

import time

import numpy as np

from tests.benchmarks.measure import row
from theory.planner.calibration import fit
from theory.planner.constants import FITTED, STANDARD_ERRORS
from theory.planner.language_model import find_model
from theory.planner.memory_use import TIGHT
from theory.planner.published import (
    Errors,
    PublishedRows,
    constant,
    errors,
    leave_out,
    memory_shares,
    nearest,
    predict,
    table,
)
from theory.planner.search import search
from theory.planner.setup import GPUS, Layout, Setup

WORST = 8


def say(found: Errors) -> str:
    """Return errors in a phrase."""
    return f"{found.rows} rows: median {100 * found.median:.1f} %, nine of ten {100 * found.ninth:.1f} %"


def refit(rows: PublishedRows, known: PublishedRows) -> np.ndarray:
    """Return the predictions of a fit to other rows."""
    return predict(rows, fit(known).constants)


def main() -> None:
    """Print the rows."""
    rows = table()
    predicted = predict(rows)
    found = errors(rows, predicted)
    told = f"{say(found)}, {100 * found.within:.0f} % within 20 %"
    met = found.median <= 0.03 and found.ninth <= 0.08 and found.within >= 0.95
    row("published tokens/s", told, "3 %, 8 %, 95 %", met)
    for source in dict.fromkeys(rows.sources):
        mine = rows.sources == source
        one = errors(rows.take(mine), predicted[mine])
        row(source, say(one), "median 9 %", one.median <= 0.09)
    unseen, null = (errors(rows, leave_out(rows, rows.models, method)) for method in (refit, nearest))
    row("each model by the others", say(unseen), "4 %, 10 %", unseen.median <= 0.04 and unseen.ninth <= 0.10)
    row("the same, from the nearest row's utilisation", say(null), "ours is better", unseen.ninth < null.ninth)
    row("the same, from a constant utilisation", say(errors(rows, leave_out(rows, rows.models, constant))), "-", True)
    for name, mine, median in (
        ("128 GPUs and more by fewer", rows.gpus >= 128, 0.03),
        ("16,384 tokens and more by fewer", rows.setup.model.sequence >= 16384, 0.03),
        ("several nodes by one", rows.gpus > 8, 0.04),
    ):
        some = rows.take(mine)
        one = errors(some, refit(some, rows.take(~mine)))
        row(name, say(one), f"median {100 * median:.0f} %", one.median <= median)
    shares = memory_shares(rows)
    told = f"{(shares <= 1).sum()} of {len(rows)} fit; nine of ten below {np.quantile(shares, 0.9):.2f} of memory"
    row("published layouts in memory", told, ">= 141", (shares <= 1).sum() >= 141)
    for gpus, model, batch in ((64, "llama-3-70b", 128), (16384, "llama-3.1-405b", 2048)):
        start = time.process_time()
        layouts = search(Setup(find_model(model), batch, GPUS["H100"], Layout()), gpus)
        took = time.process_time() - start
        row(f"search, {gpus:,} GPUs ({len(layouts):,} layouts)", f"{took:.3f} s of CPU", "< 0.2 s", took < 0.2)
    print("\nThe constants, with standard errors:")
    for name, value, error in zip(FITTED._fields, FITTED, STANDARD_ERRORS, strict=True):
        print(f"{name:<16}{value:>12.4g} ± {error:.2g}")
    off = predicted / rows.rates - 1
    print("\nThe largest errors:")
    for i in np.argsort(-np.abs(off))[:WORST]:
        why = "contradicts its source" if rows.inconsistent[i] else "memory is full" if shares[i] > TIGHT else ""
        told = f"{rows.models[i]}, {rows.setup.model.sequence[i]} tokens, {rows.gpus[i]} {rows.names[i]}"
        print(f"{told:<44}{100 * off[i]:+5.0f} %   {shares[i]:.2f} of memory   {why}")


if __name__ == "__main__":
    main()
