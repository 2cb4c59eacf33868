"""The catalogue: every algorithm, in teaching order, and every compression. Each has its own file.

Naming a module here, with its title, is all the registration there is; it is imported when it is asked for.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Mapping
from functools import cache
from types import ModuleType

from algorithms.algorithm import Algorithm
from algorithms.codec import Compression

CATALOGUE: dict[str, str] = {
    "sequential.sgd": "SGD",
    "sequential.momentum": "SGD with momentum",
    "sequential.nesterov": "Nesterov momentum",
    "sequential.adagrad": "Adagrad",
    "sequential.rmsprop": "RMSprop",
    "sequential.adam": "Adam",
    "sequential.polyak": "Polyak averaging",
    "synchronous.sync_sgd": "Synchronous SGD",
    "synchronous.accumulation": "Gradient accumulation",
    "synchronous.large_batch": "Large-batch SGD",
    "synchronous.rmsprop_warmup": "RMSprop warm-up",
    "synchronous.batch_growth": "Batch growth",
    "synchronous.noise_scale": "Gradient noise scale",
    "synchronous.backup": "Backup workers",
    "synchronous.overlap": "Overlapped all-reduce",
    "synchronous.priority": "Priority scheduling (P3)",
    "synchronous.delayed": "Delayed SGD",
    "synchronous.zero1": "ZeRO-1",
    "synchronous.zero2": "ZeRO-2",
    "synchronous.zero3": "ZeRO-3 (FSDP)",
    "averaging.one_shot": "One-shot averaging",
    "averaging.model_averaging": "Model averaging",
    "averaging.natural_gradient": "Natural gradient (NG-SGD)",
    "averaging.bmuf": "Block momentum (BMUF)",
    "averaging.local_sgd": "Local SGD",
    "averaging.easgd": "EASGD",
    "averaging.slowmo": "SlowMo",
    "averaging.diloco": "DiLoCo",
    "asynchronous.asgd": "Asynchronous SGD",
    "asynchronous.downpour": "Downpour SGD",
    "asynchronous.ssp": "Stale-synchronous parallel (SSP)",
    "asynchronous.softsync": "n-softsync",
    "asynchronous.dynsgd": "DynSGD",
    "asynchronous.agn": "AGN",
    "asynchronous.adag": "ADAG",
    "asynchronous.dc_asgd": "DC-ASGD",
    "asynchronous.implicit_momentum": "Implicit momentum",
    "asynchronous.parzen": "ASGD with a Parzen window",
    "asynchronous.project_adam": "Project Adam",
    "shared_memory.hogwild": "Hogwild",
    "shared_memory.hogbatch": "HogBatch",
    "shared_memory.async_svrg": "AsySVRG",
    "decentralized.dpsgd": "D-PSGD",
    "decentralized.push_sum": "Stochastic gradient push (SGP)",
    "decentralized.gossipgrad": "GossipGraD",
    "decentralized.adpsgd": "AD-PSGD",
    "decentralized.nearest_neighbour": "Nearest-neighbour SGD",
    "batch.sandblaster": "Sandblaster L-BFGS",
    "pipelined.petrowski": "Pétrowski's pipeline",
    "pipelined.chen": "Chen's pipeline",
    "model_parallel.layer_wise": "Layer-wise model parallelism",
    "model_parallel.distbelief": "DistBelief",
    "model_parallel.hybrid": "Hybrid parallelism",
    "model_parallel.tensor": "Tensor parallelism",
    "model_parallel.three_d": "3D parallelism",
    "pipelined.gpipe": "GPipe",
    "pipelined.dapple": "DAPPLE (1F1B with a flush)",
    "pipelined.interleaved": "Interleaved 1F1B",
    "pipelined.looped_bfs": "Looped breadth-first",
    "pipelined.chimera": "Chimera",
    "pipelined.zb_h1": "ZB-H1",
    "pipelined.zb_h2": "ZB-H2",
    "pipelined.zb_auto": "ZB-1p and ZB-2p",
    "pipelined.zb_interleaved": "Interleaved zero bubble",
    "pipelined.zb_v": "ZB-V",
    "pipelined.v_half": "V-Half",
    "pipelined.v_min": "V-Min",
    "pipelined.dualpipe": "DualPipe",
    "pipelined.dualpipe_v": "DualPipeV",
    "pipelined.pipedream": "PipeDream",
    "pipelined.pipedream_2bw": "PipeDream-2BW",
    "pipelined.pipemare": "PipeMare",
    "pipelined.spectrain": "SpecTrain",
    "pipelined.xpipe": "XPipe",
    "decoupled.ddg": "Decoupled backprop (DDG)",
    "decoupled.features_replay": "Features replay",
    "decoupled.dni": "Decoupled neural interfaces (DNI)",
    "decoupled.greedy": "Greedy layer-wise learning",
    "decoupled.feedback_alignment": "Feedback alignment",
}
"""By family and name, its title: what the literature calls it. Pipelines and other cuts of a model come in turns: the
earliest pipelines, cuts between layers and within them, and then the pipelines that have a schedule."""

FAMILIES: dict[str, str] = {
    "sequential": "One worker",
    "synchronous": "Synchronous",
    "averaging": "Model averaging",
    "asynchronous": "Asynchronous",
    "shared_memory": "Shared memory",
    "decentralized": "Decentralized",
    "batch": "Batch methods",
    "pipelined": "Pipelines",
    "model_parallel": "Model parallelism",
    "decoupled": "Decoupled backpropagation",
    "compression": "Compression",
}
"""Title of each family, in the catalogue's order; compression, which combines with several families, comes last."""

