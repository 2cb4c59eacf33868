"""Answer a request for `embed=timeline` (or curves, race or schedule) with that picture alone.

For slides and for frames in other people's pages. Streamlit is not involved. This module is imported before the server
listens; the code that draws pictures is imported with the first request.
"""

from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

STREAMLIT = ("", "true", "false")  # parameters that Streamlit itself handles


class EmbedMiddleware:
    """Middleware that answers requests for a single picture, and passes all others on."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET" and b"embed=" in scope["query_string"]:
            pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            kind = next((value for name, value in pairs if name == "embed"), "")
            if kind.lower() not in STREAMLIT:
                text, status = await run_in_threadpool(_answer, kind, pairs)
                return await HTMLResponse(text, status)(scope, receive, send)
        return await self.app(scope, receive, send)


def _answer(kind: str, pairs: list[tuple[str, str]]) -> tuple[str, int]:
    from app.embed.embedded import answer

    return answer(kind, pairs)
