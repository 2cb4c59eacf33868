"""The causes of waits: as sentences, and as columns from which canvases make the same sentences.

waits 517 µs for worker 2, whose gradient takes 5 times as long as usual; with worker 2 as fast as usual, the step would
take 428 µs
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from cluster.waiting.causes import Causes
from cluster.waiting.pieces import NETWORK, QUEUE, STOPPED, UNKNOWN, WORK
from experiments.runs.record import Run
from experiments.viewer.column_codec import pack
from experiments.viewer.lanes import lane_names
from experiments.wording import units
from experiments.wording.rank_names import common_role
from experiments.wording.sentences import join_words
from tracing import COMPUTE, UPDATE, WAIT, Trace

WORDS = {
    "slow": "for {whom}, whose {what} takes {factor} times as long as usual",
    "work": "for {whom}, which is at work on {its}",
    "busy": "for {whom}, which is busy for an unknown reason",
    "network": "for the network",
    "queue": "for its turn at {whom}",
    "stopped": "for {whom}, which is {what}",
    "unknown": "for an unknown reason",
    "fill": "for its first input, which comes through {whom} (the pipeline fills)",
    "all": "waits {wait}",
    "part": "waits {wait}, {seconds} of it",
    "through": "{by}, held up by {whom}",
    "without": "; with {who} as fast as usual, the step would take {without}",
}
"""The parts of the sentences: first one for each cause, then the parts that surround it."""
HOW = tuple(WORDS)[:8]
SLOW, AT_WORK, BUSY = range(3)
FILL = HOW.index("fill")
UNUSUAL = 1.25  # factor over the usual time from which a rank is called slow
NEARLY = 0.9  # share of a wait that counts as all of it
KNOWN = 0.1  # share of all waiting from which a cause is mentioned
HARDLY = 3e-3  # share of the ranks' time below which waiting is not mentioned
LEAST = 1e-3  # share of all waiting from which a rank is counted among the others that cause it
NAMED = 8  # most ranks that are named together; of more, their number is given
STANDS_OUT = 2.0  # a rank is named if it causes at least this many times the others' average

CELLS = ("by", "culprit", "how", "caused", "back", "factor", "without", "what", "src", "bytes")


def add_causes(trace: Trace, causes: Causes) -> Trace:
    """Return the trace with the causes of its waits added as columns (CELLS, `critical`, `told`)."""
    spans, message = trace.spans, causes.message
    took, span = spans["end"] - spans["start"], causes.span
    known, got = span >= 0, message >= 0
    works = known & np.isin(spans["kind"][span], (COMPUTE, UPDATE))
    how = np.select([causes.reason == reason for reason in (NETWORK, QUEUE, STOPPED, UNKNOWN)], (3, 4, 5, 6), AT_WORK)
    how = np.where((causes.reason == WORK) & ~works, BUSY, how)
    slow = (how == AT_WORK) & (causes.factor >= UNUSUAL)
    fills = _fills(trace, message)
    none = np.zeros(0, int)
    src, size = trace.messages.get("src", none), trace.messages.get("bytes", none)
    cells = {
        "by": causes.by,
        "culprit": np.where(fills, causes.by, causes.rank),
        "how": np.where(fills, FILL, np.where(slow, SLOW, how)),
        "caused": np.where(fills, took, causes.seconds),
        "back": np.where(known & ~fills, spans["end"] - (spans["start"][span] + took[span] / 2), -1.0)
        if len(took)
        else took,
        "factor": np.where(slow & ~fills, causes.factor, 0.0),
        "without": np.where(slow & ~fills, causes.without, 0.0),
        "what": np.where(known, spans["label"][span], 0) if len(took) else how,
        "src": np.where(got, np.append(src, -1)[message], -1),
        "bytes": np.where(got, np.append(size, 0)[message], 0),
        "critical": causes.critical,
        "told": (causes.reason >= 0) | got,
    }
    return Trace(trace.ranks, {**spans, **cells}, trace.messages, trace.labels)


def _fills(trace: Trace, message: np.ndarray) -> np.ndarray:
    """Return a mask of the waits while a pipeline fills: a rank waits for its first input from a rank that has
    computed.

    The network causes part of such a wait, and the ranks that the input came through cause the rest. The reader only
    needs to know that the pipeline is filling.
    """
    spans = trace.spans
    computes = (spans["kind"] == COMPUTE) & (spans["step"] >= 0)  # what a script computes to set up does not count
    begins, ends = np.full(trace.ranks, np.inf), np.full(trace.ranks, np.inf)  # of a rank's first pass, s
    np.minimum.at(begins, spans["rank"][computes], spans["start"][computes])
    np.minimum.at(ends, spans["rank"][computes], spans["end"][computes])
    begins[np.isinf(begins)] = -np.inf  # such as a server's
    found = (spans["kind"] == WAIT) & (message >= 0) & (spans["end"] <= begins[spans["rank"]])
    if not found.any():
        return found
    at = message[found]
    found[found] = ~trace.messages["collective"][at].astype(bool) & (
        ends[trace.messages["src"][at]] <= trace.messages["sent"][at]
    )
    return found


def pack_causes(part: Trace) -> bytes:
    """Return the causes of waits in `part`, packed for a canvas. `part` has the columns of `add_causes`; the spans of
    the canvas are sorted by lane and then by start.

    Columns: critical, for each span; row, the spans with a cause or a message; and CELLS for each of these.
    """
    order = np.lexsort([part.spans["start"], part.spans["rank"]])
    row = np.flatnonzero(part.spans["told"][order])
    cells = {name: part.spans[name][order][row] for name in CELLS}
    return message(row, cells, {"critical": part.spans["critical"][order].astype("u1")})


def message(
    row: np.ndarray,
    cells: dict[str, np.ndarray],
    more: dict[str, np.ndarray] | None = None,
    words: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Return a packed message with the columns CELLS of the spans in the rows `row`, and the columns `more`. `words`
    replaces some of WORDS.
    """
    kinds = {"how": "u1", "what": "u2", **dict.fromkeys(("caused", "back", "factor", "without", "bytes"), "f4")}
    columns = {name: column.astype(kinds.get(name, "i4")) for name, column in cells.items()}
    return pack(
        {"words": WORDS | dict(words), "how": HOW, "nearly": NEARLY},
        {**columns, "row": row.astype("u4"), **(more or {})},
    )


