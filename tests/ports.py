"""Ports for the servers of tests."""

import random
import socket

GIVEN_OUT = range(10_240, 32_768)  # below what Linux gives to a socket that asks for any port


def free_port() -> int:
    """Return a port of this machine that nobody listens on.

    It lies outside the range from which the system serves others, so none of the sockets that tests open meanwhile
    takes it before the server does.
    """
    while True:
        port = random.SystemRandom().choice(GIVEN_OUT)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
