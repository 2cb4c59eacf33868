"""Hearing from one partner, who may be lost: gossip goes on without it."""

from __future__ import annotations

from typing import Any


def hear(comm, source: int, tag: int, lost: set[int]) -> Any:
    """The message with this tag from `source`, the only one that sends any; None if it is lost.

    Whoever is heard to be lost meanwhile, `source` or another, is added to `lost`.
    """
    while True:
        sender, message = comm.recv_any(tag=tag)
        if message is None:
            lost.add(sender)
        if sender == source:
            return message
