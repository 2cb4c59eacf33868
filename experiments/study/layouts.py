"""The best layouts for training a language model on a cluster, with their times, memory and bottlenecks.

    answer = find_layouts(Request("llama-3-70b", gpus=64, batch="4M-tokens"))
    answer.found        the layouts that fit, the fastest first (theory.planner.search.Found)

Times are closed forms with constants fitted to published throughput (`theory.planner`).
"""

import json
import re
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from experiments.study.planner_errors import ERROR, SPLIT
from experiments.wording import sentences, units
from knobs import match_name
from theory.planner import language_model, search, setup
from theory.planner.constants import FITTED
from theory.planner.language_model import LanguageModel
from theory.planner.measured import MeasuredGpu
from theory.planner.memory_use import TIGHT
from theory.planner.search import Found
from theory.planner.setup import GPUS, Gpu, Layout, Setup, Software
from theory.planner.step_time import StepTime, utilisation

TOP = 10
PLATEAU = 0.05  # layouts at most this much slower than the best count as equally good: the error is as large
SLOWEST_NETWORK = 200e9  # bytes/s of a node in the data
MODELS, DEVICES = tuple(language_model.PRESETS), tuple(GPUS)
SELECTION = "Each line is the fastest variant of one way to split the model."
SHARDS = ("none", "state", "grads", "full")
RECOMPUTED = ("", "light", "scores", "full")
SLOW_WHEN_FULL = (
    "Published runs that filled more than 93 % of memory took up to a third longer than predicted, since the allocator "
    "has to free and allocate in each step."
)
MIXTURE = (
    "Outside the data: the constants were fitted to models without experts. Expect errors of a third or more. Tokens "
    "are assumed to be spread evenly over the experts, and messages to experts not to overlap with computation."
)
MEASURE = "lockstep fit --gpu measures yours."
PARTS = {
    "computation": "computing",
    "recomputation": "recomputing",
    "tensor": "tensor-parallel messages",
    "context": "context-parallel messages",
    "experts": "tokens to experts and back",
    "sharding": "gathering and reducing shards",
    "launches": "starting kernels",
    "accumulation": "accumulating gradients",
    "messages": "messages between stages",
    "bubble": "pipeline bubble",
    "gradients": "reducing gradients",
    "update": "updating weights",
}
HELD = {
    "states": "optimizer state and float32 weights",
    "weights": "16-bit weights",
    "gradients": "gradients",
    "buffers": "gathered layers",
    "activations": "activations",
    "workspace": "workspace of one layer",
    "logits": "logits",
}


@dataclass(frozen=True)
class Request:
    """The model, cluster, batch and precision to plan for. `find_layouts` raises ValueError for unknown names."""

    model: str = "llama-3-8b"  # a preset, the path of a Hugging Face config.json, or what to call `config`
    gpus: int = 64
    device: str = "H100"
    per_node: int = 8
    network: str = ""  # Gbit/s per GPU: "400G"; "" for that of the device's usual node
    batch: str = "1024"  # sequences, or tokens: "4M-tokens"
    sequence: int | None = None  # tokens; None for the model's own
    precision: str = "bf16"  # or fp8
    config: str = ""  # the text of a config.json, instead of a preset or a path
    constants: MeasuredGpu | None = None  # measured on this device


@dataclass(frozen=True)
class LayoutAnswer:
    """The layouts for a request, fastest first. `notes` are sentences to show with them."""

    request: Request
    model: LanguageModel
    device: str
    batch: int  # sequences
    found: Found  # those that fit with some memory to spare or, if there are none, that fit
    tight: Found  # faster ones that leave less
    smallest: Found  # the one that needs least memory
    tried: int
    notes: tuple[str, ...]


