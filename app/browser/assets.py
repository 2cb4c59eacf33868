"""Serve Streamlit's own scripts, styles and fonts from memory: a first visit fetches hundreds of them.

Streamlit reads each file in several steps on a thread pool while other threads import what the page needs, and a
browser learns only from the page's elements which scripts draw them. This middleware answers from memory, and the
page's first HTML names the scripts of our parts, so that they load while the server is still working on the page.

Relies on the package's folder `static/`, its index.html, and the names of the scripts in it. Without them the first
page appears later; a name in PARTS that no longer exists is ignored.
"""

import re
from functools import cache
from mimetypes import guess_type
from pathlib import Path

import streamlit
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

SERVED = Path(streamlit.__file__).parent / "static"
FILES = {path.relative_to(SERVED).as_posix(): path for path in (SERVED / "static").rglob("*.*")}
FOR_EVER = {
    "cache-control": "public, immutable, max-age=31536000"
}  # as in Streamlit: names contain a hash of the content
PARTS = ("BidiComponent", "Button", "ButtonGroup", "Checkbox", "DownloadButton", "Html", "MenuButton", "Metric")
PARTS += ("Progress", "Selectbox", "Slider", "rehype-raw")
"""Scripts that draw the first page."""
NAMED = re.compile(r"static/js/([\w.-]+\.js)")
IMPORTED = re.compile(r"""(?:from|import)\s*["'`]\./([\w.-]+\.js)["'`]""")


class AssetsMiddleware:
    """Middleware that answers requests for Streamlit's own files, and passes all others on."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET":
            name = "static/" + scope["path"].rpartition("/static/")[2]  # under whatever path the workbench is served
            if name in FILES:
                return await _response(name)(scope, receive, send)
        return await self.app(scope, receive, send)


@cache
def _response(name: str) -> Response:
    return Response(FILES[name].read_bytes(), media_type=guess_type(name)[0], headers=FOR_EVER)


def links() -> str:
    """Return HTML that preloads the scripts of PARTS and their imports, except those the page loads anyway."""
    asked = set(NAMED.findall((SERVED / "index.html").read_text("utf-8")))
    wanted = [path.name for part in PARTS for path in (SERVED / "static" / "js").glob(f"{part}.*.js")]
    lines = []
    while wanted:
        name = wanted.pop()
        if name not in asked:
            asked.add(name)
            lines.append(f'<link rel=modulepreload crossorigin href="./static/js/{name}">')
            wanted += IMPORTED.findall(FILES[f"static/js/{name}"].read_text("utf-8"))
    return "".join(lines)
