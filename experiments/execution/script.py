"""Turn a ScriptExperiment into a ScriptRun: run the script on simulated machines, and keep its results."""

import math
from collections.abc import Callable

from cluster.comm import ClusterError
from cluster.event_log import EventLog, Outcome
from experiments.runs.script_run import ScriptRun, record
from experiments.specification.script import ScriptExperiment


def measure_progress(logs: list[EventLog], steps: int | None) -> tuple[int, float, float]:
    """Return the progress of a run: (step, mean of the ranks' latest losses or NaN, fraction of `steps` taken)."""
    step = max(log.step for log in logs)
    losses = [log.losses[-1][3] for log in logs if log.losses]
    loss = math.fsum(losses) / len(losses) if losses else math.nan
    return step, loss, min(1.0, max(0, step) / steps) if steps else 0.0


def run(
    experiment: ScriptExperiment,
    on_line: Callable[[int, str], None] = lambda rank, line: None,
    on_progress: Callable[[list[EventLog], float], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> ScriptRun:
    """Run the script and return its record. If the script fails, the record ends where it stopped.

    `on_line(rank, line)` gets what ranks print, `on_progress(event_logs, seconds)` how far they are in virtual time.
    `stop` ends the run early, with status "cancelled". Raise ValueError if the source is not Python, or if the script
    contains a call that starts ranks, but ends without having started any.
    """
    from cluster.torch.launch import Recorded  # with torch, which takes seconds to import
    from cluster.torch.script import run_script

    printed: list[tuple[int, str]] = []
    latest: list[EventLog] = []

    def keep_line(rank: int, line: str) -> None:
        printed.append((rank, line))
        on_line(rank, line)

    def keep_logs(event_logs: list[EventLog], seconds: float) -> None:
        latest[:] = event_logs
        if on_progress:
            on_progress(event_logs, seconds)

    try:
        recorded = run_script(
            experiment.path,
            experiment.machines,
            experiment.arguments,
            text=experiment.source,
            on_line=keep_line,
            on_progress=keep_logs,
            stop=stop,
        )
    except ClusterError as error:  # a rank blocks, or the script failed outside its ranks
        logs = latest or [EventLog(rank, lambda: 0.0) for rank in range(experiment.ranks)]
        recorded = Recorded(Outcome([None] * len(logs), logs, error), [], printed)
    return record(experiment, recorded)
