"""ZB-1p and ZB-2p search for a good order of forward and split backward passes, given how long each of them takes.

F is the forward pass of a micro-batch. I is the gradient of a stage's inputs, which the stage before needs; W, that of
its weights, may come any time before the update:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    stage 0   F0 F1 F2 F3 .. I0 W0 I1 W1 I2 W2 I3 W3
    stage 1   .. F0 F1 F2 I0 F3 I1 W0 I2 W1 I3 W2 W3
    stage 2   .. .. F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 W3        limit 2, all times equal; with limit 1 it is ZB-H1

H1 and H2 let W lag by a fixed number, which fits where F, I and W take equally long, and idle where W is quicker. Here
ranks fill their lists one op after the other, within `limit` times the memory of 1F1B's first rank (ZB-1p, ZB-2p):

    first   F, as many as fit before the first I can start, and into memory
    then    F and I in turn; before each, while it has not arrived yet, W: if the gap takes a whole one, if this rank
            would otherwise become the one that has idled longest, or if F finds no memory
    last    the W that are left

So that no rank starves, each is always one F ahead of the next one, as long as there are any. The search tries three
switches both ways (one more F at first, though I waits; no F where an I has already arrived; a W in every gap), and H1
and H2 as far as memory allows. It takes the lists whose longest span is shortest. With limit 2 and enough micro-batches
hardly any idle time is left.

`time_f`, `time_i`, `time_w` and `time_link` are the times of F, I, W and a message, in any unit.

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step. No stage holds more than limit S
micro-batches, where what only W still needs counts for less than half of one. Staleness: none.
Source: Qi et al., ICLR 2024, arXiv:2401.10241, section 3.1; reproduces the ZB-1p and ZB-2p columns of their Table 5 to
four digits.
"""

from functools import lru_cache, partial
from itertools import product

from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline.executor import pipeline
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.plan import Flush
from algorithms.parts.pipeline.settings import FlushSettings

KEPT = 32 / (34 + 5 * 8)  # share of a micro-batch's activations that I leaves for W, in a transformer's block
# 32 sbh of 34 sbh + 5 s^2 ab bytes, if s a = 8 h


class Settings(FlushSettings):
    limit: int = knob(2, "memory of a stage, as a multiple of what the first stage of 1F1B holds", ge=1, le=64)
    time_f: float = knob(1.0, "time of a forward pass, in any unit", gt=0, le=1e6)
    time_i: float = knob(1.0, "time of the backward pass for inputs, in the unit of time_f", gt=0, le=1e6)
    time_w: float = knob(1.0, "time of the backward pass for weights, in the unit of time_f", ge=0, le=1e6)
    time_link: float = knob(0.0, "time of a message between stages, in the unit of time_f", ge=0, le=1e6)


def schedule(
    rank: int,
    ranks: int,
    chunks: int,
    limit: int = 1,
    forward: float = 1.0,
    inputs: float = 1.0,
    weights: float = 1.0,
    latency: float = 0.0,
) -> list[Op]:
    """Return the ops of one mini-batch that suit these times of F, I and W, and this message latency."""
    return best(ranks, chunks, limit * ranks, forward, inputs, weights, latency)[rank]


@lru_cache(maxsize=64)  # every rank requests the same lists
def best(ranks: int, chunks: int, memory: float, f: float, i: float, w: float, latency: float) -> list[list[Op]]:
    """Return all ranks' ops in the shortest schedule found in which none holds more than `memory` micro-batches."""
    given = ranks, chunks, memory, f, i, w, latency
    warm_ups = dict.fromkeys(warm_up(*given, late) for late in (False, True))
    tried = [Lists(*given).search(*on) for on in product(warm_ups, (False, True), (False, True))]
    tried += [Lists(*given).lag(by) for by in (1, 2) if by * (ranks - 1) < memory]
    return min(tried, key=lambda one: one.span).lists


def warm_up(ranks, chunks, memory, f, i, w, latency, late):
    """Return how many F each rank does before its first I.

    A rank does more of them than the next rank, unless it does all F first.
    """
    wanted, back = [], 0.0  # when the first I of the rank after is done
    for rank in reversed(range(ranks)):
        begins, count = rank * (f + latency), 1
        if wanted:
            fitting = int((back + latency - begins) / f + 1e-9) if f else chunks
            count, back = max(fitting + late, wanted[-1] + 1), back + latency
        wanted.append(min(count, memory, chunks))
        back = max(back, begins + wanted[-1] * f) + i
    ahead = []
    for count in reversed(wanted):
        if ahead and count < chunks:
            count = min(count, ahead[-1] - 1)
        ahead.append(count)
    return tuple(ahead)