COMPRESSIONS: dict[str, str] = {
    "bf16": "bfloat16",
    "int8": "8-bit block floating point",
    "one_bit": "1-bit SGD",
    "sign": "signSGD",
    "terngrad": "TernGrad",
    "qsgd": "QSGD",
    "power_sgd": "PowerSGD",
    "top_k": "Top-k",
    "random_k": "Random-k",
    "threshold": "Strom's threshold",
    "dgc": "Deep gradient compression",
}
"""Title of each compression, by name."""


def names() -> tuple[str, ...]:
    """Return the short names, in teaching order."""
    return tuple(entry.split(".")[1] for entry in CATALOGUE)


def family(name: str) -> str:
    """Return the family of an algorithm, by its short name."""
    return next(entry for entry in CATALOGUE if entry.endswith("." + name)).split(".")[0]


def find(name: str) -> Algorithm:
    """Return the declaration of an algorithm, by short or full name. Raise ValueError if it is unknown."""
    return module(name).ALGORITHM


@cache
def module(name: str) -> ModuleType:
    """Return the module of an algorithm named "easgd" or "averaging.easgd". Raise ValueError if it is unknown."""
    entry = next((entry for entry in CATALOGUE if name in (entry, entry.split(".")[1])), None)
    if entry is None:
        if name.casefold() in COMPRESSIONS:
            code = name.casefold()
            raise ValueError(
                f"{code} is a compression, which is used with an algorithm: sync_sgd --compression {code}."
            )
        titles = dict(zip(names(), CATALOGUE.values(), strict=True))
        raise _unknown("algorithm", name, titles, f"there are {len(CATALOGUE)}, such as sync_sgd, easgd and gpipe.")
    return importlib.import_module(f"algorithms.{entry}")


def compression(name: str) -> Compression:
    """Return the declaration of a compression. Raise ValueError if it is unknown."""
    return compression_module(name).COMPRESSION


def compression_module(name: str) -> ModuleType:
    """Return the module of a compression. Raise ValueError if it is unknown."""
    if name not in COMPRESSIONS:
        raise _unknown("compression", name, COMPRESSIONS, f"there are none, {', '.join(COMPRESSIONS)}.")
    return importlib.import_module(f"algorithms.compression.{name}")


def idea(module: ModuleType) -> str:
    """Return the first line of the module's docstring, its one-line description."""
    return (module.__doc__ or "").strip().split("\n")[0]


def _unknown(kind: str, name: str, titles: Mapping[str, str], otherwise: str) -> ValueError:
    meant = _meant(name.casefold(), titles)
    return ValueError(f"there is no {kind} {name[:60]!r}; {f'did you mean {meant}?' if meant else otherwise}")


def _meant(words: str, titles: Mapping[str, str]) -> str:
    """Return the known name closest to `words`, such as easgd for EASGD, by name or title; "" if none is close."""
    spelled = {name.casefold(): name for name in titles}
    called = {title.casefold(): name for name, title in titles.items()}
    parts: dict[str, str] = {}
    for title, name in called.items():
        for part in re.findall(r"[\w-]+", title):
            parts.setdefault(part, name)
    for known in (spelled, called, parts):
        if words in known:
            return known[words]
    close = [(known, difflib.get_close_matches(words, known, n=1)) for known in (spelled, called)]
    return next((known[found[0]] for known, found in close if found), "")