def find_layouts(request: Request) -> LayoutAnswer:
    """Return the layouts for this request. Raise ValueError if it is not understood or leaves GPUs without work."""
    model, notes = read_config(request.config, request.model) if request.config else read_model(request.model), []
    if request.sequence:
        model = replace(model, sequence=request.sequence)
    batch = read_batch(request.batch, model.sequence)
    per_node = min(request.per_node, request.gpus)
    if request.gpus > per_node and request.gpus % per_node:
        raise ValueError(f"{request.gpus} GPUs do not fill nodes of {per_node}; use a multiple of that.")
    measured = request.constants
    gpu = _measured_gpu(request, measured) if measured else setup.find_gpu(request.device)
    name = measured.device if measured else next(name for name in GPUS if GPUS[name] is gpu)
    each = read_network(request.network) if request.network else gpu.network / gpu.per_node
    gpu = replace(gpu, per_node=per_node, network=each * per_node)
    if request.precision not in ("bf16", "fp8"):
        raise ValueError(f"precision is {request.precision!r}; use bf16 or fp8.")
    fp8 = request.precision == "fp8"
    if fp8 and not gpu.fp8:
        raise ValueError(f"the {name} has no 8-bit matrix products; use bf16.")
    software = Software(setup.FLASH3, fp8, gradient_bytes=2 if fp8 else 4, reduce_bytes=2 if fp8 else 4)
    constants = measured.constants if measured else FITTED
    found = search.search(Setup(model, batch, gpu, Layout(), software), request.gpus, constants)
    if measured:
        notes.append(measured_text(measured, fp8))
    if name not in setup.MEASURED and not (measured and measured.products and measured.memory):
        notes.append(f"Outside the data: the constants were fitted to A100 and H100, not to the {name}. {MEASURE}")
    is_known = measured and measured.network
    if request.gpus > per_node and gpu.network < SLOWEST_NETWORK * per_node / 8 and not is_known:
        told = f"{8 * each / 1e9:g} Gbit/s per GPU"
        notes.append(f"Outside the data: no published configuration has a network as slow as {told}. {MEASURE}")
    if request.network and request.gpus <= per_node:
        notes.append("All GPUs are in one node, so the network has no effect.")
    if model.is_mixture:
        notes.append(MIXTURE)
    fits, spares = found.shares <= 1, found.shares <= TIGHT
    best = found.take(spares if spares.any() else fits)
    is_faster = found.time.seconds < best.time.seconds[0] if len(best) else fits
    tight = found.take(fits & ~spares & is_faster)
    smallest = found.take(np.argsort(found.shares, kind="stable")[:1])
    return LayoutAnswer(request, model, name, batch, best, tight, smallest, len(found), tuple(notes))


def _measured_gpu(request: Request, measured: MeasuredGpu) -> Gpu:
    """Return the requested GPU, with its measured constants. Raise ValueError if they contradict the request or lack a
    rate that it needs.
    """
    source, name = measured.source, measured.device
    if match_name(request.device, [*GPUS, name]) != name:
        raise ValueError(
            f"{source} has the constants of the {name}, not of the {request.device}; leave the device out, or run "
            f"lockstep fit --gpu on the {request.device}."
        )
    if measured.network and request.network:
        raise ValueError(f"{source} has the measured rate of the network; leave the network out, or remove that line.")
    peaks = {"half": measured.half, "bandwidth": measured.bandwidth, "memory": measured.memory_size}
    if name in GPUS:
        return measured.apply(replace(GPUS[name], **peaks))
    lacks = [
        f"{what} = ..., in bytes/s"
        for what, is_needed in (
            ("link", min(request.per_node, request.gpus) > 1 and not measured.link),
            ("network", request.gpus > request.per_node and not (measured.network or request.network)),
        )
        if is_needed
    ]
    if lacks:
        raise ValueError(
            f"{source} does not say what rate collectives reach between GPUs of the {name}; below [constants], add "
            f"{' and '.join(lacks)}, or run lockstep fit --gpu under torchrun."
        )
    return measured.apply(Gpu(setup.H100, **peaks, fp8=0.0, link=1.0, network=1.0))


def read_model(name: str) -> LanguageModel:
    """Return a preset, or the model of a Hugging Face `config.json`. Raise ValueError for anything else."""
    if not name.endswith(".json"):
        return language_model.find_model(name)
    try:
        text = Path(name).read_text("utf-8")
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise ValueError(f"{name} is not text; give a Hugging Face config.json.") from None
    return read_config(text, name)


