"""Study a pipeline schedule without a model: time it, measure it, and explain every idle slot.

    study(Plan(schedule="zb_h1", ranks=8, chunks=24, latency=0.1)).summary["makespan"]

The cost of a kind of op is for a rank's share of the model: if ranks hold several thin stages, each stage takes its
part, so that all schedules in a comparison do the same work. Costs of one stage or op are used as given. Results are
stored in columns, like those of a run, by `save` and `load`.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import math
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

import algorithms
from algorithms.parts.pipeline.ops import KINDS, Op, Overlapped, ScheduleError, check, parse
from algorithms.pipelined import pipedream_2bw
from experiments.jobs.spec import JobSpec
from knobs import Knobs, knob, make
from theory import bubbles, pipeline_memory, schedule_timing, schedules, staleness
from theory.schedules import SCHEDULES
from theory.schedules import TITLES as LITERATURE

OWN = "own"
NAMES = (*SCHEDULES, OWN)
TITLES = {**LITERATURE, OWN: "Your own schedule"}
QUICK = 6000  # number of ops that can be studied in about a tenth of a second
MOST = 60_000  # ops of one schedule
LONGEST_COSTS = 1000  # characters of other costs
LONGEST = 6000  # characters of a schedule that is typed in; one in a file may be as large as any other
NEWEST = ("systolic", "pipemare")  # their backwards read the newest weights, not those that the forward read
EXAMPLE = "0F0 0F1 0B0 0B1 0U0\n1F0 1B0 1F1 1B1 1U0"
REASONS = ("waits", "link", "over")
MOST_OPTION = 64  # largest value of a numeric option
COSTS = ("forward", "inputs", "weights", "latency")  # passed to schedules that are built for given costs
LEAST, LARGEST = 1e-6, 1e6  # bounds of a time other than 0
SETTINGS = {
    "policy": (
        "Micro-batches in flight",
        "micro-batches in flight in 1F1B: one for each rank from this one to the last (policy PA of DAPPLE), or about "
        "twice that number (PB), which hides slow links but needs more memory",
    ),
    "cap": (
        "At most in flight on a rank",
        "most micro-batches between forward and backward on a rank: fewer need less memory, but leave the rank idle",
    ),
    "recompute": (
        "Repeat forwards",
        "discard activations, and repeat each forward before its backward: less memory, more time",
    ),
    "late": (
        "Repeat only when needed",
        "repeat a forward only once its gradient has arrived: activations are stored for less time, but the rank "
        "waits longer",
    ),
    "except_last": (
        "Keep the last micro-batch",
        "do not repeat the forward of the last micro-batch, whose backward follows immediately",
    ),
    "pieces": ("Stages on each rank", "more stages on each rank make the bubble smaller, but need more messages"),
    "pipes": (
        "Pipelines each way",
        "more pipelines each way make the bubble smaller, but each rank holds more weights",
    ),
    "doubling": (
        "Two micro-batches per forward",
        "run a forward on two micro-batches at once, for backwards that take twice as long as a forward",
    ),
    "limit": (
        "Memory, relative to 1F1B",
        "memory of a rank, relative to the first rank of 1F1B: more makes the bubble smaller",
    ),
    "fused": ("Forward and backward together", "run the forward and the backward of a slot as one op"),
    "per_update": ("Micro-batches per update", "micro-batches in an update; by default as many as there are ranks"),
}
"""Label and description of each setting of schedules."""


class Plan(Knobs):
    """A schedule, its number of ranks, and its costs."""

    schedule: str = knob("1f1b", "name of the schedule; own for your own ops")
    ranks: int = knob(4, "ranks", ge=1, le=256)
    chunks: int = knob(8, "micro-batches of the mini-batch, or of the stream", ge=1, le=4096)
    options: dict[str, Any] = knob({}, "the schedule's own settings")
    own: str = knob(EXAMPLE, "ops of your own schedule, a line for each rank", lines=True, max_length=10 * MOST)
    forward: float = knob(1.0, "time of a forward (F)", gt=0, le=LARGEST)
    inputs: float = knob(1.0, "time of the gradient of the inputs (I)", ge=0, le=LARGEST)
    weights: float = knob(1.0, "time of the gradient of the weights (W); a whole backward is I and W", ge=0, le=LARGEST)
    latency: float = knob(0.0, "time of a message between ranks", ge=0, le=LARGEST)
    costs: str = knob("", "other costs", example="2F=3 0B=1.5 2F0=5 F+B=2 U=0.5", max_length=LONGEST_COSTS)

    @property
    def title(self) -> str:
        return TITLES[self.schedule]

    def key(self) -> str:
        """Return 16 hexadecimal digits that identify this plan."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    @classmethod
    def of(cls, **values: Any) -> Plan:
        """Return a plan, without settings that its schedule does not use. Raise ValueError if the plan is
        impossible.
        """
        plan = make(cls, values, "the schedule")
        if plan.schedule not in NAMES:
            raise ValueError(f"there is no schedule {plan.schedule[:60]!r}; choose one of {', '.join(NAMES)}.")
        for name in COSTS:
            if 0 < getattr(plan, name) < LEAST:
                raise ValueError(f"{name} is {getattr(plan, name):g}; it must be 0, or {LEAST:g} to {LARGEST:g}.")
        read_costs(plan.costs)
        if plan.schedule == OWN:
            return plan.model_copy(update={"options": {}, "ranks": 1, "chunks": 1, "own": _plain(plan.own)})
        known = options(plan.schedule)
        given = {name: value for name, value in plan.options.items() if name in known}
        given = {name: value for name, value in given.items() if known[name].validate(value) != known[name].default}
        return plan.model_copy(update={"own": "", "options": given})


