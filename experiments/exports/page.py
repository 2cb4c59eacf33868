"""Self-contained HTML pages: one file with canvases in it, which needs neither a server nor a network.

Frames are compressed (deflate, base64) and unpacked by the browser. Colours follow the reader's preference for light or
dark.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from html import escape
from pathlib import Path

from experiments.viewer import bars, canvases

_CSS = (Path(bars.__file__).with_suffix(".css"), Path(__file__).with_suffix(".css"))
PRESENTING = Path(__file__).with_name("presentation.js").read_text("utf-8")
"""A script that defines presenting(), which listens for the key P."""
Frames = Mapping[str, tuple[str, bytes]]


def page(title: str, body: str, frames: Frames, kind: str = "") -> str:
    """Return the HTML of a page. In `body`, place(name) marks where the canvas of that name is drawn.

    `frames` has (canvas of canvases.NAMES, frame) for each name; `kind` is the CSS class of the body.
    """
    packed = {name: [canvas, _packed(frame)] for name, (canvas, frame) in frames.items()}
    data = json.dumps(packed).replace("</", "<\\/")
    return _PAGE.format(
        title=escape(title), css="".join(path.read_text("utf-8") for path in _CSS), kind=escape(kind), body=body,
        data=data, presenting=PRESENTING, canvases=canvases.script() if frames else "",
    )  # fmt: skip


def place(name: str) -> str:
    """Return the HTML element into which the canvas of this name is drawn."""
    return f'<div id="canvas-{escape(name)}"></div>'


def _packed(frame: bytes) -> str:
    return base64.b64encode(zlib.compress(frame, 9)).decode()


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{css}</style></head><body class="{kind}">
{body}
<script>{canvases}</script>
<script>
{presenting}
presenting();
const unpacked = async (text) => new Uint8Array(await new Response(
  new Blob([lockstep.bytes(text)]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
for (const [name, [canvas, frame]] of Object.entries({data})) {{
  unpacked(frame).then((bytes) => lockstep[canvas](document.getElementById(`canvas-${{name}}`), bytes));
}}
</script>
</body></html>
"""