def read_config(text: str, name: str) -> LanguageModel:
    """Return the model described by the `text` of a config.json. Raise ValueError, naming `name`, if it is invalid."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{name} is not JSON; give a Hugging Face config.json.") from None
    if not isinstance(config, dict):
        raise ValueError(f"{name} holds no settings of a model; give a Hugging Face config.json.")
    return language_model.from_config(config)


def read_batch(text: str, sequence: int) -> int:
    """Parse a batch size such as "512" or "4M-tokens" into a number of sequences. Raise ValueError for anything else.

    k and M are powers of 1000; for tokens, they are powers of 1024 if only these divide evenly into sequences.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKmM]?)(?:[- ]?(tokens?|sequences?))?\s*", text)
    if not found or float(found[1]) <= 0:
        raise ValueError(f"batch is {text[:40]!r}; write sequences, such as 512, or tokens, such as 4M-tokens.")
    number, letter, noun = float(found[1]), found[2].lower(), (found[3] or "sequences").rstrip("s")
    power = {"": 0, "k": 1, "m": 2}[letter]
    count = number * 1000**power
    if noun == "token":
        binary = number * 1024**power
        tokens = binary if count % sequence and not binary % sequence else count
        count = max(1, round(tokens / sequence))
    if count != int(count):
        raise ValueError(f"batch is {text[:40]!r}, which is not a whole number of sequences.")
    return int(count)


