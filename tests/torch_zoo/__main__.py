"""The command that compares, and the one that only simulates."""

import sys
import time

from tests.torch_zoo import TUTORIALS
from tests.torch_zoo.compare import difference, on_processes, simulated
from tests.torch_zoo.programs import NOT_ON_GLOO, PROGRAMS


def compare(size: int, names: list[str]) -> None:
    """Print how far simulated ranks and processes differ, and what gloo cannot run."""
    real = on_processes(size, [name for name in names if name in PROGRAMS])
    for name in names:
        if name in real:
            apart = difference(simulated(size, name).results, real[name])
            print(f"{name:32s}{f'{apart:.1e}' if apart else 'the same bits'}", flush=True)
        else:
            print(f"{name:32s}not on gloo: {NOT_ON_GLOO[name][1]}", flush=True)


def measure(size: int, names: list[str]) -> None:
    """Print the CPU time and the virtual time of each program on simulated ranks."""
    for name in names:
        before = time.process_time()
        done = simulated(size, name)
        took = time.process_time() - before
        print(f"{name:32s}{took:8.1f} s of CPU time{done.summary.seconds:12.4g} s of virtual time", flush=True)


def main() -> None:
    """Compare, or measure with --ranks."""
    alone = sys.argv[1] == "--ranks"
    size, *names = sys.argv[1 + alone :]
    if alone:
        measure(int(size), names or [*PROGRAMS, *TUTORIALS])
    else:
        compare(int(size), names or [*PROGRAMS, *NOT_ON_GLOO])


if __name__ == "__main__":
    main()