@dataclass(frozen=True)
class Option:
    """A setting of a schedule. `kind` is bool, int, float, or a tuple of words; `default` is None if optional."""

    name: str
    kind: Any
    default: Any
    label: str
    about: str

    def validate(self, value: Any) -> Any:
        """Return the value. Raise ValueError if it is not allowed."""
        if value == self.default:
            return value
        if isinstance(self.kind, tuple):
            good, what = value in self.kind, " or ".join(self.kind)
        elif self.kind is bool:
            good, what = isinstance(value, bool), "true or false"
        else:
            good = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_OPTION
            what = f"1 to {MOST_OPTION}"
        if not good:
            raise ValueError(f"{self.name} is {str(value)[:60]!r}; it must be {what}.")
        return value


def options(name: str) -> dict[str, Option]:
    """Return the settings of a schedule, from its signature, except those fixed by its name or by the plan's costs."""
    if name == OWN:
        return {}
    call = SCHEDULES[name]
    made, decided = (call.func, call.keywords) if isinstance(call, partial) else (call, {})
    hints = get_type_hints(made)
    found = {}
    for one in _parameters(name):
        kind = hints[one.name]
        if get_origin(kind) in (Union, types.UnionType):
            kind = next(part for part in get_args(kind) if part is not type(None))
        if get_origin(kind) is Literal:
            kind = get_args(kind)
        if one.name not in decided and one.name not in COSTS:
            found[one.name] = Option(one.name, kind, one.default, *SETTINGS[one.name])
    return found


def _parameters(name: str) -> list[inspect.Parameter]:
    """Return the parameters of a schedule other than rank, number of ranks and number of micro-batches."""
    call = SCHEDULES[name]
    made = call.func if isinstance(call, partial) else call
    return list(inspect.signature(made).parameters.values())[3:]


def _arguments(plan: Plan) -> dict[str, Any]:
    """Return the arguments for the plan's schedule: options, and costs if it is built for given costs."""
    names = {one.name for one in _parameters(plan.schedule)}
    return plan.options | {name: getattr(plan, name) for name in COSTS if name in names}


def module(name: str) -> ModuleType:
    call = SCHEDULES[name]
    return sys.modules[(call.func if isinstance(call, partial) else call).__module__]


