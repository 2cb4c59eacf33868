"""Connect every pair of ranks. Connections from other programs are rejected, and silent ones do not delay the rest."""

import secrets
import selectors
import socket
import struct
import time
from typing import cast

from cluster.real.links import FOREVER
from cluster.real.meeting import notice_silence

STRANGER = -1  # in place of a rank, for a caller without the token
_HELLO = struct.Struct("<16sI")  # the receiver's token, the sender's rank


def ready(link: socket.socket) -> None:
    """Prepare a new connection for frames: it has no timeout, and sends small messages at once."""
    link.settimeout(None)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Listener:
    """A socket that accepts the connections of other ranks at `address`."""

    def __init__(self, host: str):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.token = secrets.token_bytes(16)
        self._server = socket.create_server((host, 0), backlog=4096, family=family)
        self.address = (host, self._server.getsockname()[1], self.token)

    def connect(
        self, rank: int, addresses: list[tuple], timeout: float, silence: float = FOREVER
    ) -> dict[int, socket.socket]:
        """Connect to lower ranks and accept the connections of higher ones. Return a socket to every other rank.

        A link to another computer fails after `silence` seconds without a sign of life. Raise OSError if the ranks have
        not connected within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        sockets = {}
        for peer, (host, port, token) in enumerate(addresses[:rank]):
            try:
                link = socket.create_connection((host, port), max(0.001, deadline - time.monotonic()))
            except OSError as error:
                why = f"rank {rank} cannot reach rank {peer} at {host}, port {port} ({error})"
                raise ConnectionError(f"{why}; check whether a firewall separates them.") from None
            link.sendall(_HELLO.pack(token, rank))
            sockets[peer] = link
        sockets |= self._callers(set(range(rank + 1, len(addresses))), deadline)
        for link in sockets.values():
            ready(link)
            notice_silence(link, silence)
        return sockets

    def _callers(self, awaited: set[int], deadline: float) -> dict[int, socket.socket]:
        """Return a socket to each of the `awaited` ranks. Raise TimeoutError if one has not connected by the deadline.

        Connections that send nothing or an invalid greeting do not delay the others.
        """
        found: dict[int, socket.socket] = {}
        with selectors.DefaultSelector() as callers:
            callers.register(self._server, selectors.EVENT_READ)
            try:
                while missing := awaited - found.keys():
                    if (left := deadline - time.monotonic()) <= 0:
                        names = f"rank{'s' * (len(missing) > 1)} {', '.join(map(str, sorted(missing)))}"
                        raise TimeoutError(
                            f"{names} did not connect in time; check whether a firewall separates the ranks."
                        )
                    for key, _ in callers.select(left):
                        if key.fileobj is self._server:
                            callers.register(self._server.accept()[0], selectors.EVENT_READ, bytearray())
                        elif (
                            peer := self._read_greeting(caller := cast(socket.socket, key.fileobj), key.data)
                        ) is not None:
                            callers.unregister(caller)
                            found[peer] = caller
                            if peer == STRANGER:
                                found.pop(peer).close()
            finally:
                for key in callers.get_map().values():  # the server, and callers whose greeting is incomplete
                    cast(socket.socket, key.fileobj).close()
        return found

    def _read_greeting(self, caller: socket.socket, said: bytearray) -> int | None:
        """Read more of a greeting. Return the caller's rank or STRANGER, or None if it is still incomplete."""
        try:
            more = caller.recv(_HELLO.size - len(said))
        except OSError:
            more = b""
        said += more
        if len(said) < _HELLO.size:
            return None if more else STRANGER
        token, peer = _HELLO.unpack(said)
        return peer if secrets.compare_digest(token, self.token) else STRANGER
