"""Changes that make Streamlit's server faster."""

import asyncio
import socket

import streamlit as st


def answer_at_once(loop: asyncio.AbstractEventLoop) -> None:
    """Send data at once instead of waiting up to 40 ms for earlier data to be acknowledged (TCP_NODELAY).

    Relies on Streamlit passing its own socket to `loop.create_server`. asyncio sets TCP_NODELAY only on sockets it
    created itself; connections inherit the option from the listening socket. Without it answers are merely late.
    """
    listen = loop.create_server

    async def create_server(*words, sock=None, **named):
        if sock and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return await listen(*words, sock=sock, **named)

    loop.create_server = create_server


def skip_the_prompt_check() -> None:
    """Stop Streamlit's first element from searching every module's source to find out whether it runs in a prompt.

    Relies on `st.delta_generator._use_warning_has_been_displayed`. Without it the first page appears later.
    """
    st.delta_generator._use_warning_has_been_displayed = True
