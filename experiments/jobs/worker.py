"""A job's own process, which runs one experiment or another job: `python -m experiments.jobs.worker [early]`.

stdin    one JSON object: experiment or job_spec, root (folder of runs), parent (process id), cpu (s), memory (bytes),
         and for an experiment wall (s), polite (s, for storing what it has when it reaches wall or cpu) and follow
         (whether to continue with the job that follows from it)
stdout   one JSON object per line:
         {"kind": "progress", "fraction", "seconds", "loss", "curve": {...}, "tried": {...}, "phase"}
         {"kind": "phase", "phase"}                           it waits for something before it continues
         {"kind": "result", "status", "error", "folder"}      the run is stored, whatever its status; the folder is ""
                                                              if it was stopped before its first step
         {"kind": "error", "error"}                           nothing was stored; the sentence says why
         {"kind": "begun", "address"}                         from a Dask worker only: this worker begins the job
         {"kind": "follows", "job_spec"}                      after a result: it continues with this job, and later
                                                              lines are about that job

SIGTERM asks it to stop: what was recorded is stored and reported as a result with status "cancelled". A run that
reaches a time limit stops in the same way, and says which limit. With `early` it is started before there is work for
it, warms up everything that is slow the first time, and waits for its spec.
"""

import atexit
import contextlib
import importlib
import json
import math
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

UNBEGUN = "stopped before it began"
AFTER = 0.3  # s for which the page that shows a run has the machine to itself, before its process continues
LOOK = 1.0  # s between two checks of how much time a run has used
NICE = 5  # a job yields to the process that serves the pages
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def limit(spec: dict[str, Any]) -> None:
    """Apply the limits to this process. Call it before any large import, and not between fork and exec."""
    for name in THREADS:
        os.environ[name] = "1"
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with the parent
        if spec.get("parent") not in (None, os.getppid()):
            sys.exit(1)  # it ended before we could ask
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if spec.get("cpu"):
            most = math.ceil(spec["cpu"] + spec.get("polite", 0))
            resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
        if spec.get("memory"):
            resource.setrlimit(resource.RLIMIT_AS, (spec["memory"], spec["memory"]))
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, 0, NICE)


class StatusWriter:
    """A writer of status lines. All other output of this process goes to stderr, so that the two do not mix."""

    def __init__(self) -> None:
        self.out = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
        os.dup2(2, 1)

    def __call__(self, kind: str, **values: Any) -> None:
        self.out.write(json.dumps({"kind": kind, **values}) + "\n")  # in one piece, because several threads may write
        self.out.flush()

    def progress(self, progress: Any) -> None:
        """Write one line that reports the progress of a run, an experiments.runs.progress.Progress."""
        self(
            "progress",
            fraction=progress.fraction,
            seconds=progress.seconds,
            loss=progress.loss if math.isfinite(progress.loss) else None,
            curve={name: _plain(column) for name, column in progress.curve.items()},
            tried={name: _plain(column) for name, column in progress.tried.items()},
            phase=progress.phase,
        )

    def part(self, fraction: float, phase: str = "") -> None:
        """Write one line that reports the progress of a job that is not a run."""
        self("progress", fraction=fraction, seconds=0.0, curve={}, tried={}, phase=phase)


def telling(report: StatusWriter) -> contextlib.AbstractContextManager:
    """Return a context that tells the pool when this process waits for a compiler."""
    from kernels import compiling

    return compiling.telling(lambda: report("phase", phase=compiling.WORDS))


@contextlib.contextmanager
def within_bound(spec: dict[str, Any]) -> Iterator[None]:
    """Return a context in which stored results are marked as cached, if the size or age of cached results is bounded.

    Room for them is made first. Raise ValueError if that is impossible. Measurements of this machine's hardware are
    never removed: other results depend on them.
    """
    from experiments.runs import cached, sealed

    if bounded := cached.is_bounded():
        cached.make_room(Path(spec["root"]))
    lasting = spec.get("job_spec", {}).get("kind") == "fit"
    with sealed.as_cached() if bounded and not lasting else contextlib.nullcontext():
        yield


def rehearse() -> None:
    """Run and store two steps of the default experiment, so that imports and kernels are loaded for the next job."""
    from experiments.jobs.spec import RECORDING
    from experiments.runs import store
    from experiments.specification.experiment import Experiment

    two_steps = Experiment.of({"steps": 2, "evaluations": 1})
    with tempfile.TemporaryDirectory() as folder:
        store.save(importlib.import_module(RECORDING).record(two_steps, lambda progress: None)[0], folder)


