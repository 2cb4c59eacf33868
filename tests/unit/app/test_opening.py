"""The first HTML of a page: with its style and its curtain, and nothing else of the server's answers changed."""

import asyncio
import re

from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, PlainTextResponse

from app.browser.opening import HERE, OpeningMiddleware

PAGE = f"<html><head><title>x</title></head><body>{'words ' * 500}</body></html>"


def answer(response, method: str = "GET", **headers: str) -> tuple[dict, str]:
    """The headers and the text with which a server that compresses gives this response to a browser."""
    said = []
    scope = {"type": "http", "method": method, "path": "/", "headers": []}
    scope["headers"] = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]

    async def send(message):
        said.append(message)

    asyncio.run(OpeningMiddleware(GZipMiddleware(response))(scope, None, send))
    return {name.decode(): value.decode() for name, value in said[0]["headers"]}, b"".join(
        message["body"] for message in said[1:]
    ).decode()


def test_a_page_has_its_style_and_its_curtain_behind_its_head_and_no_mark_of_the_file_it_was_made_from():
    page = HTMLResponse(PAGE, headers={"etag": '"1"', "last-modified": "Mon, 23 Nov 2026 06:56:57 GMT"})
    headers, text = answer(page, accept="text/html,*/*", accept_encoding="gzip", if_none_match='"1"')
    head, _, body = text.partition("</head>")
    for part in ("visibility: hidden", 'class="curtain"', 'classList.add("opening")'):
        assert part in body
    assert head == PAGE.partition("</head>")[0]
    assert int(headers["content-length"]) == len(text.encode())
    assert not {"etag", "last-modified", "content-encoding"} & {*headers}


def test_what_is_no_page_is_passed_on_as_it_is():
    headers, text = answer(PlainTextResponse("</body>", headers={"etag": '"2"'}), accept="*/*")
    assert (text, headers["etag"]) == ("</body>", '"2"')
    headers, text = answer(HTMLResponse(PAGE, headers={"etag": '"3"'}), "HEAD", accept="text/html")
    assert headers["etag"] == '"3"' and "opening" not in text


def test_no_rule_of_the_style_hangs_on_what_is_anywhere_in_the_page():
    style = (HERE / "style.css").read_text("utf-8")
    assert not re.search(r"\.st(App|Main)\w*:has\(", style)
    assert "[class" not in style  # with such a rule any class that changes has all that is below it styled anew
