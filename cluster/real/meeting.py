"""Where the ranks of a launcher meet: torch's store, and the address at which the others reach this computer."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

LOOPBACK = ("localhost", "127.0.0.1")


def local_store(size: int, port: int = 0, seconds: float = 60.0) -> Any:
    """Return a store served to this computer alone, where TCPStore itself would listen on every interface.

    What is asked of it is waited for so many seconds.
    """
    from torch.distributed import TCPStore

    server = socket.create_server(("127.0.0.1", port), backlog=4096)
    port = server.getsockname()[1]
    options = {"wait_for_workers": False, "master_listen_fd": server.detach()}
    return TCPStore("127.0.0.1", port, size, True, timedelta(seconds=seconds), **options)


def shared_store(variables: Mapping[str, str], seconds: float) -> Any:
    """Return the store of all ranks; `variables` are torchrun's, which torch reads from the environment.

    Raises OSError, in a sentence, if they have not met in so many seconds.
    """
    import torch.distributed as dist

    rank, master, port = variables["RANK"], variables["MASTER_ADDR"], variables["MASTER_PORT"]
    if not master:
        raise ValueError(
            f"Open MPI started {variables['WORLD_SIZE']} ranks on several computers and does not say where rank 0 is; "
            "tell them: mpirun -x MASTER_ADDR=HOST, the first of its hosts."
        )
    served = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"  # by torchrun
    try:
        if rank == "0" and master in LOOPBACK and not served:
            return local_store(int(variables["WORLD_SIZE"]), int(port), seconds)
        return next(dist.rendezvous("env://", timeout=timedelta(seconds=seconds)))[0]
    except (OSError, dist.DistError) as error:
        why = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise ConnectionError(
            f"rank {rank} cannot meet the others at {master}, port {port} ({why}); "
            "MASTER_ADDR and MASTER_PORT name another place."
        ) from None


def is_local(variables: Mapping[str, str]) -> bool:
    """Return whether all ranks are on this computer."""
    return variables["MASTER_ADDR"] in LOOPBACK or variables.get("LOCAL_WORLD_SIZE") == variables["WORLD_SIZE"]


def own_address(master: str, exchange: Callable[[Any], list]) -> str:
    """Return the address of this computer on its route to the master's.

    `exchange(x)` returns the x of every rank: the master may know its own name as a loopback address, as on Debian, and
    then it is as the others know it.
    """
    known = exchange(socket.getaddrinfo(master, 9, type=socket.SOCK_DGRAM)[0][4][0])
    address = next((one for one in known if not ipaddress.ip_address(one).is_loopback), known[0])
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))  # sends nothing
        return probe.getsockname()[0]


def interface(address: str) -> dict[str, str]:
    """Return the environment variables that bind gloo to the interface with this address, not to the host's name."""
    import psutil

    names = [name for name, bound in psutil.net_if_addrs().items() if any(one.address == address for one in bound)]
    return {"GLOO_SOCKET_IFNAME": names[0]} if names else {}


def notice_silence(link: socket.socket, seconds: float) -> None:
    """Have `link` fail after so many seconds in which nothing came from the peer's computer, which may be cut off.

    Keepalive probes ask while nothing is on its way, TCP_USER_TIMEOUT bounds what is; TCP alone would give up after two
    hours, or a quarter of one. A peer on this computer cannot be cut off, only slow.
    """
    if ipaddress.ip_address(link.getpeername()[0]).is_loopback:
        return
    every = min(max(1, int(seconds / 4)), 32767)  # s
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    limits = {"TCP_KEEPIDLE": every, "TCP_KEEPINTVL": every, "TCP_KEEPCNT": 3}
    for name, value in {**limits, "TCP_USER_TIMEOUT": int(1000 * seconds)}.items():
        with contextlib.suppress(AttributeError):  # what this system does not have
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
