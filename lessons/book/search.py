"""The index of the search: every section of every chapter, with its words."""

from __future__ import annotations

import json
from typing import Any

from lessons import markup
from lessons.book import markdown
from lessons.chapters import Chapter


def sections(chapter: Chapter, blocks: list[markup.Block]) -> list[dict[str, Any]]:
    """Return the sections of a chapter with all words in them, and the predictions before which they are closed."""
    found = [_section(chapter, "", "", [])]
    behind: list[str] = []
    for block in blocks:
        match block:
            case markup.Text(text):
                for heading, words in markdown.sections(text):
                    if heading is not None:
                        found.append(_section(chapter, heading.words, heading.anchor, behind))
                    found[-1]["text"] += f" {words}"
            case markup.LiveFigure(name):
                one = chapter.golden.figure(name)
                found[-1]["text"] += f" {one.question} {one.text} {'. '.join(one.claims)}"
            case markup.Code(_, path, _, source):
                found[-1]["text"] += f" {path} {source}"
            case markup.Predict(name):
                behind = [*behind, name]
    return [one | {"text": " ".join(one["text"].split())} for one in found]


def script(entries: list[dict[str, Any]]) -> str:
    """Return the index as a script: a page on a disk may load a script, and no data."""
    return f"const searchIndex = {json.dumps(entries, ensure_ascii=False, separators=(',', ':'))};\n"


def _section(chapter: Chapter, title: str, anchor: str, behind: list[str]) -> dict[str, Any]:
    where = {"page": chapter.name, "chapter": chapter.title(), "title": title, "anchor": anchor}
    return {**where, "behind": behind, "text": ""}