def sentence(part: Trace, row: int, names: Sequence[str], time: Callable[[float], str] = units.seconds) -> str:
    """Return a phrase that says why the rank waits in this row of a trace with causes, such as "waits 517 µs for ...".
    Return "" for other spans.
    """
    at = {name: part.spans[name][row] for name in ("start", "end", "kind", *CELLS)}
    if at["kind"] != WAIT:
        return ""
    wait, by = at["end"] - at["start"], "" if at["by"] < 0 else names[at["by"]]
    whom = names[at["culprit"]] if at["culprit"] >= 0 else ""
    if at["how"] in (SLOW, AT_WORK, BUSY) and at["by"] != at["culprit"]:
        whom = WORDS["through"].format(by=by, whom=whom)
    filled = {
        "whom": whom,
        "who": names[at["culprit"]] if at["culprit"] >= 0 else "",
        "what": (what := part.labels[at["what"]]),
        "its": what
        if any(map(str.isdigit, what))
        else f"its {what}",  # "its gradient", but "2F13" for an op of a schedule
        "factor": units.number(float(at["factor"]), 2),
        "wait": time(float(wait)),
        "seconds": time(float(at["caused"])),
        "without": time(float(at["without"])),
    }
    around = WORDS["all" if at["caused"] >= NEARLY * wait else "part"]
    after = WORDS["without"] if at["without"] > 0 else ""
    return f"{around} {WORDS[HOW[at['how']]]}{after}".format(**filled)


def totals(run: Run) -> str:
    """Return a sentence naming the ranks that caused most of the waiting, or "" if there was hardly any."""
    return totals_of(run.trace, run.causes, lane_names(run))


def totals_of(trace: Trace, causes: Causes, names: Sequence[str], counted: np.ndarray | None = None) -> str:
    """Return the sentence of `totals` for any trace, followed by a sentence on the ranks that others still wait for at
    the end.

    `counted` is a mask of the spans that count, such as those after the first step; without it, all count.
    """
    last, waits = _last(trace, causes, names), causes.training if counted is None else causes.totals_in(counted)
    if last and waits[:, STOPPED].sum() >= NEARLY * waits.sum():  # nothing else is worth saying
        return last
    part = trace if counted is None else Trace(trace.ranks, {n: c[counted] for n, c in trace.spans.items()}, {}, ())
    return " ".join(filter(None, (_most(part, waits, names, counted is None or bool(counted.all())), last)))


def _last(trace: Trace, causes: Causes, names: Sequence[str]) -> str:
    """Return a sentence on the lost ranks that others still wait for when the run ends, or "" if there are none."""
    at_end = (causes.reason == STOPPED) & (trace.spans["end"] >= trace.seconds())
    gone = [names[rank] for rank in np.unique(causes.rank[at_end])]
    return f"At the end the others wait for {join_words(gone)}, which stopped." if gone else ""


