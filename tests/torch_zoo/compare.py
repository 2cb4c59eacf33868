"""Run programs on real processes and on simulated ranks, and compare what they leave."""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from cluster.real import processes
from cluster.torch import Simulated, simulate

FOLDER = Path(__file__).resolve().parent


def _process(rank: int, size: int, folder: str, names: Sequence[str]) -> None:
    """Run the programs on this real process, one after the other, and save what each gives."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # as torchrun sets it
    os.chdir(folder)  # whatever a program writes is deleted with it
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size)
    for name in names:
        torch.save(_result(name), Path(folder, f"{name}.{rank}"))
        dist.barrier()
    dist.destroy_process_group()


def _all(_: int, size: int, folder: str, names: Sequence[str]) -> None:
    """Import the programs, which takes seconds, and fork the processes of all ranks from this one."""
    importlib.import_module("tests.torch_zoo.programs")
    method = "fork" if processes.METHOD == "forkserver" else "spawn"
    mp.start_processes(_process, (size, folder, names), size, start_method=method)


def _program(name: str) -> Callable | None:
    from tests.torch_zoo.programs import NOT_ON_GLOO, PROGRAMS  # takes seconds, so not before one is run

    return PROGRAMS.get(name) or NOT_ON_GLOO.get(name, (None,))[0]


def _result(name: str) -> Any:
    """Return what the program gives, or the words of torch's error if gloo cannot run it."""
    from tests.torch_zoo.programs import NOT_ON_GLOO

    try:
        return _program(name)()
    except ValueError as error:
        if name not in NOT_ON_GLOO:
            raise
        return str(error)


def on_processes(size: int, names: Sequence[str]) -> dict[str, list]:
    """Return the results of each rank on real processes, by program."""
    with tempfile.TemporaryDirectory() as folder:
        processes.prepare(_all)  # where torch may have been imported already
        mp.start_processes(_all, (size, folder, names), 1, start_method=processes.METHOD)
        return {name: [torch.load(Path(folder, f"{name}.{rank}")) for rank in range(size)] for name in names}


def simulated(size: int, name: str) -> Simulated:
    """Return the run of a program, or of a tutorial, on simulated ranks. `results` are those of each rank."""
    file, *arguments = name.split()
    program = _program(name) or FOLDER / "tutorials" / f"{file}.py"
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        warnings.simplefilter("ignore")
        return simulate(program, size, args=arguments, on_line=lambda rank, line: None)


def difference(first: list, second: list) -> float:
    """Return the largest difference of a weight on any rank; 0 means the same bits."""
    pairs = [pair for ours, theirs in zip(first, second, strict=True) for pair in zip(ours, theirs, strict=True)]
    same = all(torch.equal(ours, theirs) for ours, theirs in pairs)
    return 0.0 if same else max((ours - theirs).abs().max().item() for ours, theirs in pairs)