def algorithm_of(name: str) -> str:
    """Return the name of the module that defines a schedule, such as "zb_auto" for "zb_1p". The catalogue may not list
    it.
    """
    return module(name).__name__.rpartition(".")[2]


def idea(name: str) -> str:
    """Return a sentence that describes a schedule: its own description, or the first sentence of its module."""
    return schedules.VARIANTS.get(name) or algorithms.idea(module(name))


@dataclass
class Study:
    """The results of a plan, in columns.

    ops       rank, kind (index of KINDS), stage, chunk, joined, start, end, critical; rank by rank, in their order
    idle      rank, start, end, reason (index of REASONS), op and need (rows of ops, -1 for none)
    ranks     one row per rank: busy, idle, span, in_flight, held, copies, versions, delay, gap. in_flight counts
              micro-batches, held those whose activations are stored (re-materialisation drops them, W still needs
              them), both as if thin stages were whole; copies counts a rank's share of the weights; delay is -1
              without updates
    summary   plain numbers
    """

    plan: Plan
    ops: dict[str, np.ndarray]
    idle: dict[str, np.ndarray]
    ranks: dict[str, np.ndarray]
    summary: dict[str, Any]

    @property
    def chunks(self) -> int:
        return int(((self.ops["kind"] == KINDS.index("F")) & (self.ops["stage"] == 0)).sum())

    def op(self, row: int) -> str:
        """Return the op in this row as text, such as "2F0"."""
        return f"{self.ops['stage'][row]}{KINDS[self.ops['kind'][row]]}{self.ops['chunk'][row]}"

    def why(self, row: int) -> str:
        """Return a sentence on why a rank is idle in this slot."""
        op, need = self.idle["op"][row], self.idle["need"][row]
        reason = REASONS[self.idle["reason"][row]]
        if reason == "over":
            return "nothing left to do"
        on = self.ops["rank"][need]
        if reason == "link":
            return f"{self.op(op)} waits for {self.op(need)} to come over the link from rank {on}"
        return f"{self.op(op)} waits for {self.op(need)} of rank {on}"

    def text(self) -> str:
        """Return the schedule as text, one line per rank."""
        lines: list[list[str]] = [[] for _ in range(len(self.ranks["busy"]))]
        for row, (rank, joined) in enumerate(zip(self.ops["rank"], self.ops["joined"], strict=True)):
            lines[rank].append(self.op(row) + "+" * int(joined))
        return "\n".join(" ".join(words).replace("+ ", "+") for words in lines)


def size(plan: Plan) -> int:
    """Return the approximate number of ops of a plan. Raise ValueError if the plan is impossible or too large."""
    if plan.schedule == OWN:
        if (ops := len(plan.own.split())) > MOST:
            raise ValueError(f"a schedule of {ops:,} ops is too large; use at most {MOST:,} ops.")
        return ops
    ops = 2 * plan.ranks * plan.chunks  # or more
    if ops <= MOST:
        ops = sum(1 for _ in SCHEDULES[plan.schedule](0, plan.ranks, plan.chunks, **_arguments(plan))) * plan.ranks
    if ops > MOST:
        raise ValueError(
            f"{plan.schedule} has {ops:,} ops or more with {plan.chunks:,} micro-batches on {plan.ranks} ranks, but "
            f"at most {MOST:,} can be studied; use fewer micro-batches or ranks."
        )
    return ops


def study(plan: Plan) -> Study:
    """Return the Study of a plan: its times, figures and explanations. Raise ValueError if it deadlocks or takes no
    time.
    """
    size(plan)
    lists = read_own(plan.own) if plan.schedule == OWN else schedules.lists(
        plan.schedule, plan.ranks, plan.chunks, **_arguments(plan)
    )  # fmt: skip
    return time_schedule(plan, lists)


