import itertools
import tomllib
from pathlib import Path

import pytest

import app
from experiments.viewer import palette

CONFIG = tomllib.loads((Path(app.__file__).parent / ".streamlit" / "config.toml").read_text())
PAGES = [CONFIG["theme"][name]["backgroundColor"] for name in ("light", "dark")]


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("page", PAGES)
def test_the_line_of_every_run_can_be_seen_on_both_pages(page):
    sweep = [palette.ramp(share / 10, share) for share in range(11)]
    for line in (*palette.RUNS, *sweep):
        assert contrast(line.colour, page) >= 3, line


def test_no_colour_has_two_meanings():
    colours = [look.colour for look in palette.DRAWN.values()] + [line.colour for line in palette.RUNS]
    colours += [colour for colour, _ in palette.HOLDING.values()]
    assert len(set(colours)) == len(colours)


def test_nothing_is_told_by_colour_alone():
    for a, b in itertools.combinations(palette.RUNS, 2):
        assert a.dash != b.dash and a.symbol != b.symbol
    for number in range(10):
        a, b = palette.ramp(number / 10, number), palette.ramp((number + 1) / 10, number + 1)
        assert a.colour != b.colour and a.dash != b.dash and a.symbol != b.symbol
    for a, b in itertools.combinations(palette.DRAWN.values(), 2):
        assert (a.height, a.hatch) != (b.height, b.hatch)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_waiting_and_small_print_can_be_seen_on_both_pages(name):
    theme = CONFIG["theme"][name]
    for page in (theme["backgroundColor"], theme["secondaryBackgroundColor"]):
        assert min(contrast(palette.DOING[kind].colour, page) for kind in ("wait", "idle")) >= 3
    parts = [[int(theme[what][i : i + 2], 16) for i in (1, 3, 5)] for what in ("textColor", "backgroundColor")]
    mix = [round(palette.QUIET * a + (1 - palette.QUIET) * b) for a, b in zip(*parts, strict=True)]
    assert contrast("#" + "".join(f"{part:02X}" for part in mix), theme["backgroundColor"]) >= 4.5


def test_white_text_can_be_read_on_the_primary_colour():
    assert contrast(CONFIG["theme"]["primaryColor"], "#FFFFFF") >= 4.5


def test_dark_numbers_can_be_read_on_every_cell_of_a_map_in_both_themes():
    for stops in (palette.TRAFFIC, palette.HEAT):
        for _, colour in stops:  # opaque, so that the page behind does not matter
            assert contrast(palette.DARK, colour) >= 4.5, colour
