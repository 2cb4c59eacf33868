"""Judge the planner of this chapter's exercise: each of its layouts is priced with the formulas of `lockstep plan`, and
compared with the fastest layout that the exercise allows.
"""

import math
import random
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from lessons.grading.grader import SolutionError
from lessons.layouts.exercise import TARGETS
from theory.checkpoint_interval import lost_share, young_interval
from theory.planner.constants import COLLECTIVES, FITTED, FLASH3
from theory.planner.language_model import LanguageModel, find_model
from theory.planner.memory_use import TIGHT
from theory.planner.search import Found, price
from theory.planner.setup import FULL, GPUS, KEEP, OPTIMIZER, WHOLE, Layout, Setup

POINTS = {
    "it names a layout that uses all GPUs, on every cluster": 1,
    "every layout fits into memory": 4,
    "split matrices stay inside the node": 3,
    "its speed is near ours on a single node": 3,
    "its speed is near ours where the network is fast": 3,
    "its speed is near ours where the network is slow": 3,
    "it saves checkpoints neither too often nor too seldom": 3,
}
CLUSTERS = "node", "fast", "slow"  # keywords of the marks that cases count for
NUMBERS = {"data", "tensor", "pipeline", "micro_batch"}
SHARDS = {"optimizer": OPTIMIZER, "full": FULL}
MICRO_BATCHES = 1, 2, 4, 8
AMPLE = 100  # times the memory of a GPU
FEW = "judged only when at least a third of these layouts fit into memory and keep split matrices inside the node"


@dataclass(frozen=True)
class LeagueCase:
    """A model on a cluster, for which the solution chooses a layout; `kind` says which mark the case counts for."""

    kind: str
    setup: Setup
    gpus: int
    saving: float  # s
    between_failures: float  # s, of one GPU

    def arguments(self, memory: float = 1.0) -> tuple[dict, dict]:
        """Return (model, cluster), the arguments of the solution. The GPUs' memory is multiplied by `memory`."""
        model, gpu = self.setup.model, self.setup.gpu
        share = (FITTED.products_a100, FITTED.products_h100)[gpu.family]
        sizes = ("layers", "width", "heads", "kv_heads", "ffn", "vocabulary", "sequence")
        return {name: int(getattr(model, name)) for name in sizes} | {
            "batch": self.setup.batch,
            "keys": int(model.keys),
            "layer": int(model.layer_parameters),
            "parameters": int(model.parameters),
        }, {
            "gpus": self.gpus,
            "per_node": gpu.per_node,
            "memory": TIGHT * gpu.memory * memory,
            "flops": share * gpu.half,
            "attention": FLASH3[gpu.family] * gpu.half / 2,  # its scores are counted whole, and half are masked
            "knee": FITTED.traffic * share * gpu.half / gpu.bandwidth,
            "bandwidth": FITTED.memory * gpu.bandwidth,
            "link": COLLECTIVES * gpu.link,
            "port": COLLECTIVES * gpu.network / gpu.per_node,
            "hop": FITTED.hop,
            "hidden": FITTED.hidden,
            "hidden_tensor": FITTED.hidden_tensor,
            "between_failures": self.between_failures,
            "saving": self.saving,
        }

    @cached_property
    def ours(self) -> Found:
        """All layouts that the exercise allows and that fit in memory, the fastest first."""
        found = self.price([*self._layouts()])
        found = found.take(found.shares <= TIGHT)
        return found.take(np.argsort(found.time.seconds, kind="stable"))

    def _layouts(self):
        model = self.setup.model
        for tensor, pipeline in product(range(1, self.setup.gpu.per_node + 1), range(1, model.layers + 1)):
            if self.gpus % (tensor * pipeline):
                continue
            for micro_batch, shard, again in product(MICRO_BATCHES, SHARDS, (False, True)):
                at = {
                    "data": self.gpus // (tensor * pipeline), "tensor": tensor, "pipeline": pipeline,
                    "micro_batch": micro_batch, "shard": shard, "recompute": again,
                }  # fmt: skip
                if not self.refusal(at):
                    yield at

    def refusal(self, at: dict) -> str:
        """Return a message that says why a layout is not allowed; "" if it is allowed."""
        model, batch = self.setup.model, self.setup.batch
        data, tensor, pipeline = at["data"], at["tensor"], at["pipeline"]
        if data * tensor * pipeline != self.gpus:
            return f"it uses {data} x {tensor} x {pipeline} GPUs, not {self.gpus}"
        if model.heads % tensor or model.kv_heads % tensor:
            return f"{model.heads} heads and {model.kv_heads} heads of keys are not both divisible by {tensor}"
        if model.layers % pipeline:
            return f"{model.layers} layers cannot be divided evenly among {pipeline} stages"
        if batch % (data * at["micro_batch"]):
            return f"a batch of {batch} is not divisible by {data} replicas x micro-batches of {at['micro_batch']}"
        if at["shard"] == "full" and (pipeline > 1 or data == 1):
            return "full shards need at least two replicas, and no pipeline"
        return ""

    def price(self, layouts: list[dict]) -> Found:
        """Return these layouts with the step time and the memory of each."""
        columns = {
            name: np.array([at[name] for at in layouts]) for name in ("data", "tensor", "pipeline", "micro_batch")
        }
        return price(
            replace(
                self.setup,
                layout=Layout(
                    **columns,
                    sequence_parallel=columns["tensor"] > 1,
                    shard=np.array([SHARDS[at["shard"]] for at in layouts]),
                    recompute=np.array([WHOLE if at["recompute"] else KEEP for at in layouts]),
                ),
            )
        )

    def speed_without(self, name: str) -> float:
        """Return the speed of the best layout that does not use `name`, as a fraction of our best layout's. It is 0 if
        none fits.
        """
        at = self.ours.setup.layout
        others = {
            "tensor": at.tensor == 1, "pipeline": at.pipeline == 1, "shard": at.shard != FULL,
            "recompute": at.recompute == KEEP,
        }[name]  # fmt: skip
        times = self.ours.time.seconds
        return float(times[0] / times[others].min()) if others.any() else 0.0

    def lost_time(self, interval: float) -> float:
        """Return how many seconds are lost to checkpoints and repeated work for each second of useful work."""
        lost = float(lost_share(interval, self.saving, self.between_failures / self.gpus))
        return lost / (1 - lost)