def time_schedule(plan: Plan, lists: Sequence[Sequence[Op]], stages: int = 0) -> Study:
    """Return the Study of `lists`, the ops of each rank, at the plan's costs. Raise ValueError if they deadlock or take
    no time.

    The model has `stages` stages; by default, as many as the ops mention.
    """
    stages = stages or 1 + max(op.stage for ops in lists for op in ops)
    share = len(lists) / stages  # the part of a rank's share of the model that is one stage
    times = schedule_timing.simulate(lists, _costs(plan, share), plan.latency)
    if not times.makespan:
        raise ValueError("no op takes any time; give at least one a cost above 0.")
    row: dict[Op | None, int] = {
        op: n for n, op in enumerate(op for ops in lists for op in ops)
    }  # an update listed on several ranks gets its last row
    path = bubbles.critical_path(times)
    critical = set(path)
    ops = [
        (rank, KINDS.index(op.kind), op.stage, op.chunk, type(op) is Overlapped, start, end, (rank, n) in critical)
        for rank, (mine, starts, ends) in enumerate(zip(lists, times.start, times.end, strict=True))
        for n, (op, start, end) in enumerate(zip(mine, starts, ends, strict=True))
    ]
    slots = [
        (s.rank, s.start, s.end, REASONS.index(s.reason), row.get(s.op, -1), row.get(s.need, -1))
        for s in bubbles.idle(times)
    ]
    ranks = _ranks(lists, times, plan, stages)
    return Study(
        plan=plan,
        ops=_columns(ops, "rank kind stage chunk joined start end critical", "i4 i1 i4 i4 ? f8 f8 ?"),
        idle=_columns(slots, "rank start end reason op need", "i4 f8 f8 i1 i4 i4"),
        ranks=ranks,
        summary={
            "ranks": len(lists),
            "stages": stages,
            "ops": len(ops),
            "makespan": times.makespan,
            "bubble_of_total": schedule_timing.bubble_of_total(times),
            "bubble_of_ideal": schedule_timing.bubble_of_ideal(times),
            "bubble_of_span": schedule_timing.bubble_of_span(times),
            "throughput": times.throughput,
            "idle": float(np.mean(times.idle)),
            "in_flight": float(ranks["in_flight"].max()),
            "held": float(ranks["held"].max()),
            "copies": float(ranks["copies"].max()),
            "versions": int(ranks["versions"].max()),
            "delay": int(ranks["delay"].max()),
            "gap": int(ranks["gap"].max()),
            "path_ops": sum(times.end[rank][n] > times.start[rank][n] for rank, n in path),
            "path_links": sum(a[0] != b[0] for a, b in itertools.pairwise(path)),
        },
    )


def _ranks(lists, times, plan: Plan, stages: int) -> dict[str, np.ndarray]:
    share = len(lists) / stages
    policy = None
    if plan.schedule == "pipedream_2bw":
        policy = partial(
            pipedream_2bw.version, per_update=plan.options.get("per_update") or plan.ranks, ranks=plan.ranks
        )
    read = [staleness.count(ops, stash=plan.schedule not in NEWEST, policy=policy) for ops in lists]
    rows = {
        "busy": times.busy,
        "idle": times.idle,
        "span": times.span,
        "in_flight": [share * most for most in pipeline_memory.in_flight(lists)],
        "held": pipeline_memory.peak_bytes(
            lists, pipeline_memory.Sizes([0.0] * stages, [share] * stages, [share] * stages)
        ),
        "copies": [share * sum(v.alive for v in mine.values()) for mine in read],
        "versions": [max((v.alive for v in mine.values()), default=0) for mine in read],
        "delay": [max((d for v in mine.values() for d in v.delay), default=-1) for mine in read],
        "gap": [max((g for v in mine.values() for g in v.gap), default=0) for mine in read],
    }
    return {name: np.array(column, float) for name, column in rows.items()}


# text that readers type

_COST = re.compile(rf"(\d{{0,6}})([{KINDS}](?:\+[{KINDS}])*)(\d{{0,6}})=(\S+)", re.ASCII)


