"""A script's run in one sentence: how long a step takes, who makes others wait, and what changed since another run."""

from cluster.script_summary import Summary, WaitFor
from experiments.runs.script_run import ScriptRun
from experiments.specification.script import ScriptExperiment
from experiments.wording import naming, units
from experiments.wording.script_summary import NO_TIME, duration, place, share_of_time
from experiments.wording.sentences import capital, join_words

WORTH = 0.03  # share of the others' time from which a rank is reported to make them wait
MOST = 0.5  # share of the waiting from which a single rank is named as its cause
LABELS = {
    "ranks": "ranks", "network": "network", "per_node": "ranks per node", "device": "device", "steps": "steps",
    "pause": "pauses", "crash": "crashes", "jitter": "jitter", "seed": "seed", "eager": "eager size", "clock": "clock",
    "arguments": "arguments",
}  # fmt: skip


def headline(run: ScriptRun) -> str:
    """Return one sentence on how the run ended, how long a step takes, and who makes others wait, and where."""
    s = run.summary
    if run.status != "finished":
        reached = units.count_with_noun(s.steps, "step") if s.steps else f"{units.seconds(s.seconds)} of virtual time"
        return f"The script {'was stopped' if run.status == 'cancelled' else 'failed'} after {reached}."
    if not s.seconds:
        return f"The script ended, and {NO_TIME}."
    what, seconds = duration(s)
    return f"{capital(what)} takes {units.seconds(seconds)}; {_waiting(s)}."


def _waiting(s: Summary) -> str:
    """Return a clause on who makes others wait, and where."""
    if s.ranks == 1:
        return "a single rank waits for nobody"
    if not s.messages:
        return "no rank sends anything, so each works alone"
    caused = s.seconds_by_culprit()
    culprit = max(caused, key=lambda rank: caused[rank], default=0)
    seconds = caused.get(culprit, 0.0)
    if seconds < WORTH * s.waits_over * (s.ranks - 1):
        return f"no rank keeps the others waiting ({share_of_time(s)})"
    time = "of the time after the first step" if s.steps > 1 else "of the time"
    where = _place([one for one in s.waits if one.culprit == culprit], seconds)
    if seconds < MOST * sum(caused.values()):
        mean = units.percent(sum(caused.values()) / s.waits_over / s.ranks)
        return f"ranks wait for one another {mean} {time}, longest for rank {culprit}, {where}"
    others = "the others" if s.ranks > 2 else f"rank {1 - culprit}"
    share = units.percent(seconds / s.waits_over / (s.ranks - 1))
    return f"rank {culprit} makes {others} wait {share} {time}, {where}"


def _place(waits: list[WaitFor], seconds: float) -> str:
    """Return a phrase that says where most of these waits are, such as "in all_reduce at line 27 of ddp.py"."""
    longest = max(waits, key=lambda one: one.seconds)
    mostly = "" if longest.seconds > (1 - WORTH) * seconds else "mostly "
    return f"{mostly}{place(longest)}"


def changes(was: ScriptExperiment, now: ScriptExperiment) -> list[str]:
    """Return phrases on how two experiments differ, such as "ranks 4 → 8" or "rank 5 four times slower"."""
    found = ["another script"] if was.name != now.name else ["the script edited"] if was.source != now.source else []
    for name, label in LABELS.items():
        before, after = (_value(getattr(one, name)) for one in (was, now))
        if before != after:
            found.append(f"{label} {before} → {after}")
    if was.slow != now.slow:
        found.append(_slow(now) or f"{join_words(f'rank {rank}' for rank in was.slow_ranks)} as fast as usual")
    return found


def _slow(e: ScriptExperiment) -> str:
    """Return the slow ranks in words, such as "rank 5 four times slower", or "" if there are none."""
    return join_words(f"rank {rank} {naming.pace(factor)}" for rank, factor in e.slow_ranks.items())


def _value(value: object) -> str:
    if isinstance(value, tuple):
        value = " ".join(value)
    return "none" if value in (None, "") else str(value)
