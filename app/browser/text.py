"""Text on our pages: error messages and remarks from elsewhere, shown verbatim, and our own with terms explained."""

from __future__ import annotations

import re

from experiments.specification.catalogue import ALGORITHMS, COMPRESSIONS, WORKLOADS
from lessons.glossary import Glossary

CODE = re.compile(r"(`[^`\n]+`)")
NAMES = {*ALGORITHMS, *COMPRESSIONS, *WORKLOADS}


def sentence(text: str) -> str:
    """Return a message as a sentence: full stop, a capital unless it begins with a name, no marks but `code`."""
    first = text.partition(" ")[0].rstrip(",:;")
    if first.replace("-", "").isalpha() and first not in NAMES:  # a file or a setting keeps its own spelling
        text = text[:1].upper() + text[1:]
    text = "".join(part if CODE.fullmatch(part) else escaped(part) for part in CODE.split(text))
    return text if not text or text.endswith((".", "!", "?")) else text + "."


def escaped(text: str) -> str:
    """Return text with nothing in it that markdown would take for a mark."""
    for mark in "\\`*_[]$:#<>~|":
        text = text.replace(mark, "\\" + mark)
    return text


def flowing(text: str) -> str:
    """Return the text of a file with its paragraphs each on one line, to be wrapped where it is shown.

    What is indented keeps its lines, and what begins with a word and a colon, as "Source:", begins one.
    """
    lines = [""]
    for line in text.split("\n"):
        if lines[-1] and line and not lines[-1].startswith(" ") and not re.match(r" |[A-Z]\w+: ", line):
            lines[-1] += " " + line
        else:
            lines.append(line)
    return "\n".join(lines[1:])


def explained(text: str) -> str:
    """Return our own markdown with terms of the glossary as <abbr>, for a place that allows HTML."""
    return Glossary().explain(text)
