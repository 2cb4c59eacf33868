"""Format text for our pages: messages from elsewhere are shown verbatim, and terms in our own text are explained."""

import re

from experiments.specification.catalogue import ALGORITHMS, COMPRESSIONS, WORKLOADS
from experiments.wording.sentences import capital
from lessons.glossary import Glossary

CODE = re.compile(r"(`[^`\n]+`)")
NAMES = {*ALGORITHMS, *COMPRESSIONS, *WORKLOADS}


def sentence(text: str) -> str:
    """Return a message as a sentence. It gets a capital (unless it begins with a name) and a full stop, and its
    Markdown, except `code`, is escaped.
    """
    first = text.partition(" ")[0].rstrip(",:;")
    if first.replace("-", "").isalpha() and first not in NAMES:  # a file or a setting keeps its own spelling
        text = capital(text)
    text = "".join(part if CODE.fullmatch(part) else escape_markdown(part) for part in CODE.split(text))
    return text if not text or text.endswith((".", "!", "?")) else text + "."


def escape_markdown(text: str) -> str:
    """Return `text` with all Markdown syntax escaped."""
    for mark in "\\`*_[]$:#<>~|":
        text = text.replace(mark, "\\" + mark)
    return text


def flowing(text: str) -> str:
    """Return the text of a file with each paragraph on one line, so that it wraps where it is shown.

    Indented text keeps its lines, and a word followed by a colon, such as "Source:", starts a new line.
    """
    lines = [""]
    for line in text.split("\n"):
        if lines[-1] and line and not lines[-1].startswith(" ") and not re.match(r" |[A-Z]\w+: ", line):
            lines[-1] += " " + line
        else:
            lines.append(line)
    return "\n".join(lines[1:])


def mark_glossary_terms(text: str) -> str:
    """Return our own Markdown with the glossary's terms marked as <abbr>, for a place that allows HTML."""
    return Glossary().explain(text)