def read_network(text: str) -> float:
    """Parse the speed of a network port such as "400G" (Gbit/s) into bytes per second. Raise ValueError for anything
    else.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:G|Gbit/s|GbE|Gb/s)?\s*", text, re.IGNORECASE)
    if not found or float(found[1]) <= 0:
        raise ValueError(f"network is {text[:40]!r}; write the Gbit/s of each GPU's port, for example 400G.")
    return float(found[1]) * 1e9 / 8


# what is said about it


def title(answer: LayoutAnswer) -> str:
    """Return a phrase that describes the request."""
    asked, model = answer.request, answer.model
    active = f", {units.in_millions(model.active_parameters)} for each token" if model.is_mixture else ""
    return (
        f"{asked.model} ({units.in_millions(model.parameters)} parameters{active}) on "
        f"{units.count(asked.gpus)} {answer.device}, {min(asked.per_node, asked.gpus)} per node; a batch of "
        f"{units.count(answer.batch)} x {units.count(model.sequence)} = {tokens_text(answer.batch * model.sequence)}"
    )


def measured_text(measured: MeasuredGpu, fp8: bool = False) -> str:
    """Return sentences that say which constants were measured, and which come from published runs."""
    spelled = {
        "products": "{:.0%} of the peak in large matrix products",
        "memory": "{:.0%} of the bandwidth where memory is the limit",
        "attention": "{:.0%} of the peak in attention",
        "link": "{} between GPUs of a node",
        "network": "{} from each GPU to other nodes",
    }
    found = []
    for name, text in spelled.items():
        if (value := getattr(measured, name)) is not None:
            found.append(text.format(units.rate(value) if name in ("link", "network") else value).replace("%", " %"))
    found += ["the memory traffic of matrix products"] if measured.traffic is not None else []
    found += ["the latency of a hop between nodes"] if measured.hop is not None else []
    rest = [word for word, is_missing in (
        ("the rate of matrix products", measured.products is None),
        ("the rate of 8-bit matrix products", fp8),
        ("the rate of memory", measured.memory is None),
        ("the rate of attention", measured.attention is None),
    ) if is_missing]  # fmt: skip
    rest.append("how much communication overlaps with computation")
    return (
        f"Measured ({measured.source}): {sentences.join_words(found)}. From published runs on A100 and H100: "
        f"{sentences.join_words(rest)}."
    )


def best_of_each(found: Found, top: int = TOP) -> list[int]:
    """Return the index of the fastest layout for each way to split the model, at most `top` of them.

    Context and data parallelism both split the batch, so they count as one way.
    """
    at = found.setup.layout
    ways: dict[tuple, int] = {}
    for i in range(len(found)):
        ways.setdefault((at.tensor[i], at.pipeline[i], at.defers[i], at.shard[i], at.groups[i], at.expert[i]), i)
        if len(ways) == top:
            break
    return [*ways.values()]


def rows(answer: LayoutAnswer, top: int = TOP) -> list[dict[str, str]]:
    """Return the fastest layout of each way to split the model, as rows to print.

    Context and expert parallelism have a column if any of these layouts uses them.
    """
    found = answer.found
    of, at = utilisation(found.setup, found.rates), found.setup.layout
    shown = best_of_each(found, top)
    used = {name: part for name, part in (("context", at.context), ("experts", at.expert)) if (part[shown] > 1).any()}
    return [
        {
            "data": str(at.data[i]),
            "tensor": str(at.tensor[i]),
            "pipe": str(at.pipeline[i]) + f"x{at.pieces[i]}" * bool(at.pieces[i] > 1) + " zb" * bool(at.defers[i]),
            **{name: str(part[i]) for name, part in used.items()},
            "micro": str(at.micro_batch[i]),
            "shards": SHARDS[at.shard[i]] + f"/{at.groups[i]}" * bool(at.groups[i] > 1),
            "again": RECOMPUTED[at.recompute[i]],
            "step": f"{found.time.seconds[i]:#.3g}".rstrip(".") + " s",
            "tok/s": units.count(found.rates[i]),
            "MFU": units.share(of[i]),
            "memory": units.share(found.shares[i]),
        }
        for i in shown
    ]


def layout_text(found: Found, i: int) -> str:
    """Return a layout in words, such as "data 4 x tensor 4 x pipeline 4 (10 stages on each): micro-batches of 1"."""
    at = {field.name: np.asarray(getattr(found.setup.layout, field.name))[i].item() for field in fields(Layout)}
    schedule = " (zero bubble)" if at["defers"] else f" ({at['pieces']} stages on each)" * (at["pieces"] > 1)
    ways = [
        f"{name} {at[name]}" + schedule * (name == "pipeline")
        for name in ("data", "tensor", "pipeline", "context")
        if at[name] > 1
    ]
    shard = {setup.GRADIENTS: "sharded gradients", setup.FULL: "full shards"}.get(at["shard"], "")
    shard += f" in {at['groups']} groups" * (at["groups"] > 1)
    again = {setup.LIGHT: "light recomputation", setup.WHOLE: "full recomputation"}.get(at["recompute"], "")
    micro = f"micro-batches of {at['micro_batch']}"
    experts = f"experts over {at['expert']} GPUs" * (at["expert"] > 1)
    return (" x ".join(ways) or "one GPU") + ": " + ", ".join(filter(None, [micro, experts, shard, again]))


def step_parts(found: Found, i: int = 0) -> list[dict[str, str]]:
    """Return the parts of a step as rows to print, longest first."""
    parts = parts_of(found.time, i)
    whole = sum(parts.values())
    return [
        {"part of a step": PARTS[name], "time": units.seconds(part), "share": units.percent(part / whole)}
        for name, part in sorted(parts.items(), key=lambda item: -item[1])
        if part > 0.0005 * whole
    ]


def memory_parts(found: Found, i: int = 0) -> list[dict[str, str]]:
    """Return what a GPU holds as rows to print, largest first."""
    held = {name: float(np.asarray(getattr(found.memory, name))[i]) for name in HELD}
    total = float(found.memory.total[i])
    rest = total - sum(held.values())
    listed = sorted(((HELD[name], part) for name, part in held.items()), key=lambda item: -item[1])
    listed.append(("fragments, CUDA and NCCL", rest))
    return [
        {"held on a GPU": name, "size": units.size(part), "share": units.percent(part / total)}
        for name, part in listed
        if part > 0.0005 * total
    ]


def parts_of(time: StepTime, i: int) -> dict[str, float]:
    """Return the duration of each part of a step in s."""
    return {name: float(np.asarray(getattr(time, name))[i]) for name in PARTS}


def remarks(answer: LayoutAnswer, tokens: float | None = None, price: float | None = None) -> list[str]:
    """Return sentences on the best layout: how many others come close, how far predictions are off, the next best, and
    what it costs to train on `tokens`.
    """
    found, told = answer.found, list(answer.notes)
    if not len(found):
        return [*told, _too_large(answer)]
    near = int((found.time.seconds <= (1 + PLATEAU) * found.time.seconds[0]).sum())
    at = found.setup.layout
    is_split = bool(at.tensor[0] * at.pipeline[0] * at.context[0] > 1)
    told.append(
        f"{units.count(len(found))} of {units.count(answer.tried)} layouts fit, {units.count(near)} of them within "
        f"{units.share(PLATEAU)} of the best. {ERROR}{SPLIT * is_split}: small differences mean nothing."
    )
    if at.defers[0]:
        told.append(
            "The best has a zero-bubble schedule (zb). No published run here has one, so its saving is untested."
        )
    if len(best_of_each(found, 2)) > 1:
        told.append(next_best(found))
    if found.shares[0] > TIGHT:
        told.append(f"The best one fills {units.share(found.shares[0])} of memory. {SLOW_WHEN_FULL}")
    elif len(answer.tight) and (gain := 100 * (found.time.seconds[0] / answer.tight.time.seconds[0] - 1)) >= 1:
        told.append(
            f"{units.count_with_noun(len(answer.tight), 'layout')}, up to {gain:.0f} % faster, would fill more than "
            f"{units.share(TIGHT)} of memory. {SLOW_WHEN_FULL}"
        )
    if tokens:
        days = tokens / (float(found.rates[0]) * answer.request.gpus) / 86400
        hours = days * 24 * answer.request.gpus
        cost = f", {units.number(hours * price)} at {price:g} an hour" if price else ""
        told.append(f"{tokens_text(tokens)} take {units.number(days)} days: {units.count(hours)} GPU hours{cost}.")
    return told


def tokens_text(count: float) -> str:
    """Return a number of tokens as text, such as "4.19 million tokens"."""
    return f"{units.in_millions(count)} token{'s' * (count != 1)}"


def next_best(found: Found) -> str:
    """Return a sentence on why the best layout that splits the model in another way is slower."""
    other = best_of_each(found, 2)[1]
    first, total = parts_of(found.time, 0), float(found.time.seconds[0])
    changes = {name: part - first[name] for name, part in parts_of(found.time, other).items()}
    whole = sum(changes.values())
    ordered = sorted(changes, key=lambda name: -abs(changes[name]))
    named = [name for name in ordered if abs(changes[name]) > 0.1 * abs(changes[ordered[0]])][:4]
    told = [f"{_change(changes[name])} for {PARTS[name]}" for name in sorted(named, key=lambda name: -changes[name])]
    rest = whole - sum(changes[name] for name in named)
    told += [f"{_change(rest)} for the rest"] if abs(rest) > 0.05 * whole else []
    slower = 100 * (float(found.time.seconds[other]) / total - 1)
    name = layout_text(found, other)
    return f"Next comes {name}. It is {slower:.1f} % slower: {sentences.join_words(told)} in each step."


def _change(seconds: float) -> str:
    return f"{units.seconds(abs(seconds))} {'more' if seconds > 0 else 'less'}"


def _too_large(answer: LayoutAnswer) -> str:
    """Return sentences to show if no layout fits: what the smallest layout needs, and how many GPUs would be enough."""
    nearest, asked = answer.smallest, answer.request
    need = units.size(float(nearest.memory.total[0]))
    has = units.size(float(nearest.setup.gpu.memory))
    told = f"No layout fits. The smallest, {layout_text(nearest, 0)}, needs {need} on each GPU, which has {has}."
    gpus = asked.gpus
    while gpus < 2**17:
        gpus *= 2
        try:
            enough = search.search(nearest.setup, gpus)
        except ValueError:
            continue
        if (enough.shares <= 1).any():
            return f"{told} {units.count(gpus)} of these GPUs would hold it."
    return f"{told} More GPUs do not help; use GPUs with more memory."
