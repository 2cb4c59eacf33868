"""Streamlit's server, made quicker."""

from __future__ import annotations

import asyncio
import socket

import streamlit as st


def answer_at_once(loop: asyncio.AbstractEventLoop) -> None:
    """Send what is written without waiting until what was sent before is acknowledged, which takes up to 40 ms.

    Relies on Streamlit passing a socket of its own to `loop.create_server`. asyncio asks for TCP_NODELAY where it made
    the socket itself; those of connections are as the listening one is. Without it answers are late, and no more.
    """
    listen = loop.create_server

    async def create_server(*words, sock=None, **named):
        if sock and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return await listen(*words, sock=sock, **named)

    loop.create_server = create_server


def skip_the_prompt_check() -> None:
    """Keep Streamlit from looking, with its first element, for the source of every module: whether a prompt runs it.

    Relies on `st.delta_generator._use_warning_has_been_displayed`. Without it the first page is later.
    """
    st.delta_generator._use_warning_has_been_displayed = True
