"""Where ranks started by a launcher meet: torch's store, and the address at which others reach this computer."""

import contextlib
import ipaddress
import os
import socket
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

LOOPBACK = ("localhost", "127.0.0.1")


def local_store(size: int, port: int = 0, seconds: float = 60.0) -> Any:
    """Return a TCPStore that listens on the loopback interface only; by default, TCPStore listens on all interfaces.

    Requests to it time out after `seconds`.
    """
    from torch.distributed import TCPStore

    server = socket.create_server(("127.0.0.1", port), backlog=4096)
    port = server.getsockname()[1]
    options = {"wait_for_workers": False, "master_listen_fd": server.detach()}
    return TCPStore("127.0.0.1", port, size, True, timedelta(seconds=seconds), **options)


def shared_store(variables: Mapping[str, str], seconds: float) -> Any:
    """Return the store that all ranks share. `variables` are torchrun's, which torch reads from the environment.

    Raise OSError if this rank cannot reach the store within `seconds`, and ValueError if MASTER_ADDR is "".
    """
    rank, master, port = variables["RANK"], variables["MASTER_ADDR"], variables["MASTER_PORT"]
    if not master:
        raise ValueError(
            f"Open MPI started {variables['WORLD_SIZE']} ranks on several computers but does not say where rank 0 is; "
            "add mpirun -x MASTER_ADDR=HOST, with the first of the hosts."
        )
    import torch.distributed as dist  # which takes seconds

    served = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"  # torchrun already serves a store
    try:
        if rank == "0" and master in LOOPBACK and not served:
            return local_store(int(variables["WORLD_SIZE"]), int(port), seconds)
        return next(dist.rendezvous("env://", timeout=timedelta(seconds=seconds)))[0]
    except (OSError, dist.DistError) as error:
        why = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise ConnectionError(
            f"rank {rank} cannot reach the meeting point {master}, port {port} ({why}); "
            "set MASTER_ADDR and MASTER_PORT if it is elsewhere."
        ) from None


def is_local(variables: Mapping[str, str]) -> bool:
    """Return whether all ranks are on this computer."""
    return variables["MASTER_ADDR"] in LOOPBACK or variables.get("LOCAL_WORLD_SIZE") == variables["WORLD_SIZE"]


def own_address(master: str, exchange: Callable[[Any], list]) -> str:
    """Return the address that this computer uses on its route to the master.

    `exchange(x)` returns the x of every rank. The master may resolve its own name to a loopback address, as on Debian;
    in this case the address that another rank resolves is used.
    """
    known = exchange(socket.getaddrinfo(master, 9, type=socket.SOCK_DGRAM)[0][4][0])
    address = next((one for one in known if not ipaddress.ip_address(one).is_loopback), known[0])
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))  # sends nothing
        return probe.getsockname()[0]


def interface(address: str) -> dict[str, str]:
    """Return, as {name: value}, the environment variable that makes gloo use the network interface with this address.

    By default, gloo uses the interface of the host name. Return {} if no interface has this address.
    """
    import psutil

    names = [name for name, bound in psutil.net_if_addrs().items() if any(one.address == address for one in bound)]
    return {"GLOO_SOCKET_IFNAME": names[0]} if names else {}


def notice_silence(link: socket.socket, seconds: float) -> None:
    """Make `link` fail after `seconds` without a sign of life from the peer's computer.

    Keepalive probes detect this while the link is idle, TCP_USER_TIMEOUT while data is in flight; by default, TCP gives
    up only after two hours or a quarter of an hour, respectively. Does nothing for a peer on this computer, which may
    be slow but cannot be disconnected.
    """
    if ipaddress.ip_address(link.getpeername()[0]).is_loopback:
        return
    every = min(max(1, int(seconds / 4)), 32767)  # s
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    limits = {"TCP_KEEPIDLE": every, "TCP_KEEPINTVL": every, "TCP_KEEPCNT": 3}
    for name, value in {**limits, "TCP_USER_TIMEOUT": int(1000 * seconds)}.items():
        with contextlib.suppress(AttributeError):  # not every system has all of them
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
