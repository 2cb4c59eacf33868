"""Port of the server: which one Streamlit will use, whether it is free, and which process holds it.

serve.py checks it before Streamlit does, whose message names no process and gives no advice. Standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

DEFAULT = 8501
NEAR = 100  # ports above one in use that are searched for a free one
LISTENING = "0A"  # in /proc/net/tcp
CONFIGURATION = ".streamlit/config.toml"
ROOT = Path(__file__).resolve().parents[2]


def setting(name: str, words: Sequence[str], environment: Mapping[str, str] = os.environ) -> str | None:
    """Return Streamlit's option server.<name> from the arguments, the environment or a file, first found; else None."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(f"--server.{name}", dest="value", nargs="?")
    value = parser.parse_known_args(words)[0].value
    if value is None:
        value = environment.get(f"STREAMLIT_SERVER_{name.upper()}")
    for folder in (ROOT / "app", ROOT, Path.home()):
        if value is None:
            value = _configured(folder / CONFIGURATION, name)
    return value


def _configured(file: Path, name: str) -> str | None:
    import tomllib  # from Python 3.11 on, which start.py has made sure of

    with contextlib.suppress(OSError, ValueError):
        value = tomllib.loads(file.read_text("utf-8")).get("server", {}).get(name)
        return None if value is None else str(value)
    return None


def trouble(words: Sequence[str], program: str = "python3 start.py") -> tuple[str, bool]:
    """Return (what is wrong with the port, whether Streamlit would exit because of it); ("", False) if it is free.

    Streamlit exits only if a port was set; from the default port it moves on to the next free one.
    """
    asked, address = setting("port", words), setting("address", words) or "0.0.0.0"
    try:
        port = int(asked or DEFAULT)
        held = problem(address, port)
    except ValueError:
        return "", False  # not a port number: Streamlit has its own message
    if held == errno.EACCES:
        return f"port {port} is reserved for the system; try --server.port {DEFAULT}.", asked is not None
    if held != errno.EADDRINUSE:
        return "", False
    who, pid = holder(port)
    if asked is None:
        return f"port {port} is held by {who}; the workbench uses the next free one.", False
    end = f"end it (kill {pid})" if pid else "end it"
    free = next((n for n in range(port + 1, min(port + NEAR, 2**16)) if not problem(address, n)), DEFAULT)
    return f"port {port} is held by {who}; {end}, or take another: {program} --server.port {free}", True


def problem(address: str, port: int) -> int:
    """Return the errno of listening on this port, 0 if it is free. ValueError if it is not a port number."""
    if not 0 <= port < 2**16:
        raise ValueError(f"{port} is no port; use 0 to {2**16 - 1}.")
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
            if os.name != "nt":  # as Streamlit does; on Windows it would share a port in use
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
            probe.listen(1)
    except OSError as error:
        return error.errno or -1
    return 0


def holder(port: int) -> tuple[str, int | None]:
    """Return (the process that listens on this port, its id); ("another program", None) where /proc does not tell."""
    sockets = {f"socket:[{inode}]" for inode in _listening(port)}
    for process in sorted((path for path in Path("/proc").glob("[0-9]*")), key=lambda path: int(path.name)):
        with contextlib.suppress(OSError):  # the process has ended, or belongs to another user
            if any(os.readlink(file) in sockets for file in (process / "fd").iterdir()):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                return f"process {process.name} ({command[:100]})", int(process.name)
    return "another program", None


def _listening(port: int) -> list[str]:
    """Return the inodes of the sockets that listen on this port."""
    found = []
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path("/proc/net", table).read_text("ascii").splitlines()[1:]:
                _, local, _, state, *_, inode = line.split()[:10]
                if state == LISTENING and int(local.rpartition(":")[2], 16) == port:
                    found.append(inode)
    return found
