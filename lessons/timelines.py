"""Recorded timelines of a chapter's texts. timelines.json holds the frame of each timeline, so that no page runs
anything.

`lockstep book golden <chapter>` writes the file next to golden.json. A simulated run is deterministic, and the drawing
shows times, not what was learned, so a test runs each again and compares.
"""

import base64
import json
import zlib
from pathlib import Path

from experiments.viewer.canvases import timeline
from experiments.viewer.saved import labels_of_one
from lessons.movement import Timeline

FILE = "timelines.json"
LARGEST = 60_000  # most bytes of one in the file


def read(folder: Path) -> dict[str, bytes]:
    """Return the recorded frames of the chapter in `folder`, with the query strings of the runs as keys."""
    path = folder / FILE
    texts = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return {link: zlib.decompress(base64.b64decode(text)) for link, text in texts.items()}


def find(folder: Path, block: Timeline) -> bytes | None:
    """Return the recorded frame of a timeline, for the browser, from the chapter in `folder`. Return None if it is not
    recorded.
    """
    return read(folder).get(block.experiment.query())


def make_frame(block: Timeline) -> bytes:
    """Run a timeline's experiment in this process and return the frame."""
    from experiments.execution.run import run

    done = run(block.experiment)
    frame = timeline.trace_frame(
        done.trace, timeline.lane_names(done), timeline.describe(done), block.experiment.query(),
        saved=labels_of_one(block.experiment, "timeline"),
    )  # fmt: skip
    return frame


def write(folder: Path, blocks: list[Timeline]) -> None:
    """Run the experiments of all timelines and write the file, or remove it if there are none.

    Raise ValueError if one is too long for a text.
    """
    texts = {}
    for block in blocks:
        text = base64.b64encode(zlib.compress(make_frame(block), 9)).decode()
        if len(text) > LARGEST:
            raise ValueError(
                f"{block.caption}: {len(text)} bytes are too many for a text; take fewer steps or workers."
            )
        texts[block.experiment.query()] = text
    if texts:
        (folder / FILE).write_text(json.dumps(texts, indent=0) + "\n", "utf-8")
    else:
        (folder / FILE).unlink(missing_ok=True)
