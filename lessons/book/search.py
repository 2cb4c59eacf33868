"""The search index: every section of every chapter, with its words."""

import json
from typing import Any

from lessons import markup
from lessons.book import markdown
from lessons.chapters import Chapter
from lessons.references import fold_anchor


def sections(chapter: Chapter, blocks: list[markup.Block]) -> list[dict[str, Any]]:
    """Return the sections of a chapter for the search. Each has its words and the predictions that must be answered
    before it opens.

    A fold is a separate section, so that results lead to it.
    """
    here = _section(chapter, "", "", [])
    found = [here]
    behind: list[str] = []
    for block in blocks:
        match block:
            case markup.Text(text):
                for heading, words in markdown.sections(text):
                    if heading is not None:
                        found.append(here := _section(chapter, heading.words, heading.anchor, behind))
                    here["text"] += f" {words}"
            case markup.Predict(name):
                behind = [*behind, name]
            case markup.Fold(title, inside):
                found.append(_section(chapter, _plain(block.label), fold_anchor(title, chapter.name), behind))
                found[-1]["text"] = " ".join(_words(chapter, part) for part in inside)
            case _:
                here["text"] += f" {_words(chapter, block)}"
    return [one | {"text": " ".join(one["text"].split())} for one in found]


def _words(chapter: Chapter, block: markup.Block) -> str:
    """Return the words of a block that has no headings."""
    match block:
        case markup.Text(text):
            return _plain(text)
        case markup.LiveFigure(name):
            one = chapter.golden.figure(name)
            return f"{one.question} {one.text} {'. '.join(one.claims)}"
        case markup.Code(_, path, _, source):
            return f"{path} {source}"
        case _:
            return ""


def _plain(text: str) -> str:
    return " ".join(words for _, words in markdown.sections(text))


def script(entries: list[dict[str, Any]]) -> str:
    """Return the index as a script, because a page opened from disk can load scripts but not data."""
    return f"const searchIndex = {json.dumps(entries, ensure_ascii=False, separators=(',', ':'))};\n"


def _section(chapter: Chapter, title: str, anchor: str, behind: list[str]) -> dict[str, Any]:
    where = {"page": chapter.name, "chapter": chapter.title(), "title": title, "anchor": anchor}
    return {**where, "behind": behind, "text": ""}
