"""Notes on a finished run: settings that had no effect or could not be obeyed in full, and uncompiled kernels."""

import math

from cluster.event_log import EventLog
from experiments.specification.experiment import LINKS, OWN, Experiment
from tracing import IDLE
from workloads.mixed_precision import FORMATS

HONEST = 0.05  # share of a run by which real ranks may be late, or without a core, before a note says so


def notes_on(experiment: Experiment, event_logs: list[EventLog]) -> list[str]:
    """Return notes on faults that came too late, settings without effect or not obeyed, and uncompiled kernels."""
    return [
        *_too_late(experiment, event_logs),
        *_back_too_late(experiment, event_logs),
        *_carried_nothing(experiment, event_logs),
        *_unused(experiment, event_logs),
        *_unobeyed(experiment, event_logs),
        *_launched(experiment, event_logs),
        *_unordered(experiment),
        *_emulated(experiment),
        *kernel_notes(),
    ]


def _too_late(experiment: Experiment, event_logs: list[EventLog]) -> list[str]:
    """Return a note for each crash or pause of a rank that had already finished."""
    lines = []
    for log in event_logs:
        lost, pauses = experiment.crash.by_rank.get(log.rank), experiment.pause.by_rank.get(log.rank, ())
        if not lost and not pauses:
            continue
        end = max((span[2] for span in log.spans), default=0.0)
        if lost and lost[0] >= end and not any(kind == IDLE and label == "lost" for kind, *_, label in log.spans):
            lines.append(_TOO_LATE.format(rank=log.rank, what="be lost", at=lost[0], end=end))
        lines += [
            _TOO_LATE.format(rank=log.rank, what="pause", at=start, end=end) for start, _ in pauses if start >= end
        ]
    return lines


def _back_too_late(experiment: Experiment, event_logs: list[EventLog]) -> list[str]:
    """Return a note for each rank that restarted too late to take another step."""
    lines = []
    for rank, (_, back) in experiment.crash.by_rank.items():
        if back == math.inf:
            continue  # it was lost for good
        log = event_logs[rank]
        returns = [end for kind, _, end, _, label in log.spans if kind == IDLE and label == "lost"]
        if returns and not any(seconds > returns[-1] for _, _, seconds, _ in log.losses):
            lines.append(_BACK_TOO_LATE.format(rank=rank, back=back, came=returns[-1]))
    return lines


def _unordered(experiment: Experiment) -> list[str]:
    """Return a note if real ranks were asked to send by priority, which they ignore."""
    asked = experiment.algorithm == "priority" and experiment.settings["order"] == "priority"
    return [_UNORDERED] if asked and experiment.cluster != "simulated" else []


def _launched(experiment: Experiment, event_logs: list[EventLog]) -> list[str]:
    """Return a note if gradients should have been replayed from a CUDA graph, but some or all were not."""
    reasons = sorted({why for log in event_logs for why in log.remarks})
    replays = any(log.replays for log in event_logs)
    if reasons:
        return [_LAUNCHED.format("some" if replays else "all", "; ".join(reasons))]
    return [_NOTHING_TO_REPLAY] if experiment.cuda_graph and not replays else []


def _emulated(experiment: Experiment) -> list[str]:
    """Return a note if real ranks emulated 16 bits in float32, so that their times are not those of 16-bit hardware."""
    real = experiment.cluster != "simulated" and experiment.device == OWN
    return [_EMULATED.format(experiment.precision)] if real and experiment.precision in FORMATS else []


def kernel_notes() -> list[str]:
    """Return a note if kernels were not compiled."""
    from kernels.compiler import COMPILES, REASON  # only here, since it loads Numba

    return [] if COMPILES else [_UNCOMPILED.format(REASON)]


def _carried_nothing(experiment: Experiment, event_logs: list[EventLog]) -> list[str]:
    """Return a note if a network was chosen but no message had a payload, as when ranks share the model's memory."""
    if not experiment.non_defaults().keys() & LINKS or any(
        nbytes for log in event_logs for _, _, nbytes, *_ in log.messages
    ):
        return []
    messages = sum(len(log.messages) for log in event_logs)
    return [_BARRIERS.format(messages) if messages else _SILENT]


def _unused(experiment: Experiment, event_logs: list[EventLog]) -> list[str]:
    """Return a note if an all-reduce was chosen for a method that uses none."""
    chosen, lines = experiment.non_defaults(), []
    if "collective" in chosen and not any(label == "all-reduce" for log in event_logs for *_, label in log.spans):
        lines.append(_NO_ALL_REDUCE)
    return lines


def _unobeyed(experiment: Experiment, event_logs: list[EventLog]) -> list[str]:
    """Return a note if a real cluster could not obey a setting in full."""
    end = max((log.mark for log in event_logs), default=0.0)
    if experiment.cluster == "simulated" or not end:
        return []
    lines = []
    if experiment.device != OWN:  # a rank that had to wait for a core has caught up unless it was late
        late = max(log.late for log in event_logs)
        lines += [_LATE.format(late, end)] if late > HONEST * end else []
    else:
        waited = sum(log.starved for log in event_logs) / (len(event_logs) * end)
        lines += [_CROWDED.format(100 * waited)] if waited > HONEST else []
    overdue = max(log.overdue for log in event_logs)
    return [*lines, _OVERDUE.format(overdue, end)] if overdue > HONEST * end else lines


_TOO_LATE = (
    "Rank {rank} had finished at {end:.4g} s, before it was due to {what} at {at:.4g} s; make the run longer, or "
    "choose an earlier time."
)
_BACK_TOO_LATE = (
    "Rank {rank} was due to restart at {back:.4g} s. It restarted at {came:.4g} s and took no further step because the "
    "run was over; make the run longer, or choose an earlier time."
)
_BARRIERS = (
    "The {} messages of this run have no payload: ranks only use them to wait for each other. They paid the network's "
    "latency, but its bandwidth had no effect."
)
_SILENT = "Nothing was sent, so the chosen network had no effect."
_NO_ALL_REDUCE = "This method uses no all-reduce, so the chosen collective had no effect."
_LATE = (
    "A rank fell {:.3g} s behind the device it emulates, in a run of {:.3g} s: this machine is too slow or too busy; "
    "use a slower device, fewer ranks, or the simulated cluster."
)
_CROWDED = (
    "Ranks waited for a CPU core during {:.0f} % of the run, because more of them computed at once than this machine "
    "has free cores. They are slower than that many machines would be; use fewer ranks, or emulate a slower device."
)
_OVERDUE = (
    "The messages of a rank arrived {:.3g} s too late in total for the network it emulates, in a run of {:.3g} s: this "
    "machine is too slow or too busy; use a slower network, fewer ranks, or the simulated cluster."
)
_UNCOMPILED = (
    "Kernels ran in NumPy, since Numba, which compiles them, cannot be imported ({}). Virtual times are the same, and "
    "losses are the same up to rounding."
)
_LAUNCHED = "cuda_graph had no effect on {} gradients, because {}. These were launched kernel by kernel."
_NOTHING_TO_REPLAY = (
    "cuda_graph had no effect: this method computes gradients of parts of the model, or fewer than three gradients of "
    "the whole model; the first two of each batch size are always launched kernel by kernel."
)
_EMULATED = (
    "Real ranks emulate {} with float32 arithmetic, so this run took longer than one in float32; the simulated cluster "
    "prices it as hardware would compute it."
)
_UNORDERED = (
    "Real ranks send in the order they are asked to, so order priority had no effect here; the simulated cluster obeys "
    "it."
)
