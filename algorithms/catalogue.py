"""The catalogue: every algorithm, in teaching order, and every compression. One of them, one file.

Naming a module here is all the registration there is; it is imported when it is asked for.
"""

from __future__ import annotations

import difflib
import importlib
from types import ModuleType

from algorithms.algorithm import Algorithm
from algorithms.codec import Compression

CATALOGUE: tuple[str, ...] = (
    "sequential.sgd",
    "sequential.momentum",
    "sequential.nesterov",
    "sequential.adagrad",
    "sequential.rmsprop",
    "sequential.adam",
    "sequential.polyak",
    "synchronous.sync_sgd",
    "synchronous.accumulation",
    "synchronous.large_batch",
    "synchronous.rmsprop_warmup",
    "synchronous.batch_growth",
    "synchronous.noise_scale",
    "synchronous.backup",
    "synchronous.overlap",
    "synchronous.priority",
    "synchronous.delayed",
    "synchronous.zero1",
    "synchronous.zero2",
    "synchronous.zero3",
    "averaging.one_shot",
    "averaging.model_averaging",
    "averaging.natural_gradient",
    "averaging.bmuf",
    "averaging.local_sgd",
    "averaging.easgd",
    "averaging.slowmo",
    "averaging.diloco",
    "asynchronous.asgd",
    "asynchronous.downpour",
    "asynchronous.ssp",
    "asynchronous.softsync",
    "asynchronous.dynsgd",
    "asynchronous.agn",
    "asynchronous.adag",
    "asynchronous.dc_asgd",
    "asynchronous.implicit_momentum",
    "asynchronous.parzen",
    "asynchronous.project_adam",
    "shared_memory.hogwild",
    "shared_memory.hogbatch",
    "shared_memory.async_svrg",
    "decentralized.dpsgd",
    "decentralized.push_sum",
    "decentralized.gossipgrad",
    "decentralized.adpsgd",
    "decentralized.nearest_neighbour",
    "batch.sandblaster",
    "pipelined.petrowski",
    "pipelined.chen",
    "model_parallel.layer_wise",
    "model_parallel.distbelief",
    "model_parallel.hybrid",
    "model_parallel.tensor",
    "model_parallel.three_d",
    "pipelined.gpipe",
    "pipelined.dapple",
    "pipelined.interleaved",
    "pipelined.looped_bfs",
    "pipelined.chimera",
    "pipelined.zb_h1",
    "pipelined.zb_h2",
    "pipelined.zb_auto",
    "pipelined.zb_interleaved",
    "pipelined.zb_v",
    "pipelined.v_half",
    "pipelined.v_min",
    "pipelined.dualpipe",
    "pipelined.dualpipe_v",
    "pipelined.pipedream",
    "pipelined.pipedream_2bw",
    "pipelined.pipemare",
    "pipelined.spectrain",
    "pipelined.xpipe",
    "decoupled.ddg",
    "decoupled.features_replay",
    "decoupled.dni",
    "decoupled.greedy",
    "decoupled.feedback_alignment",
)

COMPRESSIONS: tuple[str, ...] = (
    *("bf16", "int8", "one_bit", "sign", "terngrad", "qsgd", "power_sgd"),
    *("top_k", "random_k", "threshold", "dgc"),
)


def names() -> tuple[str, ...]:
    """Return the short names, in teaching order."""
    return tuple(entry.split(".")[1] for entry in CATALOGUE)


def family(name: str) -> str:
    """Return the family of an algorithm, by its short name."""
    return next(entry for entry in CATALOGUE if entry.endswith("." + name)).split(".")[0]


def find(name: str) -> Algorithm:
    """Return the declaration of an algorithm, by short or full name. ValueError if unknown."""
    return module(name).ALGORITHM


def module(name: str) -> ModuleType:
    """Return the module of an algorithm, by short name ("easgd") or full ("averaging.easgd"). ValueError if unknown."""
    entry = next((entry for entry in CATALOGUE if name in (entry, entry.split(".")[1])), None)
    if entry is None:
        raise _unknown("algorithm", name, names(), f"there are {len(CATALOGUE)}; `list` names them.")
    return importlib.import_module(f"algorithms.{entry}")


def compression(name: str) -> Compression:
    """Return the declaration of a compression. ValueError if unknown."""
    return compression_module(name).COMPRESSION


def compression_module(name: str) -> ModuleType:
    """Return the module of a compression. ValueError if unknown."""
    if name not in COMPRESSIONS:
        raise _unknown("compression", name, COMPRESSIONS, f"there are none, {', '.join(COMPRESSIONS)}.")
    return importlib.import_module(f"algorithms.compression.{name}")


def idea(module: ModuleType) -> str:
    """Return the first sentence of the module's docstring: what it is, in one line."""
    return (module.__doc__ or "").strip().split("\n")[0]


def _unknown(kind: str, name: str, known: tuple[str, ...], otherwise: str) -> ValueError:
    close = difflib.get_close_matches(name, known, n=1)
    return ValueError(f"there is no {kind} {name[:60]!r}; {f'did you mean {close[0]}?' if close else otherwise}")