class Lists:
    """The ops of all ranks, appended one by one; each starts as early as it can."""

    def __init__(self, ranks, chunks, memory, f, i, w, latency):
        self.chunks, self.memory, self.latency = chunks, memory, latency
        self.cost = {"F": f, "I": i, "W": w}
        self.lists = [[] for _ in range(ranks)]
        self.done = {kind: [0] * ranks for kind in "FIW"}
        self.end: dict[tuple[str, int, int], float] = {}
        self.free, self.idled = [0.0] * ranks, [0.0] * ranks

    def search(self, ahead, skip, eager):
        """Do `ahead[rank]` forwards on each rank, then F and I in turn, with W in the gaps; return self."""
        self.start(ahead)
        for chunk in range(self.chunks):
            for rank in reversed(range(len(self.lists))):
                next_rank = self.done["F"][rank + 1] if rank + 1 < len(self.lists) else chunk
                fed = skip and self.done["F"][rank] > next_rank and self.arrival("I", rank) <= self.free[rank]
                if chunk and self.done["F"][rank] < self.chunks and not fed:
                    self.fill("F", rank, eager)
                    if self.has_memory(rank):
                        self.put("F", rank)
                self.fill("I", rank, eager)
                self.put("I", rank)
        return self.finish()

    def lag(self, by):
        """Schedule as H1 (`by` 1) or H2 (`by` 2) and return self: on rank r, W lags `by` * r micro-batches behind I."""
        self.start([1 + by * later for later in reversed(range(len(self.lists)))])
        for chunk in range(self.chunks):
            for rank in range(len(self.lists)):
                if chunk and self.done["F"][rank] < self.chunks:
                    self.put("F", rank)
            for rank in reversed(range(len(self.lists))):
                self.put("I", rank)
                if chunk >= by * rank:
                    self.put("W", rank)
        return self.finish()

    def start(self, ahead):
        """Append the first `ahead[rank]` F of every rank."""
        for rank, count in enumerate(ahead):
            for _ in range(min(count, self.chunks)):
                self.put("F", rank)

    def finish(self):
        """Append the remaining W and the updates; return self."""
        for rank, ops in enumerate(self.lists):
            while self.done["W"][rank] < self.chunks:
                self.put("W", rank)
            ops.append(Op("U", rank, 0))
        return self

    @property
    def span(self):
        """The longest time of any rank, counted from when its first input can arrive."""
        return max(end - rank * (self.cost["F"] + self.latency) for rank, end in enumerate(self.free))

    def arrival(self, kind, rank):
        """Return the time at which the inputs of the next op of this kind have arrived from other ranks; 0 if it has
        none.
        """
        number = self.done[kind][rank]
        if kind == "F":
            return self.end["F", rank - 1, number] + self.latency if rank else 0.0
        return self.end["I", rank + 1, number] + self.latency if rank + 1 < len(self.lists) else 0.0

    def has_memory(self, rank):
        """Return True if one more micro-batch fits into memory."""
        f, i, w = (self.done[kind][rank] for kind in "FIW")
        return f - i + KEPT * (i - w) <= self.memory - 1

    def fill(self, kind, rank, eager):
        """Put W into the gap before the next op of this kind, as long as that helps."""
        while self.done["W"][rank] < self.done["I"][rank]:
            gap = self.arrival(kind, rank) - self.free[rank]
            full = kind == "F" and not self.has_memory(rank)
            most = self.idled[rank] + gap > max(self.idled) + 1e-12
            if not full and (gap <= 1e-12 or not (gap >= self.cost["W"] - 1e-12 or most or eager)):
                return
            self.put("W", rank)

    def put(self, kind, rank):
        """Append the next op of this kind; it starts as early as it can."""
        number, start = self.done[kind][rank], self.free[rank]
        if kind != "W":
            start = max(start, self.arrival(kind, rank))
        if self.lists[rank]:
            self.idled[rank] += start - self.free[rank]
        self.lists[rank].append(Op(kind, rank, number))
        self.free[rank] = self.end[kind, rank, number] = start + self.cost[kind]
        self.done[kind][rank] += 1


def plan(workers, s):
    times = {"forward": s.time_f, "inputs": s.time_i, "weights": s.time_w, "latency": s.time_link}
    return Flush.of(schedule, workers, s.chunks, limit=s.limit, **times)


ALGORITHM = pipeline(
    schedule,
    Settings,
    plan=plan,
    schedules={"zb_1p": schedule, "zb_2p": partial(schedule, limit=2)},
    equivalences=(
        Equivalence("one stage and one micro-batch give SGD", to="sgd", settings={"chunks": 1}),
        Equivalence(
            "it adds gradients in the order of micro-batches, as DAPPLE does",
            to="dapple",
            workers=3,
            settings={"chunks": 4, "time_w": 0.5, "time_link": 0.2},
            to_settings={"chunks": 4},
        ),
    ),
)