def watch(spec: dict[str, Any], stop: threading.Event) -> list[str]:
    """Start a thread that sets `stop` when this job reaches a time limit. Return a list that is empty until then, and
    afterwards holds the limit, such as "600 s".

    The pool or the kernel would kill it somewhat later, and what it recorded would be lost.
    """
    reached: list[str] = []
    end, used = time.monotonic() + spec["wall"], time.process_time()

    def look() -> None:
        while not stop.wait(max(0.0, min(LOOK, end - time.monotonic()))):
            if time.monotonic() >= end:
                reached.append(f"{spec['wall']:g} s")
            elif spec["cpu"] and time.process_time() - used >= spec["cpu"]:
                reached.append(f"{spec['cpu']} s of CPU time")
            if reached:
                stop.set()

    threading.Thread(target=look, daemon=True).start()
    return reached


def perform(spec: dict[str, Any], report: StatusWriter, stop: threading.Event | None = None) -> None:
    """Run the experiment or do the job of the spec, store the result and report where it is.

    A run ends early once `stop` is set; without one, SIGTERM takes its place.
    """
    if "job_spec" in spec:
        from experiments.jobs.spec import JobSpec

        try:
            folder = JobSpec(**spec["job_spec"]).perform(spec["root"], report.part)
        except KeyboardInterrupt:
            report("result", status="cancelled", error=UNBEGUN, folder="")
        else:
            report("result", status="finished", error="", folder=str(folder))
        return
    from experiments.jobs.spec import RECORDING, following
    from experiments.runs import store
    from experiments.specification.experiment import Experiment
    from experiments.wording import units

    if stop is None:
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
    reached = watch(spec, stop) if "wall" in spec else []
    experiment = Experiment.from_json(json.dumps(spec["experiment"]))
    done, recording = importlib.import_module(RECORDING).record(experiment, report.progress, stop)
    stop.set()  # nobody watches it any longer
    begun = len(done.losses["step"]) > 0
    if done.status == "cancelled" and reached:
        when = f"after {units.count_with_noun(done.summary['steps'], 'step')}" if begun else "before its first step"
        done.error = f"the limit of {reached[0]} ended it {when}; use fewer steps or workers"
    if done.status == "cancelled" and not begun:
        report("result", status="cancelled", error=done.error if reached else UNBEGUN, folder="")
        return
    folder, problem = store.save_somewhere(done, spec["root"])
    report("result", status=done.status, error=" ".join(filter(None, (done.error, problem))), folder=str(folder))
    if spec.get("follow") and (work := following(done, recording is not None)):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # it records nothing before it ends
        report("follows", job_spec=asdict(work))
        time.sleep(AFTER)
        report(
            "result",
            status="finished",
            error="",
            folder=str(work.perform(spec["root"], report.part, recording=recording)),
        )


def attempt(spec: dict[str, Any], report: StatusWriter, stop: threading.Event | None = None) -> int:
    """Do the work and return 0. If nothing could be stored, report one sentence and return 1."""
    try:
        with telling(report), within_bound(spec):
            perform(spec, report, stop)
        return 0
    except BrokenPipeError:  # the parent has ended
        return 1
    except MemoryError:
        from experiments.jobs.memory import excess

        report("error", error=f"{excess(spec['memory'])}." if spec.get("memory") else "the machine ran out of memory.")
    except (ValueError, OSError) as error:
        report("error", error=str(error.strerror or error) if isinstance(error, OSError) else str(error))
    except Exception as error:
        import traceback

        traceback.print_exc()
        report("error", error=f"{type(error).__name__}: {error}")
    return 1


def main() -> int:
    """Read the spec, apply its limits and do the work. Return 1 if nothing could be stored, else 0."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C in its terminal
    report = StatusWriter()
    try:
        if sys.argv[1:] == ["early"]:
            limit({})
            with telling(report):
                rehearse()
        if not (text := sys.stdin.read()):  # the pool has ended, or no longer needs this process
            return 0
    except BrokenPipeError:
        return 1
    spec = json.loads(text)
    limit(spec)
    return attempt(spec, report)


def _plain(column: Any) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in column.tolist()]


if __name__ == "__main__":
    code = main()
    atexit._run_exitfuncs()
    sys.stderr.flush()
    os._exit(code)  # tearing all modules down takes as long as a small run
