"""The file of a GPU's measured constants: `lockstep fit --gpu` writes it, `lockstep plan --constants` reads it.

device = "H200"

[peaks]                 # needed only for a GPU that lockstep plan does not list
half = 9.894e+14        # FLOP/s of 16-bit matrix products
bandwidth = 4.8e+12     # bytes/s of memory
memory = 1.51e+11       # bytes

[constants]             # those that were measured; all others keep their values for A100 and H100
products = 0.74         # share of the peak that large matrix products attain

[errors]                # standard errors of these, by the same names
products = 0.01
"""

import json
import math
import tomllib
from pathlib import Path
from typing import Any

from knobs import match_name
from theory.planner.measured import MeasuredGpu
from theory.planner.setup import GPUS, find_gpu

CONSTANTS = {  # name: (least, most, what it is); the least rates are above those in Gbit/s or TFLOP/s
    "products": (1e-3, 1.0, "share of the 16-bit peak that large matrix products attain"),
    "traffic": (0.0, 20.0, "memory traffic of a matrix product, as a multiple of what it must read and write"),
    "memory": (1e-3, 1.0, "share of the memory's bandwidth that memory-bound operations reach"),
    "attention": (1e-3, 1.0, "share of the 16-bit peak that FlashAttention attains on causal FLOPs"),
    "link": (1e6, 1e13, "bytes/s that a collective reaches between the GPUs of a node"),
    "network": (1e6, 1e13, "bytes/s that a collective reaches between nodes, of each GPU"),
    "hop": (0.0, 1.0, "s per hop of a ring over several nodes"),
}
PEAKS = {
    "half": (1e9, 1e18, "FLOP/s of 16-bit matrix products"),
    "bandwidth": (1e8, 1e15, "bytes/s of memory"),
    "memory": (1e8, 1e13, "bytes of memory"),
}
ERROR = 0.0, math.inf, "standard error"
EXAMPLE = 'device = "B200" and a section [constants] with products = 0.75 and memory = 0.8'
LARGEST_FILE = 100_000  # bytes


def write_gpu(measured: MeasuredGpu) -> str:
    """Return the text of a file with these constants."""
    lines = [f"# {measured.source}", f"device = {json.dumps(measured.device)}", "", "[peaks]"]
    peaks = measured.half, measured.bandwidth, measured.memory_size
    lines += [f"{name} = {value:.6g}  # {PEAKS[name][-1]}" for name, value in zip(PEAKS, peaks, strict=True)]
    lines += ["", "[constants]"]
    values = {name: value for name in CONSTANTS if (value := getattr(measured, name)) is not None}
    lines += [f"{name} = {value:.6g}  # {CONSTANTS[name][-1]}" for name, value in values.items()]
    lines += ["", "[errors]  # standard errors"]
    lines += [f"{name} = {measured.errors[name]:.2g}" for name in values if name in measured.errors]
    return "\n".join(lines) + "\n"


def read_gpu(path: str) -> MeasuredGpu:
    """Return the constants in the file at `path`. Raise ValueError if it cannot be read or is not understood."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ValueError(
            f"{path or 'a file without a name'} cannot be read: {error.strerror}; lockstep fit --gpu writes such a "
            f"file, or write {EXAMPLE}."
        ) from None
    if len(content) > LARGEST_FILE:
        raise ValueError(f"{path} has more than {LARGEST_FILE:,} bytes; lockstep fit --gpu writes about 1,000.")
    try:
        values = tomllib.loads(content.decode("utf-8-sig"))  # some editors begin a file with a byte-order mark
    except (ValueError, RecursionError):
        raise ValueError(f"{path} is not TOML; lockstep fit --gpu writes such a file, or write {EXAMPLE}.") from None
    device = values.pop("device", None)
    if not isinstance(device, str) or not device.strip():
        raise ValueError(f'{path} names no GPU; its first line should be like device = "H100".')
    peaks, constants = (
        _numbers(path, kind, values.pop(kind, {}), known)
        for kind, known in (("peaks", PEAKS), ("constants", CONSTANTS))
    )
    errors = _numbers(path, "errors", values.pop("errors", {}), dict.fromkeys(CONSTANTS, ERROR))
    if values:
        raise ValueError(f"{path} has {next(iter(values))!r}; use device, [peaks], [constants] and [errors].")
    if not constants:
        raise ValueError(
            f"{path} has no constants; add a section [constants] with at least one of {', '.join(CONSTANTS)}."
        )
    name = match_name(device, GPUS)
    if name in GPUS:
        gpu = find_gpu(name)
        known = {"half": gpu.half, "bandwidth": gpu.bandwidth, "memory": gpu.memory}
        peaks = {**known, **peaks}
    if missing := [name for name in PEAKS if name not in peaks]:
        raise ValueError(
            f"{path} is for {device!r}, which lockstep plan does not list ({', '.join(GPUS)}); add a section [peaks] "
            + "with "
            + " and ".join(f"{name} = ... ({PEAKS[name][-1]})" for name in missing)
            + "."
        )
    given: dict[str, Any] = {**constants, "errors": errors, "source": Path(path).name}
    return MeasuredGpu(name, peaks["half"], peaks["bandwidth"], peaks["memory"], **given)


def _numbers(path: str, kind: str, given: Any, known: dict[str, tuple[float, float, str]]) -> dict[str, float]:
    """Return the numbers of a table of the file. Raise ValueError for any other value."""
    if not isinstance(given, dict):
        raise ValueError(f"{path}: {kind} is {str(given)[:40]!r}; write a section [{kind}], a line for each number.")
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"{path}: [{kind}] has {name[:40]!r}; use {', '.join(known)}.")
        least, most, what = known[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            limit = f"from {least:g} to {most:g}" if most < math.inf else f"of at least {least:g}"
            raise ValueError(f"{path}: {name} in [{kind}] is {repr(value)[:40]}; write a number {limit} ({what}).")
    return {name: float(value) for name, value in given.items()}
