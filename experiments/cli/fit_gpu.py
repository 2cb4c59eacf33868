"""`fit --gpu`: measure this machine's GPU, and write its constants for the planner to a file."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from experiments.cli import console, show
from experiments.measure.gpu_file import CONSTANTS, EXAMPLE, write_gpu
from experiments.wording import units
from theory.planner.constants import COLLECTIVES, FITTED
from theory.planner.measured import MeasuredGpu, fit_gpu
from theory.planner.setup import A100, GPUS

NO_GPU = (
    "fit --gpu: no CUDA GPU was found on this machine; run this where the GPUs are, or write the two numbers that "
    f"matter most to a file for lockstep plan --constants: {EXAMPLE}. products is the share of the 16-bit peak that "
    "large matrix products attain, memory the share of the memory's bandwidth that element-wise operations reach."
)
UNCERTAIN = 0.1  # relative standard error from which a constant should be measured again


def measure_here(peak: float | None, bandwidth: float | None, to: str | None, as_json: bool) -> int:
    """Measure this machine's GPU or, under torchrun, the GPUs of all ranks. Rank 0 prints the constants and writes them
    to the file `to`.
    """
    from cluster.real import gpus

    if not gpus.count():
        raise click.ClickException(NO_GPU)
    import torch

    from experiments.measure.gpu_times import measure_gpu, time_on_gpu, time_together

    if not torch.cuda.is_available():
        raise click.ClickException(
            f"fit --gpu: PyTorch {torch.__version__} cannot use this machine's GPU; install a CUDA build of it."
        )
    with _ranks() as (rank, ranks, local):
        found = torch.cuda.get_device_properties(torch.cuda.current_device())
        name, half, bytes_per_second = find_peaks(found.name, peak, bandwidth)
        path = Path(f"{re.sub('[^a-z0-9]+', '-', name.lower())}.toml" if to is None else to)
        if not rank:
            check_file(path)
        timings = measure_gpu("cuda", time_on_gpu, time_together)
        if rank:
            return 0
        between = local if ranks > local else 0
        measured = fit_gpu(name, half, bytes_per_second, timings, between, float(found.total_memory))
    count = f"{ranks} x {found.name}" if ranks > 1 else found.name
    measured = replace(measured, source=f"Measured by lockstep fit --gpu on {count}, PyTorch {torch.__version__}.")
    check_shares(measured)
    path.write_text(write_gpu(measured), "utf-8")
    if as_json:
        click.echo(json.dumps(asdict(measured), indent=1))
        return 0
    report(measured)
    console.say(("stored   ", console.DIM), str(path.resolve()))
    console.say(("use it   ", console.DIM), f"lockstep plan --constants {path}")
    if ranks == 1:
        each = max(2, torch.cuda.device_count())
        links = f"torchrun --nproc-per-node {each} -m lockstep fit --gpu"
        console.note(f"links were not measured; {links} measures them, too")
    return 0


def check_file(path: Path) -> None:
    """Raise ClickException if `path` cannot be written, before anything is measured. Its content is kept."""
    exists = path.exists()
    try:
        path.open("ab").close()
        if not exists:
            path.unlink()
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}; choose another --to.") from None


def check_shares(measured: MeasuredGpu) -> None:
    """Raise ClickException if operations were faster than the peaks allow: lockstep plan would refuse the file."""
    for name, peak, option in (
        ("products", measured.half, "--peak"),
        ("attention", measured.half, "--peak"),
        ("memory", measured.bandwidth, "--bandwidth"),
    ):
        if (share := getattr(measured, name) or 0.0) > 1:
            raise click.ClickException(
                f"fit --gpu: the measured rate of {name} is {share:.2f} times the peak of {peak:.4g}, so this peak is "
                f"too low; give the one in the GPU's data sheet, without sparsity, with {option}."
            )


def find_peaks(torch_name: str, peak: float | None, bandwidth: float | None) -> tuple[str, float, float]:
    """Return the planner's name of a GPU, its peak in FLOP/s and its bandwidth in bytes/s.

    Raise ClickException if the planner does not know the GPU and no peaks are given.
    """
    name = re.sub(r"^NVIDIA\s+", "", torch_name.strip())
    listed = "" if re.search("pcie|nvl", name, re.IGNORECASE) else re.search(r"\b(A100|H100|H200|B200)\b", name)
    if listed:
        name = "A100-40GB" if listed[0] == "A100" and "40GB" in name else listed[0]
        return name, peak or GPUS[name].half, bandwidth or GPUS[name].bandwidth
    if not peak or not bandwidth:
        raise click.ClickException(
            f"fit --gpu: the peaks of the {name} are not known here; give those of its data sheet, without sparsity: "
            "--peak 362e12 (16-bit FLOP/s) and --bandwidth 864e9 (bytes/s of memory)."
        )
    return name, peak, bandwidth


def report(measured: MeasuredGpu) -> None:
    """Print the constants with their standard errors, next to the planner's own values."""
    console.say((console.wrap(f"{measured.device}: the planner's constants"), console.HEAD))
    console.say()
    console.say(show.table([*_rows(measured)], words=1, keys=1))
    console.say()
    unsure = [
        name
        for name in CONSTANTS
        if measured.errors.get(name, 0.0) > UNCERTAIN * (getattr(measured, name) or float("inf"))
    ]
    if unsure:
        told = f"The standard error of {', '.join(unsure)} is above {units.share(UNCERTAIN)}; measure again."
        console.say(console.prose(told))


def _rows(measured: MeasuredGpu) -> Iterator[dict[str, str]]:
    at = GPUS.get(measured.device)
    products = FITTED.products_a100 if at and at.family == A100 else FITTED.products_h100
    published: dict[str, float] = {"products": products, "traffic": FITTED.traffic, "memory": FITTED.memory}
    published |= {"hop": FITTED.hop} | ({"link": COLLECTIVES * at.link} if at else {})
    for name in CONSTANTS:
        if (value := getattr(measured, name)) is not None:
            error = measured.errors.get(name, 0.0)
            before = published.get(name)
            yield {
                "constant": name,
                "measured": _spelled(name, value),
                "error": _spelled(name, error),
                "planner's": "" if before is None else _spelled(name, before),
            }


def _spelled(name: str, value: float) -> str:
    if name in ("link", "network"):
        return units.rate(value)
    return units.seconds(value) if name == "hop" else f"{value:.3f}"


@contextmanager
def _ranks() -> Iterator[tuple[int, int, int]]:
    """Yield (rank, number of ranks, number of ranks on this node). Under torchrun, join the other ranks first."""
    import torch
    import torch.distributed as dist

    names = {"RANK": 0, "WORLD_SIZE": 1, "LOCAL_WORLD_SIZE": 1, "LOCAL_RANK": 0}
    rank, ranks, local, own = (int(os.environ.get(name, default)) for name, default in names.items())
    torch.cuda.set_device(own)
    if ranks > 1:
        where: Any = torch.device("cuda", own)
        dist.init_process_group("nccl", device_id=where)
    try:
        yield rank, ranks, local
    finally:
        if ranks > 1:
            dist.destroy_process_group()
