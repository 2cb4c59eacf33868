"""The files that a canvas is joined from."""

import json
import re
from pathlib import Path

from experiments.viewer import canvases, palette

FOLDER = Path(canvases.__file__).parent


def test_every_script_of_the_folder_is_in_the_joined_one_and_none_twice_in_a_canvas():
    joined = canvases.script()
    for file in FOLDER.rglob("*.js"):
        text = file.read_text("utf-8")
        assert text in joined, file.name
        assert all(canvases.parts(name)["js"].count(text) <= 1 for name in canvases.NAMES), file.name


def test_a_canvas_has_its_colours_from_the_palette():
    for name in canvases.NAMES:
        assert f"const COLOURS = {json.dumps(palette.CANVAS)};" in canvases.parts(name)["js"]
    for file in FOLDER.rglob("*.js"):
        text = re.sub(r'of\("--st-[a-z-]+", "#\w+"\)', "", file.read_text("utf-8"))  # a page's own, if it has no theme
        assert not re.findall(r'"#[0-9A-Fa-f]{6}"', text), file.name


def test_a_class_that_says_it_is_mixed_into_a_canvas_is():
    for file in FOLDER.rglob("*.js"):
        text = file.read_text("utf-8")
        if said := re.search(r"^// Mixed into (\w+) \((\w+)\.js\)", text, re.MULTILINE):
            part, mixed = re.search(r"^class (\w+) ", text, re.MULTILINE), FOLDER / f"{said[2]}.js"
            line = re.search(rf"^mixin\({said[1]}, (.*)\);$", mixed.read_text("utf-8"), re.MULTILINE)
            assert part[1] in line[1].split(", "), file.name
