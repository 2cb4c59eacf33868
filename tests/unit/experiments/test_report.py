"""The report: one file that needs nothing else, and says what the page says."""

import base64
import json
import re
import zlib
from dataclasses import replace

import numpy as np
import pytest

from experiments.exports.page import page
from experiments.exports.report import report
from experiments.viewer.column_codec import unpack
from experiments.viewer.pictures import Shown

ADDRESS = "http://localhost:8501/"


def read(text: str) -> tuple[str, dict]:
    """The page without its scripts and sheet, and the headers of its canvases by name."""
    (data,) = re.findall(r"Object\.entries\((\{.*\})\)\) \{", text)
    frames = {name: unpack(zlib.decompress(base64.b64decode(f)))[0] for name, (_, f) in json.loads(data).items()}
    return re.sub(r"<(script|style)>.*?</\1>", "", text, flags=re.S), frames


@pytest.fixture
def shown(small_run):
    return [Shown("EASGD", small_run, 0)]


def test_a_report_names_no_other_file_and_no_address_but_the_workbench_it_links_to(shown):
    text = report(shown, ADDRESS)
    own, _ = read(text)
    assert re.findall(r'(?:src|href)="([^"]*)"', own) == [
        f"{ADDRESS}?{shown[0].run.experiment.query().replace('&', '&amp;')}"
    ]
    assert not re.search(r"<script[^>]*\ssrc|@import|url\(http", text)
    assert "http" not in read(report(shown))[0]


def test_a_report_shows_what_the_page_shows(shown):
    own, frames = read(report(shown, ADDRESS))
    assert list(frames) == ["loss", "accuracy", "timeline-0"]
    for name in frames:
        assert f'id="canvas-{name}"' in own
    for words in ("EASGD on handwritten digits", "2 workers", "Where the time goes", "Memory", "Who sends to whom"):
        assert words in own
    assert shown[0].run.summary["digest"] in own and "lockstep run easgd" in own
    assert "prefers-color-scheme: dark" in report(shown)


def test_a_report_of_two_runs_compares_them_on_one_clock(shown, small_run):
    own, frames = read(report([*shown, Shown("another", small_run, 1)]))
    assert {"timeline-0", "timeline-1"} <= set(frames) and "Comparison" in own and "another" in own
    assert frames["loss"]["x"]["name"] == "time" and len(frames["loss"]["saved"]["legend"]) == 2


def test_a_report_shows_what_the_method_measured(shown, small_run):
    measures = {
        "rank": np.array([0, 1, 0, 1], "i4"),
        "step": np.array([1, 1, 2, 2], "i4"),
        "seconds": np.array([0.1, 0.1, 0.2, 0.2]),
        "quantity": np.zeros(4, "i4"),
        "value": np.array([1.0, 3.0, 5.0, 8.0]),
    }
    run = replace(small_run, measures=measures, quantities=("noise scale",))
    assert "noise scale" not in report(shown)
    own, frames = read(report([Shown("EASGD", run, 0)]))
    assert "noise scale, samples" in own and frames["measured-0"]["lines"][0]["name"] == "noise scale"


def test_text_of_a_stranger_is_not_markup(small_run):
    nasty = replace(small_run, notes=("<script>alert(1)</script>",), environment={"machine": "<b>x</b>"})
    text = report([Shown("<b>run</b>", nasty, 0), Shown("<b>run</b>", nasty, 1)])
    assert "<script>alert(1)" not in text and "&lt;script&gt;alert(1)" in text
    assert "<b>x</b>" not in text and "<b>run" not in read(text)[0]


def test_what_is_not_drawn_is_not_in_the_page():
    assert "lockstep.curve" not in page("nothing", "<p>nothing</p>", {})
