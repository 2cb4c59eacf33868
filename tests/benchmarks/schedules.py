"""Schedules: generated and timed, in seconds of the processor. `python -m tests.benchmarks.schedules`"""

import time

from tests.benchmarks.measure import row
from theory import schedules
from theory.schedule_timing import simulate


def seconds(stages: int, chunks: int) -> float:
    """Generate and time 1F1B."""
    start = time.process_time()
    lists = schedules.lists("1f1b", stages, chunks)
    simulate(lists, {"F": 1.0, "B": 2.0})
    return time.process_time() - start


def main() -> None:
    """Print the rows."""
    took = min(seconds(64, 256) for _ in range(5))
    row("1F1B 64 x 256 (32,768 ops) generated and timed", f"{took:.3f} s of CPU", "< 0.2 s", took < 0.2)
    took = seconds(1024, 4096)
    row("1F1B 1,024 x 4,096 (8.4 million ops)", f"{took:.1f} s of CPU", "< 30 s", took < 30)


if __name__ == "__main__":
    main()
