"""How much time the slow ranks of a script's run cost, compared with a stored run of the same script without them.

Estimating it from the waits was tried and rejected. Most of a delay shows up as waiting for the slow rank, so a step
without it should take the rest; but with FSDP2 on 16 ranks that gave 1.5 ms where the second run gives 1.1 ms.
"""

from dataclasses import replace
from pathlib import Path

from experiments.runs import store
from experiments.runs.script_run import ScriptRun
from experiments.wording import naming, units
from experiments.wording.script_summary import duration
from experiments.wording.sentences import join_words

SHOWN = 8  # characters of a run's name


def cost(run: ScriptRun, folder: Path) -> str:
    """Return a sentence on how much time the slow ranks of the run stored in `folder` cost.

    Return "" if the run has no slow ranks, or if the same run without them is not stored.
    """
    who, even = _without(run, folder)
    return _compared(run, who, even) if even else ""


def _compared(run: ScriptRun, who: str, even: Path) -> str:
    (what, seconds), (_, usual) = (duration(one.summary) for one in (run, store.load_script(even)))
    times = units.number(seconds / usual, 3)
    return f"{who}: {what} takes {units.seconds(seconds)} instead of {units.seconds(usual)}, {times} times as long"


def cost_or_advice(run: ScriptRun, folder: Path) -> str:
    """Return the sentence of `cost` or, if that is "", a sentence on how to find the cost. Return "" without slow
    ranks.
    """
    who, even = _without(run, folder)
    if even:
        return _compared(run, who, even)
    return (
        who
        and f"{who}. To see what that costs, run the same without --slow, then `lockstep show {folder.name[:SHOWN]}`"
    )


def _without(run: ScriptRun, folder: Path) -> tuple[str, Path | None]:
    """Return the slow ranks in words, and the folder of the stored run without them, or None if there is no such run.

    Return ("", None) if there is nothing to compare.
    """
    experiment = run.experiment
    slow = {rank: factor for rank, factor in experiment.slow_ranks.items() if factor > 1}
    _, seconds = duration(run.summary)
    if not slow or not seconds > 0 or not experiment.is_repeatable or run.status != "finished":
        return "", None
    who = join_words(f"rank {rank}, {naming.pace(factor)}" for rank, factor in slow.items())
    code = str(run.environment.get("code", "unknown"))
    return who, store.find_stored_run(replace(experiment, slow=""), code, folder.parent)