def _rest(totals: np.ndarray, shares: Mapping[str, float], told: Sequence[str]) -> dict[str, float]:
    """Return the time in s that ranks waited for reasons not in `told`, by reason. An example is {"caused by 3 others,
    2 to 5 % each": 0.12}. A reason that is due to a single rank names that rank.
    """
    total, left = totals.sum(), totals.sum() - sum(shares[name] for name in told)
    kinds = {"caused by": "caused by {}", "in the queue": "in the queues at {}", "for": "for {} that had stopped"}
    parts = {"for the network": 0.0 if "for the network" in told else shares["for the network"]}
    untold = [name for name in shares if name not in (*told, "for the network")]
    for begins, words in kinds.items():
        of = [name for name in untold if name.startswith(f"{begins} ")]
        if not of:
            continue
        known = [name for name in of if shares[name] >= LEAST * total] or of
        named = any(name.startswith(f"{begins} ") for name in told)
        ranks = [" ".join(name.partition(",")[0].split()[-2:]) for name in known]  # of "caused by worker 3"
        whom = "others" if named else f"{common_role(ranks)}s"
        several = words.format(f"{len(known)} {whom}, {_range([shares[name] / total for name in known])} each")
        parts[known[0] if len(known) == 1 else several] = sum(shares[name] for name in of)
    parts["for an unknown reason"] = totals[:, UNKNOWN].sum()
    large = [name for name in sorted(parts, key=lambda name: -parts[name]) if parts[name] >= KNOWN * total / 2]
    left -= sum(parts[name] for name in large)
    return {name: parts[name] for name in large} | {"for the rest": max(left, 0.0)}


def _alike(shares: Mapping[str, float], names: Sequence[str], total: float) -> dict[str, float]:
    """Return the shares, with ranks of about equal shares merged, such as "caused by stages 0 to 3, 9 to 14 % each".

    With jitter, for example, a different rank is slow in every step: "caused by 16 workers, 3 to 8 % each".
    """
    shares = dict(shares)
    for begins in ("caused by", "in the queue at"):
        of = {name: shares[f"{begins} {name}"] for name in names if shares[f"{begins} {name}"] >= LEAST * total}
        if len(of) < 3 or max(of.values()) >= STANDS_OUT * (sum(of.values()) - max(of.values())) / (len(of) - 1):
            continue
        each = _range([seconds / total for seconds in of.values()])
        for name in of:
            del shares[f"{begins} {name}"]
        shares[f"{begins} {_several([*of])}, {each} each"] = sum(of.values())
    return shares


def _several(names: Sequence[str]) -> str:
    """Return the names of several ranks as text, such as "stages 0 to 3" or "workers 1, 2 and 4". If there are many
    ranks, return only their number, such as "16 workers".
    """
    role = common_role(names)
    numbers = [name.removeprefix(f"{role} ") for name in names]
    if len(names) > NAMED or not all(map(str.isdecimal, numbers)):
        return f"{len(names)} {role}s"
    first, last = int(numbers[0]), int(numbers[-1])
    in_a_row = [*map(int, numbers)] == [*range(first, last + 1)]
    return f"{role}s {f'{first} to {last}' if in_a_row else join_words(numbers)}"


def _range(parts: Sequence[float]) -> str:
    """Return the range of shares as text, such as "3 to 8 %" or "up to 8 %"."""
    least, largest = (round(100 * end) for end in (min(parts), max(parts)))
    if least == largest:
        return f"{largest} %"
    return f"{least} to {largest} %" if least else f"up to {largest} %"


def _most(trace: Trace, totals: np.ndarray, names: Sequence[str], is_whole: bool) -> str:
    """Return a sentence on how much of their time computing ranks waited and who caused most of it, or "" if they
    hardly waited.

    The share is the same as in the headline. It excludes servers, which always wait for work.
    """
    busy = trace.busy()
    total, computes = totals.sum(), busy[:, COMPUTE] > 0
    if not total or total < HARDLY * busy.sum():
        return ""
    shares = {}
    for rank in range(trace.ranks):
        shares[f"caused by {names[rank]}"] = totals[rank, WORK]
        shares[f"for {names[rank]}, which had stopped"] = totals[rank, STOPPED]
        shares[f"in the queue at {names[rank]}"] = totals[rank, QUEUE]
    shares = _alike(shares, names, total)
    shares["for the network"] = totals[:, NETWORK].sum()
    most = sorted(shares, key=lambda name: -shares[name])[:2]
    told = most if shares[most[1]] >= KNOWN * total else most[:1]
    parts = {name: shares[name] for name in told} | _rest(totals, shares, told)
    first, *others = units.percents([*parts.values()])
    more = "".join(f", {one} {name}" for name, one in zip([*parts][1:], others, strict=True) if one != "0 %")
    who = f"{common_role([name for name in names if not name.startswith('server ')])}s"
    who = who.capitalize() if is_whole else f"After the first step {who}"
    waited = units.percent(busy[computes, WAIT].sum() / busy[computes].sum())
    if shares[most[0]] < KNOWN * total:  # for an unknown reason
        return f"{who} waited {waited} of their time."
    return f"{who} waited {waited} of their time, {'all' if first == '100 %' else first} of that wait {most[0]}{more}."
