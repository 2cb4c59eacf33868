"""Streamlit's own files from memory, and connections that send at once what is written."""

import asyncio
import re
import socket

from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_handler

from app.browser.assets import FILES, PARTS, SERVED, AssetsMiddleware, links


def answer(app, path: str) -> tuple[int, dict, bytes]:
    """Status, headers and body with which `app` answers a GET."""
    said = []
    scope = {"type": "http", "method": "GET", "path": path, "root_path": "", "headers": []}

    async def receive():
        await asyncio.sleep(60)

    async def send(message):
        said.append(message)

    asyncio.run(app(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in said[1:])
    return said[0]["status"], {name.decode(): value.decode() for name, value in said[0]["headers"]}, body


async def nobody(scope, receive, send):
    raise AssertionError(f"{scope['path']} was passed on")


def test_the_answer_is_streamlits_own():
    theirs = create_streamlit_static_handler(str(SERVED), None)
    for kind in (".js", ".css", ".woff2"):
        path = "/" + next(name for name in FILES if name.endswith(kind))
        status, headers, body = answer(AssetsMiddleware(nobody), path)
        wanted_status, wanted, wanted_body = answer(theirs, path)
        assert (status, body, headers["cache-control"]) == (wanted_status, wanted_body, wanted["cache-control"])
        assert headers["content-type"].startswith(wanted["content-type"].partition(";")[0])
        assert answer(AssetsMiddleware(nobody), f"/lockstep{path}")[2] == body  # served under a path of its own


def test_all_else_is_passed_on():
    passed = []

    async def theirs(scope, receive, send):
        passed.append(scope["path"])

    odd = ["/", "/schedules", "/static/", "/static/../../config.py", "/static//etc/passwd", "/app/static/mine.js"]
    for path in odd:
        asyncio.run(AssetsMiddleware(theirs)({"type": "http", "method": "GET", "path": path}, None, None))
    assert passed == odd


def test_the_first_html_asks_once_for_every_script_of_the_first_page_that_streamlits_does_not_ask_for():
    asked = re.findall(r'href="\./(static/js/[^"]+)"', links())
    page = (SERVED / "index.html").read_text("utf-8")
    assert len(asked) == len({*asked}) and not [name for name in asked if name in page or name not in FILES]
    for part in PARTS:
        assert [name for name in asked if name.startswith(f"static/js/{part}.")], f"Streamlit has no {part} now"


def test_a_connection_sends_at_once_what_is_written():
    from app.browser.server import answer_at_once

    async def accepted(listening: socket.socket) -> int:
        loop = asyncio.get_running_loop()
        answer_at_once(loop)
        seen = loop.create_future()

        class Accepts(asyncio.Protocol):
            def connection_made(self, transport):
                chosen = transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                seen.set_result(chosen)

        server = await loop.create_server(Accepts, sock=listening)
        async with server:
            _, writer = await asyncio.open_connection(*listening.getsockname())
            writer.close()
            return await seen

    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)  # as Streamlit makes it
    listening.bind(("127.0.0.1", 0))
    listening.setblocking(False)
    assert asyncio.run(accepted(listening))
