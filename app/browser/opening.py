"""Extend the page's first HTML with its style, scripts, and a curtain that opens once the page is complete.

The scripts acknowledge clicks at once, close a phone's drawer, and more. The HTML also preloads the scripts of the
page's parts, see assets.py.

Streamlit can add a style sheet only as an element of the page, after other elements have been visible without it. This
middleware appends it to the HTML that Streamlit serves: it applies before any script has run, and it follows the head,
to which Streamlit later adds rules of its own that would override equal ones.

Relies on the page being one HTML file with a `</body>`. Otherwise a page has neither our style nor the curtain.
"""

from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.browser import assets
from installation import ROOT

HERE = Path(__file__).resolve().parent
SCRIPTS = ("opening.js", "answer.js", "drawer.js", "help.js", "printing.js")
CURTAIN = """<div class="curtain" role="status" aria-label="Lockstep is opening">
<p>Train one model on many machines, and see what happens</p><div>
<i></i><i></i><i></i><i></i></div></div>"""
OF_THE_FILE = (b"if-none-match", b"if-modified-since", b"range", b"accept-encoding")
"""Request headers that refer to Streamlit's own file, not to the one that we send."""


class OpeningMiddleware:
    """Middleware that extends every HTML page, and passes everything else on unchanged."""

    def __init__(self, app: ASGIApp):
        self.app = app
        style, *scripts = ((HERE / name).read_text("utf-8") for name in ("style.css", *SCRIPTS))
        style = (ROOT / "experiments/viewer/bars.css").read_text("utf-8") + style
        self.more = assets.links() + f"<style>{style}</style>{CURTAIN}"
        self.more += "".join(f"<script type=module>{script}</script>" for script in scripts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            return await self.app(scope, receive, send)
        start, parts = {}, []

        async def pass_on(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_page(message):
                start = message
            elif not start:
                await send(message)
            else:
                parts.append(message.get("body", b""))
                if not message.get("more_body"):
                    body = b"".join(parts).replace(b"</body>", f"{self.more}</body>".encode(), 1)
                    headers = MutableHeaders(raw=start["headers"])
                    headers["content-length"] = str(len(body))
                    del headers["etag"], headers["last-modified"]
                    await send(start)
                    await send({"type": "http.response.body", "body": body})

        await self.app(_for_the_page(scope), receive, pass_on)


def _is_page(start: Message) -> bool:
    headers = MutableHeaders(raw=start["headers"])
    return headers.get("content-type", "").startswith("text/html") and "content-encoding" not in headers


def _for_the_page(scope: Scope) -> Scope:
    """Turn a request for a page into one for the whole page, uncompressed; return other requests unchanged."""
    headers = scope["headers"]
    if not any(name == b"accept" and b"text/html" in value for name, value in headers):
        return scope
    return {**scope, "headers": [(name, value) for name, value in headers if name not in OF_THE_FILE]}
