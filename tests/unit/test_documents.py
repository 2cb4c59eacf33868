"""README and docs/: their links lead somewhere, their commands exist, and their code is the code."""

import re
import shlex

import click
import pytest

import algorithms
import lessons
from experiments.cli import options
from tests.sources import ROOT

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
DOCUMENTS += sorted((ROOT / "docs" / "homework").rglob("*.md"))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
IN_TEXT = re.compile(r"`(lockstep [^`]*)`")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_of_a_document_leads_to_a_file(path):
    text = path.read_text("utf-8")
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text)
    assert [one for one in targets if "http" not in one and not (path.parent / one).exists()] == []


def commands_of(text: str) -> list[str]:
    """Return the `lockstep` commands of a document, without their comments."""
    lines = [line for _, block in BLOCK.findall(text) for line in block.splitlines() if line.startswith("lockstep ")]
    found = [line.partition("  #")[0].partition(" && ")[0].strip() for line in lines] + IN_TEXT.findall(text)
    return [one for one in found if not re.search(r"\b(NAME|COMMAND|CHAPTER)\b", one)]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_command_of_a_document_exists_with_the_options_it_is_shown_with(path):
    for typed in commands_of(path.read_text("utf-8")):
        _, *words = shlex.split(typed)
        if words[0].startswith("-") or words[0] == "torch" or "--help" in words:
            continue  # Streamlit's options, or torchrun's
        group, words = program_of(words)
        assert words[0] in group.commands, typed
        command = group.commands[words[0]]
        try:
            context = command.make_context(words[0], words[1:])
            if words[0] == "sweep":
                options.axes(command, context.params)  # its values are lists
        except click.UsageError as error:
            if "does not exist" not in error.message:  # a file of the reader's
                pytest.fail(f"{typed}: {error.format_message()}")
        except ValueError as error:
            pytest.fail(f"{typed}: {error}")


def program_of(words: list[str]) -> tuple[click.Group, list[str]]:
    from app.cli import lockstep
    from lessons.cli.main import main

    return (main, words[1:]) if words[0] == "book" else (lockstep, words)


def test_the_algorithm_that_the_readme_shows_is_the_code_as_it_is():
    text = (ROOT / "README.md").read_text("utf-8")
    shown = next(block for kind, block in BLOCK.findall(text) if kind == "python" and "def " in block)
    assert shown in (ROOT / "algorithms" / "averaging" / "easgd.py").read_text("utf-8")


def test_the_readme_counts_algorithms_as_they_are_and_every_chapter_is_whole():
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "More than 90 of them" in readme and 90 < len(algorithms.names()) < 105
    for one in map(lessons.chapter, lessons.CHAPTERS):
        assert one.has_text and one.figures and one.items and one.exercise and one.lab(), one.name
