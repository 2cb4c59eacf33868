"""The figures, schedules and timelines of a page: their captions, and the frames that are drawn on canvases."""

import base64
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl

from markupsafe import Markup, escape

from experiments.viewer.look import apart
from lessons import movement, timelines
from lessons.chapters import Chapter
from lessons.live import tries
from lessons.markup import Schedule, Timeline
from lessons.references import figure_anchor


@dataclass
class PageData:
    """The data that figures add to their page. `workbench` is the address of the workbench that the page links to, or
    "" for no links.
    """

    workbench: str
    live: bool = False
    """True if the page can compute runs (lessons/live)."""
    frames: dict[str, Any] = field(default_factory=dict)
    tries: dict[str, Any] = field(default_factory=dict)


TABLED = 40  # most rows of a figure with a slider that are printed with its page, which shows one stop


def template_values(chapter: Chapter, name: str, page: PageData, settings: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the values that the template needs for a figure, and add its frame to the page's data.

    On a live page, readers can vary the `settings`.
    """
    one = chapter.golden.figure(name)
    page.frames[name] = _packed("curve", one.frame())
    rows = one.table()
    if page.live and settings:
        page.tries[name] = tries.figure_trial(one, settings)
    return {
        "name": name,
        "anchor": figure_anchor(name),
        "number": chapter.figure_number(name),
        "can_be_tried": name in page.tries,
        "tabled": bool(one.look.slider) and len(rows) <= TABLED,
        "question": one.question,
        "text": text_with_code(one.text),
        "source": text_with_code(one.source),
        "claims": [(claim, one.shows(claim)) for claim in one.claims],
        "seeds": one.seeds_sentence(),
        "columns": list(rows[0]),
        "rows": [[(_cell(value), isinstance(value, int | float)) for value in row.values()] for row in rows],
        "runs": [(f"{page.workbench}/?{query}", label) for query, label in labels(one.runs).items()]
        if page.workbench
        else [],
    }


def on_paper(chapter: Chapter) -> dict[str, Any]:
    """Return a printable frame for each figure with a slider. It shows all positions of the slider in one picture."""
    frames = {}
    for name, one in chapter.golden.figures.items():
        if one.look.slider:
            look = replace(one.look, slider="", colour="+".join(apart(one.look)))
            frames[name] = _packed("curve", one.frame(look))
    return frames


def labels(queries: tuple[str, ...]) -> dict[str, str]:
    """Return {query: label} for these runs. A label consists of the run's algorithm and the settings in which the runs
    differ.
    """
    flats = {query: dict(parse_qsl(query, keep_blank_values=True)) for query in queries}
    names = dict.fromkeys(name for flat in flats.values() for name in flat)
    differing = [n for n in names if n not in ("slow", "algorithm") and len({f.get(n) for f in flats.values()}) > 1]
    return {
        query: ", ".join(
            [flat.get("algorithm", "run"), *(f"{n.replace('_', ' ')} {flat[n]}" for n in differing if n in flat)]
        )
        for query, flat in flats.items()
    }


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{float(f'{value:.4g}'):,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def moving(chapter: Chapter, block: Schedule | Timeline, page: PageData) -> dict[str, Any]:
    """Return the values that the template needs for a schedule or a timeline, and add its frame to the page's data.

    Raise ValueError if the timeline is not recorded.
    """
    name = f"movement-{chapter.name}-{len(page.frames) + 1}"
    frame = movement.frame(block) if isinstance(block, Schedule) else timelines.find(chapter.folder, block)
    if frame is None:
        raise ValueError(f"{block.caption} is not recorded; run lockstep book golden {chapter.name}.")
    page.frames[name] = _packed("timeline", frame)
    if page.live and isinstance(block, Timeline) and block.tries:
        page.tries[name] = tries.trial(block)
    return {
        "name": name,
        "number": chapter.figure_number(block.link),
        "caption": block.caption,
        "settings": block.settings,
        "address": f"{page.workbench}/{block.link}" if page.workbench else "",
        "can_be_tried": name in page.tries,
    }


def _packed(canvas: str, frame: bytes) -> dict[str, str]:
    return {"canvas": canvas, "frame": base64.b64encode(frame).decode()}


def text_with_code(text: str) -> Markup:
    """Return plain text as HTML. Text between backquotes becomes code; other markup is not interpreted."""
    parts = [escape(part) for part in " ".join(text.split()).split("`")]
    return Markup("").join(Markup("<code>{}</code>").format(part) if n % 2 else part for n, part in enumerate(parts))
