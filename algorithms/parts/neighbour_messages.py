"""Receive from a neighbour that may have been lost, so that gossip continues without it."""

from typing import Any


def recv_or_lost(comm, source: int, tag: int, lost: set[int]) -> Any:
    """Return the message with this tag from `source`, the only rank that sends one, or None if that rank is lost.

    Ranks whose loss is reported in the meantime, `source` or others, are added to `lost`.
    """
    while True:
        sender, message = comm.recv_any(tag=tag)
        if message is None:
            lost.add(sender)
        if sender == source:
            return message