def draw_model(dice: random.Random, size: str) -> LanguageModel:
    """Return a random model similar to Llama. It has about 1 to 3 ("small"), 7 to 13 ("middle") or 30 to 70 ("large")
    billion parameters.
    """
    layers, widths = {
        "small": ((16, 24, 32), (2048, 2560)),
        "middle": ((32, 40), (4096, 5120)),
        "large": ((64, 80), (6144, 8192)),
    }[size]
    width = dice.choice(widths)
    heads = width // 128
    return LanguageModel(
        dice.choice(layers), width, heads, dice.choice([8, heads]), dice.choice([11, 14]) * width // 4,
        dice.choice([32_000, 128_256]), dice.choice([2048, 4096]), gated=True, tied=False,
    )  # fmt: skip


LEAGUE = {
    "node": ("B200", 8, 8, 25, 128),  # a single node needs no fast ports, so links and ports must not be mixed up
    "fast": ("H100", 64, 8, 400, 512),
    "slow": ("A100", 128, 4, 100, 512),
}
"""The three known clusters: GPU, number of GPUs, GPUs per node, Gbit/s of each port, sequences in a step."""
MODELS = "llama-3-8b", "llama-2-13b", "llama-3-70b"
DRAWN = (
    ("node", "small", ""), ("node", "middle", "tensor"), ("node", "middle", "recompute"),
    ("fast", "small", ""), ("fast", "middle", ""), ("fast", "large", "recompute"), ("fast", "large", "shard"),
    ("slow", "small", ""), ("slow", "middle", ""), ("slow", "large", "tensor"), ("slow", "large", "pipeline"),
)  # fmt: skip
"""The cases that are drawn: cluster, model size, and the technique that every layout as fast as ours needs ("" for
none).
"""
NEEDED = 0.93  # of our speed, at most, without it


def place_cluster(name: str, gpus: int, per_node: int, gbits: float, batch: int, model) -> Setup:
    """Return the setup of a model on a cluster of GPUs, before a layout is chosen. Each GPU's network port has `gbits`
    Gbit/s.
    """
    gpu = replace(GPUS[name], per_node=per_node, network=gbits / 8 * 1e9 * per_node)
    return Setup(model, batch, gpu, Layout())


def league_cases() -> list[LeagueCase]:
    """Return nine cases: each of the three known clusters with each of the three known models."""
    return [
        LeagueCase(kind, place_cluster(*cluster, find_model(model)), cluster[1], 30.0, 2e8)
        for kind, cluster in LEAGUE.items()
        for model in MODELS
    ]


def draw_case(dice: random.Random, kind: str, size: str, needed: str = "") -> LeagueCase:
    """Draw a case: a model of this size, and a cluster of this kind on which at least one layout of the model fits.

    If `needed` names a technique, a layout without it is clearly slower.
    """
    while True:
        setup = place_cluster(
            dice.choice(["A100-40GB", "A100", "H100", "H200"]),
            gpus := 8 if kind == "node" else dice.choice([32, 64, 128]),
            8 if kind == "node" else dice.choice([2, 4, 8] if kind == "fast" else [4, 8]),
            dice.choice([100, 200]) if kind == "slow" else LEAGUE[kind][3],
            dice.choice([128, 256]) if kind == "node" else dice.choice([2, 4]) * gpus,
            draw_model(dice, size),
        )
        case = LeagueCase(kind, setup, gpus, dice.choice([20.0, 60.0, 120.0]), dice.uniform(1e8, 3e8))
        if len(case.ours) and (not needed or case.speed_without(needed) < NEEDED):
            return case