def read_costs(text: str) -> dict[Any, float]:
    """Parse the costs in a text such as "2F=3 2F0=5 F+B=2.5", for `schedule_timing.simulate`. Raise ValueError if the
    text is invalid.
    """
    costs: dict[Any, float] = {}
    for word in text.replace(",", " ").split():
        match = _COST.fullmatch(word)
        stage, kind, chunk, number = match.groups() if match else ("", "", "", "")
        try:
            cost = float(number)
        except ValueError:
            cost = math.nan
        if not (cost == 0 or LEAST <= cost <= LARGEST) or (chunk and not stage) or ("+" in kind and stage):
            raise ValueError(
                f"{word[:40]!r} is not a cost; write 2F=3 for a stage, 2F0=5 for one op, U=0.5 for a kind or F+B=2 for "
                "a pair, with times of 0, or from 0.000001 to 1000000."
            )
        key = (kind, int(stage), int(chunk)) if chunk else (kind, int(stage)) if stage else kind
        costs[key] = cost
    return costs


def _plain(text: str) -> str:
    """Return a table of torch.distributed.pipelining (`_dump_csv`) as a schedule's text, and other text unchanged.

    In the table, idle slots are empty cells, and ops done together are written (1F3;1B0)OVERLAP_F_B.
    """
    return re.sub(r"\((\w+);(\w+)\)OVERLAP_F_B", r"\1+\2", text).replace(",", " ")


def read_own(text: str) -> list[list[Op]]:
    """Return the ops of each rank in a schedule's text, a line for each rank. Raise ValueError, usually a
    ScheduleError, if it is invalid.
    """
    lines = text.strip().splitlines()
    words = [word for line in lines for word in re.split(r"[\s+]+", line) if word]
    if not words:
        raise ValueError("the schedule has no ops; write a line for each rank, for example 0F0 0B0 0U0.")
    if long := next((word for word in words if len(word) > 13), None):
        line = next(rank for rank, line in enumerate(lines) if long in line)
        raise ScheduleError(f"{long[:20]!r} is not an op; write stage, kind and number, as in 2F0.", long, line)
    lists = [_read_line(rank, line) for rank, line in enumerate(lines)]
    most = max(op.stage for ops in lists for op in ops)
    if most >= len(words):
        raise ValueError(
            f"stage {most} is too high for a schedule of {len(words)} ops; number stages from 0 without gaps."
        )
    check(lists)
    return lists


def _read_line(rank: int, line: str) -> list[Op]:
    try:
        return parse(line)
    except ScheduleError as error:
        error.rank = rank
        raise


def _costs(plan: Plan, share: float) -> Mapping:
    forward, inputs, weights = (share * cost for cost in (plan.forward, plan.inputs, plan.weights))
    usual = {"F": forward, "R": forward, "I": inputs, "W": weights, "B": inputs + weights, "U": 0.0}
    given = {key: share * cost if isinstance(key, str) else cost for key, cost in read_costs(plan.costs).items()}
    return {**usual, **given}


def perform(values: dict[str, Any], root: Path, progress: Callable[[float], None]) -> Path:
    return JobSpec("study", values).keep(root, partial(save, study(Plan.of(**values))))


# as files


def save(study: Study, folder: Path) -> None:
    columns = {f"{table}.{name}": column for table in _TABLES for name, column in getattr(study, table).items()}
    np.savez_compressed(folder / "study.npz", **columns)
    told = {"plan": study.plan.model_dump(), "summary": study.summary}
    (folder / "study.json").write_text(json.dumps(told), "utf-8")


def load(folder: Path) -> Study:
    told = json.loads((folder / "study.json").read_text("utf-8"))
    tables: dict[str, dict[str, np.ndarray]] = {table: {} for table in _TABLES}
    with np.load(folder / "study.npz") as file:
        for name in file:
            table, _, column = name.partition(".")
            tables[table][column] = file[name]
    return Study(plan=Plan(**told["plan"]), summary=told["summary"], **tables)


_TABLES = ("ops", "idle", "ranks")


def _columns(rows: list[tuple], names: str, types: str) -> dict[str, np.ndarray]:
    cells = zip(*rows, strict=True) if rows else ((),) * len(names.split())
    return {name: np.array(cell, kind) for name, kind, cell in zip(names.split(), types.split(), cells, strict=True)}
