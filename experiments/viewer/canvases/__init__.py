"""Canvases: pictures that the browser draws from a packed frame, in plain JavaScript without a library.

    curve.py, figure.py        pack a frame, one message of bytes (column_codec.py), for the canvas of curves and bars:
    curve.*, curve/, marks.js  the curves of runs, a figure of the textbook
    timeline.py, schedule.py   the same for the canvas of lanes: a run's timeline, a schedule of a pipeline
    timeline.*, lanes/*.js     its data and state; its behaviour, one class per aspect, mixed into one
    why.js                     its waits: what each waited for
    keyboard.js                choosing a rank with the keyboard
    learned.*, sparkline.js    its loss and accuracy, and what its model makes of a few samples
    topology.py, topology.js   its machines, with messages on the wires between them
    recurrence.py, .js         a prediction of the run with a fault: a slower rank, a lost one, or a longer latency
    foreseen.js, trouble.*     the prediction in words and spans; faults that the reader injects by drag and drop,
    lane_menu.js, stretch.js   from the menu of a lane, or by stretching a wire
    morph.js                   the transition from one run's timeline to the next one's
    landscape.*, landscape/    how a run learned: its path over the loss surface, and the boundaries of its classes
    ground.js                  the loss surface below that path
    canvas.*, pen.js, page.js  shared by all; for pages without Streamlit
    svg.js, save.js            the same picture as a file: SVG, PNG, a film

Each canvas is one function, `mount(element, bytes, events)`: it draws `bytes` in `element`, which has the canvas's HTML
and style, and returns the canvas (`show(bytes)`; `redraw()`, after the page's colours have changed; `svg()`, the
picture as the text of a file; `stop()`). Called again with the same element, it shows other bytes.

Streamlit's components mount a canvas in an element that they have filled (app/components/). Any other page includes
`script()` once, and calls

    lockstep.curve(element, lockstep.bytes(base64))        lockstep.timeline(element, lockstep.bytes(base64))

which gives the element a shadow root of its own, so that the styles of page and canvas do not interfere. After the page
has changed its variables, `lockstep.redraw()` redraws all canvases.
"""

import json
from functools import cache
from pathlib import Path

from experiments.viewer import palette

NAMES = ("curve", "timeline", "landscape")
_FOLDER = Path(__file__).parent
_MIXED = {
    "lanes": "spans viewport lanes bars shares messages legend cursor player words controls card",  # into Timeline
    "curve": "axes plot moments reading zooming",
    "landscape": "moments places scene trails legend",
}
_PLACED = {folder: tuple(f"{folder}/{part}.js" for part in parts.split()) for folder, parts in _MIXED.items()}
_MORE = {
    "landscape": ("ground.js", *_PLACED["landscape"]),
    "curve": ("marks.js", *_PLACED["curve"]),
    "timeline": (
        *("topology.js", "why.js", "keyboard.js", "sparkline.js", "learned.js"),
        *("recurrence.js", "foreseen.js", "trouble.js", "lane_menu.js", "stretch.js", "morph.js"),
        *_PLACED["lanes"],
    ),
}


@cache
def parts(name: str) -> dict[str, str]:
    """Return {"js", "css", "html"} of a canvas in NAMES; the js defines `mount` and exports nothing.

    It begins with the colours of the palette that frames do not carry.
    """
    text = {kind: (_FOLDER / f"{name}.{kind}").read_text("utf-8") for kind in ("js", "css", "html")}
    before = {
        "js": ["canvas.js", "pen.js", "svg.js", "save.js", *_MORE.get(name, ())],
        "css": ["canvas.css", *(["learned.css", "trouble.css"] if name == "timeline" else [])],
    }
    for kind, files in before.items():
        text[kind] = "".join((_FOLDER / file).read_text("utf-8") for file in files) + text[kind]
    text["js"] = f"const COLOURS = {json.dumps(palette.CANVAS)};\n{text['js']}"
    return text


@cache
def script() -> str:
    """Return a classic script that defines `lockstep.curve`, `lockstep.timeline` and `lockstep.bytes`."""
    canvases = [(_FOLDER / "page.js").read_text("utf-8")]
    for name in NAMES:
        text = parts(name)
        inside = json.dumps(f"<style>{text['css']}</style>{text['html']}", ensure_ascii=False).replace("</", "<\\/")
        canvases.append(f"lockstep.{name} = (() => {{\n{text['js']}\nreturn inShadow({inside}, mount);\n}})();")
    return "window.lockstep ??= {};\n(() => {\n" + "\n".join(canvases) + "\n})();\n"