def draw_cases(dice: random.Random) -> list[LeagueCase]:
    """Return the known cases and the drawn ones in random order, so that no fixed list of answers fits."""
    cases = league_cases() + [draw_case(dice, *one) for one in DRAWN]
    dice.shuffle(cases)
    return cases


def check(solution, seed):
    """Judge a solution on cases drawn with `seed`: yield (mark, whether it is earned, what was observed)."""
    named, fits, inside, *near, saved = POINTS
    cases = draw_cases(random.Random(seed))
    with solution.attempt() as attempt:
        chosen = [_choice(attempt, case) for case in cases]
        ample = [_choice(attempt, case, AMPLE) for case in cases]
    yield named, True, f"{len(cases)} of them"
    priced = [case.price([at]) for case, at in zip(cases, chosen, strict=True)]
    shares = [float(one.shares[0]) for one in priced]
    wished = [float(case.price([at]).shares[0]) for case, at in zip(cases, ample, strict=True)]
    over = [
        f"{_spell(at)} fills {share:.0%} of {case.setup.gpu.memory / 1e9:.0f} GB".replace("%", " %")
        for case, at, share in zip(cases, chosen, shares, strict=True)
        if share > TIGHT + 1e-6
    ]
    blind = "" if max(wished) > TIGHT else "judged only when more memory would change a choice"
    told = "; ".join(over[:3]) or blind or "on every cluster"
    yield fits, not over and not blind, told
    across = [
        f"{_spell(at)} in nodes of {case.setup.gpu.per_node}"
        for case, at in zip(cases, chosen + ample, strict=False)
        if at["tensor"] > case.setup.gpu.per_node
    ]
    unsplit = "" if any(at["tensor"] > 1 for at in chosen) else "judged only when matrices are split somewhere"
    yield inside, not across and not unsplit, "; ".join(across[:3]) or unsplit or "on every cluster"
    for mark, kind in zip(near, CLUSTERS, strict=True):
        of_kind = [one for one in zip(cases, chosen, priced, strict=True) if one[0].kind == kind]
        speeds = [
            (float(case.ours.time.seconds[0] / one.time.seconds[0]), _spell(at))
            for case, at, one in of_kind
            if one.shares[0] <= TIGHT + 1e-6 and at["tensor"] <= case.setup.gpu.per_node
        ]
        worst, slowest = min(speeds, default=(0.0, ""))
        told = f"{worst:.2f} of our speed at worst, with {slowest}; at least {TARGETS['speed']} is required"
        enough = 3 * len(speeds) >= len(of_kind)
        yield mark, enough and worst >= TARGETS["speed"], told if enough else FEW
    costs = [
        case.lost_time(at["interval"]) / case.lost_time(young_interval(case.saving, case.between_failures / case.gpus))
        for case, at in zip(cases, chosen, strict=True)
    ]
    told = f"up to {max(costs):.2f} times the loss of Young's interval; at most {TARGETS['lost']} is allowed"
    yield saved, max(costs) <= TARGETS["lost"], told


def _choice(attempt, case: LeagueCase, memory: float = 1.0) -> dict:
    """Return the layout that the solution chooses for this case. The GPUs' memory is multiplied by `memory`. Raise
    SolutionError if the layout is invalid.
    """
    at = attempt.call("choose", *case.arguments(memory))
    if not isinstance(at, dict) or not at.keys() >= {*NUMBERS, "shard", "recompute", "interval"}:
        raise SolutionError(f"choose returned {str(at)[:60]}; it must be a dict with all seven entries.")
    wrong = [name for name in sorted(NUMBERS) if type(at[name]) is not int or at[name] < 1]
    if wrong:
        raise SolutionError(f"{wrong[0]} is {str(at[wrong[0]])[:20]!r}; it must be a whole number of at least 1.")
    if at["micro_batch"] not in MICRO_BATCHES:
        raise SolutionError(f"micro_batch is {at['micro_batch']}; it must be 1, 2, 4 or 8.")
    if not isinstance(at["shard"], str) or at["shard"] not in SHARDS:
        raise SolutionError(f"shard is {str(at['shard'])[:20]!r}; it must be 'optimizer' or 'full'.")
    if not isinstance(at["recompute"], bool):
        raise SolutionError(f"recompute is {str(at['recompute'])[:20]!r}; it must be True or False.")
    interval = at["interval"]
    if not isinstance(interval, int | float) or not 0 < interval < math.inf:
        raise SolutionError(f"interval is {str(interval)[:20]!r}; it must be a number of seconds above 0.")
    if said := case.refusal(at):
        raise SolutionError(f"choose returned a layout that does not work: {said}.")
    return at


def _spell(at: dict) -> str:
    again = ", recomputed" if at["recompute"] else ""
    split = " x ".join(f"{name} {at[name]}" for name in ("data", "tensor", "pipeline"))
    return f"{split}, micro-batches of {at['micro_batch']}, shards of {at['shard']}{again}"
