"""A sweep: one run for every combination of values of some settings."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from experiments.execution.run import check, run
from experiments.jobs.pool import Pool
from experiments.runs import cached, store
from experiments.runs.progress import Progress
from experiments.runs.record import Run, RunOutcome
from experiments.runs.scaling import batch_per_worker
from experiments.runs.summary import code_version
from experiments.specification.experiment import Experiment

MAX_RUNS = 10_000  # limit for one sweep
LOOK = 0.05  # s between two looks at the pool
AHEAD = 2  # jobs that wait in the pool, so that no process waits for one
OnProgress = Callable[[int, int, Progress | None], None]
"""Called with the number of finished runs, the number of all runs, and the current run's progress, or None if several
run at once.
"""


class Ended(NamedTuple):
    """A run of a sweep that has ended, with its index `place` in the grid and its folder. If it had to be stored
    outside the folder of runs, `trouble` is a sentence on why.
    """

    place: int
    outcome: RunOutcome
    folder: Path
    trouble: str = ""


def grid(
    experiment: Experiment,
    axes: Mapping[str, Iterable[Any]],
    global_batch: int | None = None,
    points: Sequence[Mapping[str, Any]] = ({},),
) -> list[Experiment]:
    """Return an experiment for every combination of the axes' values with the settings of every point. No experiment
    appears twice, even if values are repeated or mean the same.

    A `global_batch` is divided evenly among workers. Raise ValueError, before anything runs, if one of them cannot run,
    or if an axis has no effect in any of them.
    """
    combinations = [
        {**dict(zip(axes, values, strict=True)), **point} for values in product(*axes.values()) for point in points
    ]
    if len(combinations) > MAX_RUNS:
        raise ValueError(f"this sweep would have {len(combinations):,} runs; use at most {MAX_RUNS:,}.")
    if global_batch:
        if "batch" in axes:
            raise ValueError(f"batch: global_batch={global_batch} already sets it; use one of them.")
        for combination in combinations:
            combination["batch"] = batch_per_worker(experiment.change(**combination), global_batch)
    experiments = [experiment.change(**combination) for combination in combinations]
    read = {name for one in experiments for name in one.in_force()}
    for one, combination in zip(experiments, combinations, strict=True):
        one.refuse_idle({name: value for name, value in combination.items() if name not in read})
        check(one)
    return [*{one.key(): one for one in experiments}.values()]


def sweep(
    experiment: Experiment,
    on_progress: OnProgress | None = None,
    stop: Any = None,
    **axes: Iterable[Any],
) -> list[Run]:
    """Return the runs of every combination of settings. `sweep(easgd, workers=(1, 2, 4), period=(1, 10))` makes six
    runs.

    `on_progress(number, count, progress)` is called during each run. After `stop`, return the runs done so far, the
    last of them "cancelled".
    """
    return list(run_sweep(grid(experiment, axes), on_progress, stop))


def run_sweep(
    experiments: Sequence[Experiment], on_progress: OnProgress | None = None, stop: Any = None
) -> Iterator[Run]:
    """Yield the runs of a grid, one after the other."""
    for number, one in enumerate(experiments):
        done = run(one, on_progress and partial(on_progress, number, len(experiments)), stop)
        yield done
        if done.status == "cancelled":
            return


def stored_sweep(
    experiments: Sequence[Experiment],
    root: str | Path,
    on_progress: OnProgress | None = None,
    stop: Any = None,
    pool: Pool | None = None,
) -> Iterator[Ended]:
    """Yield the runs of a grid as they end, each stored below `root`. Runs that are stored already come first.

    The others run one after the other, or several at a time in the `pool`, and only they count for `on_progress`. After
    `stop` no more begin, and those under way are yielded with what they recorded.
    """
    missing, code = [], code_version()
    for place, one in enumerate(experiments):
        if folder := store.find_stored_run(one, code, root):
            yield Ended(place, store.outcome(folder), folder)
        else:
            missing.append(place)
    if pool:
        yield from _in_pool({place: experiments[place] for place in missing}, pool, on_progress, stop)
        return
    some = run_sweep([experiments[place] for place in missing], on_progress, stop)
    for place, done in zip(missing, some, strict=False):
        yield Ended(place, done.outcome, *store.save_somewhere(done, root))


def _in_pool(
    missing: Mapping[int, Experiment],
    pool: Pool,
    on_progress: OnProgress | None,
    stop: Any,
) -> Iterator[Ended]:
    """Yield these runs as they end in the pool. Raise ValueError if one of them could not run at all."""
    waiting, ended, stopped = [*missing], 0, False
    running: dict[int, str] = {}  # place -> job
    while waiting or running:
        while waiting and not stopped and len(running) < pool.capacity + AHEAD:
            place = waiting.pop(0)
            running[place] = pool.submit(f"sweep/{place}", missing[place])
        if stop and stop() and not stopped:
            stopped, waiting = True, []
            for job in running.values():
                pool.cancel(job)
        for place, job in [*running.items()]:
            state = pool.state(job)
            if not state.active:
                del running[place]
                ended += 1
                if state.folder:
                    cached.keep(state.folder)  # it is the user's own, and no reader's
                    trouble = "" if state.folder.parent == pool.root else state.message
                    yield Ended(place, store.outcome(state.folder), state.folder, trouble)
                elif not stopped:
                    raise ValueError(f"{missing[place].command()}: {state.message}")
            pool.touch(f"sweep/{place}")
        if on_progress:
            on_progress(ended, len(missing), None)
        time.sleep(LOOK)
