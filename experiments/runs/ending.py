"""How a run ended: which ranks it lost for good, whether others continued, and why losing a rank ended it."""

import algorithms
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.wording import naming, units
from experiments.wording.sentences import join_words

PLANNED = 0.999  # tolerance of the time at which a rank is lost: in older runs it is rounded


def workers(e: Experiment) -> set[int]:
    """Return the ranks that train, servers excluded."""
    return set(range(e.servers, e.ranks))


def trained_on(run: Run) -> list[str]:
    """Return a note that other workers continued without the lost ranks, or no note if none of them took another
    step.
    """
    lost, losses = run.trace.lost_ranks(), run.losses
    if run.status != "finished" or not lost:
        return []
    left = set(losses["rank"][losses["seconds"] > max(lost.values())].tolist()) & workers(run.experiment) - lost.keys()
    if not left:
        return []
    all_others = len(left) > 1 and left == workers(run.experiment) - lost.keys()
    who = f"the other {len(left)} workers" if all_others else join_words(f"rank {rank}" for rank in sorted(left))
    return [f"{who} continued without {'it' if len(lost) == 1 else 'them'}"]


def explain_stop(run: Run) -> str:
    """Return a sentence on the step and time at which the run was stopped, or "" if nobody stopped it."""
    if run.status != "cancelled":
        return ""
    if not run.summary["steps"]:
        return "Stopped before its first step had ended."
    return f"Stopped at step {units.count(run.summary['steps'])}, after {units.seconds(run.summary['seconds'])}."


def steps_taken(run: Run) -> str:
    """Return the number of steps the run took as text, such as "200 steps". If it ended early, this includes the budget
    of steps: "17 of 200 steps".
    """
    planned, taken = run.experiment.steps, run.summary["steps"]
    if planned and run.status != "finished" and taken < planned:
        return f"{units.count(taken)} of {units.count_with_noun(planned, 'step')}"
    return units.count_with_noun(planned or taken, "step")


def explain_error(run: Run) -> str:
    """Return a run's error, with ranks named by their roles. If the run was stopped, return a sentence on when that
    was.
    """
    return explain_stop(run) or naming.readable(run.experiment, run.error)


def explain_planned_loss(run: Run) -> str:
    """Return a sentence on why the run ended, if the cause is a crash that was planned in its experiment; otherwise
    "".
    """
    e, plan = run.experiment, run.experiment.crash.by_rank
    lost = run.trace.lost_ranks()
    if run.status != "failed" or not run.fatal_loss or not {run.fatal_loss[0], *lost} <= lost.keys() & plan.keys():
        return ""
    first, seconds = run.fatal_loss
    times = {rank: plan[rank][0] for rank in sorted(lost)}  # the last message of a real rank comes some time earlier
    if seconds < PLANNED * times[first] or run.summary["seconds"] < PLANNED * max(times.values()):
        return ""
    end, many = units.seconds(run.summary["seconds"]), steps_taken(run)
    names, nobody = [naming.ranks(e)[rank] for rank in times], workers(e) <= lost.keys()
    who = f"all {e.workers} workers" if nobody and e.workers > 1 else join_words(names)
    why = "nobody is left to train" if nobody else _waiting(e, set(lost))
    were = "was" if len(names) == 1 else "were"
    return f"Ended at {end}, after {many}: {who} {were} lost{_when(times, end)}, and {why}."


def _when(times: dict[int, float], end: str) -> str:
    """Return a phrase on when the last of these ranks was lost, or "" if that was the end of the run."""
    last = units.seconds(max(times.values()))
    together = len({*times.values()}) == 1
    return ("" if last == end else f" at {last}") if together else f", the last at {last}"


def _waiting(e: Experiment, lost: set[int]) -> str:
    """Return a phrase that says why the other ranks could not continue, given how the ranks of this family depend on
    each other.
    """
    it, its = ("it", "its") if len(lost) == 1 else ("them", "their")
    if servers := [naming.ranks(e)[rank] for rank in sorted(lost) if rank < e.servers]:
        return f"the workers wait for {join_words(servers) if len(servers) < len(lost) else it}"
    family = "" if e.servers else algorithms.family(e.algorithm)  # with a server, ranks depend on fewer others
    if family == "decoupled":
        return f"the modules next to {it} wait for {its} messages"
    if e.method.shares_samples:
        return "each step needs every rank, because each holds a part of the model"
    return {
        "synchronous": "each step needs a gradient of every worker",
        "averaging": f"the others cannot average their models without {it}",
        "decentralized": f"{its} neighbours wait for {it}",
    }.get(family, f"the others wait for {it}")
