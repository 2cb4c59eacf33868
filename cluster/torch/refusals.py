"""What is not simulated: it either runs in another way, with a note, or raises an error that names the line."""

import contextlib
import inspect
import multiprocessing.process
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import torch
import torch.cuda
import torch.distributed as dist
import torch.distributed.launcher.api as elastic
import torch.distributed.rpc as rpc
from torch.distributed.checkpoint._async_thread_executor import _ThreadBasedAsyncCheckpointExecutor as ThreadExecutor
from torch.distributed.checkpoint._async_thread_executor import save_wrapper
from torch.utils.data import DataLoader

from cluster.comm import ClusterError
from cluster.torch.process import current, script_line
from cluster.torch.replaced import replace_names
from cluster.torch.store import Store


class NotSimulated(ClusterError):
    """Raised when a script asks for something that is not simulated. The message names the rank and line."""


def refuse_inside(what: str, instead: str, real: Any) -> Callable:
    """Return a function that raises NotSimulated inside a rank, and calls `real` elsewhere."""

    def refuse(*args: Any, **options: Any) -> Any:
        mine = current()
        if not mine:
            return real(*args, **options)
        at = script_line()
        raise NotSimulated(f"rank {mine.rank.number} {what}{f' ({at})' * bool(at)}: {instead}.")

    return refuse


def _inside(here: Any, real: Callable) -> Callable:
    """Return a function that returns `here` inside a rank, and calls `real` elsewhere."""
    return lambda *args, **options: here if current() else real(*args, **options)


def _own_store(kind: str, real: Any) -> Callable:
    def store(*args: Any, **options: Any) -> Any:
        mine = current()
        if not mine:
            return real(*args, **options)
        mine.shared.notes.add(f"a {kind} is a store without sockets or files here")
        return Store(mine.shared.values, f"{kind}:{args[:2] if kind == 'TCPStore' else args[:1]}/")

    return store


def _compile(model: Any = None, *args: Any, real: Callable = torch.compile, **options: Any) -> Any:
    if not (mine := current()):
        return real(model, *args, **options)
    mine.shared.notes.add("torch.compile does nothing here: operations are priced one by one")
    return model if model is not None else lambda function: function


def _compile_in_place(module: Any, *args: Any, real: Callable = torch.nn.Module.compile, **options: Any) -> None:
    if not (mine := current()):
        return real(module, *args, **options)
    mine.shared.notes.add("torch.compile does nothing here: operations are priced one by one")
    return None


def _load(loader: Any, *args: Any, real: Callable = DataLoader.__init__, **options: Any) -> None:
    options |= dict(zip(LOADER, args, strict=False))
    if mine := current():
        options["pin_memory"] = False  # `_pin` does nothing either; torch would warn that there is no GPU
    if mine and options.get("num_workers"):
        mine.shared.notes.add("DataLoader workers: each rank loads its own data, in zero simulated time")
        names = "num_workers", "prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"
        options = {name: value for name, value in options.items() if name not in names}
    real(loader, **options)


LOADER = list(inspect.signature(DataLoader.__init__).parameters)[1:]


def _pin(tensor: torch.Tensor, *args: Any, real: Callable = torch.Tensor.pin_memory, **options: Any) -> torch.Tensor:
    return tensor if current() else real(tensor, *args, **options)


def _save_at_once(executor: Any, state: Any, real: Callable = ThreadExecutor.execute_save, **options: Any) -> Future:
    if not (mine := current()):
        return real(executor, state, **options)
    mine.shared.notes.add("async_save saves before it returns: a rank has no other threads here")
    future: Future = Future()
    future.set_result(save_wrapper(state, **options))
    return future


CUDA = "simulated ranks compute on the CPU; choose the device by torch.cuda.is_available(), which is False here"
PROCESSES = (
    "a rank is not a separate process here, so it cannot start others; start ranks with mp.spawn, or with --ranks"
)
RPC = "remote calls are not simulated; use send and recv, or collectives"


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """During a run, let ranks use only what is simulated."""
    stores = {kind: _own_store(kind, getattr(dist, kind)) for kind in ("TCPStore", "FileStore", "HashStore")}
    cuda = torch.cuda
    process = multiprocessing.process.BaseProcess
    with (
        replace_names(dist, **stores),
        replace_names(torch, compile=_compile),
        replace_names(torch.nn.Module, compile=_compile_in_place),
        replace_names(DataLoader, __init__=_load),
        replace_names(
            cuda,
            is_available=_inside(False, cuda.is_available),
            device_count=_inside(0, cuda.device_count),
            _lazy_init=refuse_inside("asks for CUDA", CUDA, cuda._lazy_init),
            set_device=refuse_inside("asks for CUDA", CUDA, cuda.set_device),
        ),
        replace_names(cuda.device, __init__=refuse_inside("asks for CUDA", CUDA, cuda.device.__init__)),
        replace_names(cuda.Stream, __new__=refuse_inside("asks for CUDA", CUDA, cuda.Stream.__new__)),
        replace_names(cuda.Event, __new__=refuse_inside("asks for CUDA", CUDA, cuda.Event.__new__)),
        replace_names(torch.Tensor, pin_memory=_pin),
        replace_names(
            rpc,
            init_rpc=refuse_inside("uses torch.distributed.rpc", RPC, getattr(rpc, "init_rpc", None)),
        ),
        replace_names(ThreadExecutor, execute_save=_save_at_once),
        replace_names(os, fork=refuse_inside("calls os.fork", PROCESSES, getattr(os, "fork", None))),
        replace_names(elastic, launch_agent=refuse_inside("starts processes", PROCESSES, elastic.launch_agent)),
        replace_names(process, start=refuse_inside("starts a process", PROCESSES, process.start)),
    ):
        yield
