"""The planner against published throughput, and the time of its search. `python -m tests.benchmarks.planner`

Rows that leave something out fit the constants to the rest first.
"""

import time
from dataclasses import replace

import numpy as np

from tests.benchmarks.measure import row
from tests.planner_fit import fit
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
from theory.planner.setup import FULL, GPUS, KEEP, WHOLE, Layout, Setup, Software
from theory.planner.step_time import tokens_per_second

WORST = 8
LIMITED = replace(GPUS["H100"], bandwidth=2.4e12)  # torchtitan's H100, which are also held to 500 W
UNSEEN = (  # torchtitan's docs/performance.md: model, GPU, data, tensor, micro-batch, recompute, sequence, tokens/s
    ("8B, 64 A100, recomputes parts: as if all", "llama-3-8b", GPUS["A100"], 64, 1, 1, WHOLE, 8192, 2904),
    ("8B, 64 A100, recomputes parts: as if nothing", "llama-3-8b", GPUS["A100"], 64, 1, 1, KEEP, 8192, 2973),
    ("70B, 64 A100", "llama-3-70b", GPUS["A100"], 64, 1, 1, WHOLE, 8192, 331),
    ("70B, 256 H100 at 500 W, overlapped messages", "llama-3-70b", LIMITED, 32, 8, 16, WHOLE, 8192, 652.4),
    ("8B, 64 H100 at 500 W", "llama-3-8b", LIMITED, 8, 8, 12, KEEP, 8192, 4378),
    ("8B, 8 H100 at 500 W, 32,768 tokens, FP8", "llama-3-8b", LIMITED, 8, 1, 1, WHOLE, 32768, 3890),
)


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
    print("\nA source that the fit has not seen:")
    for told, name, gpu, data, tensor, size, recompute, sequence, published in UNSEEN:
        layout = Layout(data, tensor, sequence_parallel=tensor > 1, shard=FULL, micro_batch=size, recompute=recompute)
        software = Software(fp8="FP8" in told)
        model = replace(find_model(name), sequence=sequence)
        rate = float(tokens_per_second(Setup(model, data * size, gpu, layout, software)))
        print(f"{told:<48}{rate:>7,.0f} of {published:>6,} tokens/s {100 * (rate / published - 1):+5.0f} %")
    off = predicted / rows.rates - 1
    print("\nThe largest errors:")
    for i in np.argsort(-np.abs(off))[:WORST]:
        why = "contradicts its source" if rows.inconsistent[i] else "memory is full" if shares[i] > TIGHT else ""
        told = f"{rows.models[i]}, {rows.setup.model.sequence[i]} tokens, {rows.gpus[i]} {rows.names[i]}"
        print(f"{told:<44}{100 * off[i]:+5.0f} %   {shares[i]:.2f} of memory   {why}")


if __name__ == "__main__":
    main()
