"""Two methods with much to compute: Muon's steps, and fragments of 64 workers. `python -m tests.benchmarks.methods`

Seconds are those of the processor for whole simulated runs, the arithmetic of every worker included.
"""

from tests.benchmarks.measure import one_thread, row

one_thread()

import statistics  # noqa: E402

from experiments.specification.experiment import Experiment  # noqa: E402
from tests.benchmarks.simulator import seconds  # noqa: E402

STEPS, ROUNDS = 200, 5


def main() -> None:
    """Print the rows."""
    base = Experiment.of({"steps": STEPS, "evaluations": 1, "workers": 4})
    muon, plain = (base.change(algorithm=name) for name in ("muon", "sync_sgd"))
    for one in (muon, plain):
        seconds(one.change(steps=3))  # compile
    both = [(seconds(muon), seconds(plain)) for _ in range(ROUNDS)]
    ratio = statistics.median(ours / theirs for ours, theirs in both)
    step = 1e3 * statistics.median(ours for ours, _ in both) / STEPS / base.workers
    row("Muon's step, default MLP on 4 workers", f"{step:.2f} ms, {ratio:.1f} of sync_sgd's", "< 3x", ratio < 3)

    streaming = Experiment.of(
        {"algorithm": "streaming_diloco", "evaluations": 1, "batch": 16, "steps": 3, "workers": 4}
    )
    seconds(streaming)
    took = seconds(streaming.change(workers=64, steps=200))
    row("streaming DiLoCo, 64 workers x 200 steps", f"{took:.1f} s of CPU", "< 10 s", took < 10)


if __name__ == "__main__":
    main()
