"""Exports: what other programs get to read."""

import csv
import errno
import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest

from experiments.cli.export import read
from experiments.execution.run import run as runs
from experiments.exports import export as module
from experiments.exports.export import chrome_trace, csv_text, export
from experiments.specification.experiment import Experiment
from experiments.viewer import curves
from experiments.viewer.canvases import timeline
from experiments.viewer.column_codec import unpack
from experiments.wording import units
from tracing import KINDS


def test_csv_has_every_row_and_reads_back_to_the_same_numbers(small_run, tmp_path):
    files = export(small_run, "csv", tmp_path / "run.csv")
    assert [path.name for path in files] == [
        "run-losses.csv",
        "run-evaluations.csv",
        "run-staleness.csv",
        "run-measures.csv",
        "run-memory.csv",
    ]
    rows = list(csv.DictReader(files[0].open()))
    for name, column in small_run.losses.items():
        assert [float(row[name]) for row in rows] == column.tolist()
    assert csv_text({"a": np.array([], float)}) == "a\n"


def test_held_out_rows_have_the_step_at_which_the_curve_shows_them(tmp_path):
    run = runs(Experiment.of({"algorithm": "asgd", "workload": "quadratic", "steps": 20, "crash": "2:1e-4"}))
    files = export(run, "csv", tmp_path / "run.csv")
    steps = [float(row["step"]) for row in csv.DictReader(files[1].open())]
    np.testing.assert_allclose(steps, curves.held_out(run, "step").x, rtol=1e-6)
    assert not np.allclose(steps, run.evaluations["step"])  # updates by workers, as if all had stayed


def test_the_chrome_trace_has_a_slice_per_span_and_an_arrow_per_message(small_run):
    trace = small_run.trace
    events = json.loads(chrome_trace(trace, servers=1))["traceEvents"]
    phases = [event["ph"] for event in events]
    assert phases.count("X") == len(trace.spans["start"])
    assert phases.count("s") == phases.count("f") == len(trace.messages["sent"])
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names == {0: "rank 0 (server)", 1: "rank 1 (worker)", 2: "rank 2 (worker)"}
    for event in events:
        if event["ph"] == "X":
            assert event["cat"] in KINDS and event["dur"] >= 0 and event["name"] in trace.labels
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    for end in (e for e in events if e["ph"] == "f"):
        begin = starts.pop(end["id"])
        assert end["ts"] >= begin["ts"] and end["name"] == begin["name"] and end["bp"] == "e"
    assert not starts
    total = sum(e["dur"] for e in events if e["ph"] == "X") / 1e6
    assert total == pytest.approx(trace.busy().sum())


def test_slices_of_the_chrome_trace_say_why_and_what_came_from_whom_and_flows_what_they_carry():
    run = runs(Experiment(algorithm="asgd", workload="quadratic", steps=5))
    events = json.loads(chrome_trace(run.trace, servers=1))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    waits = [event for event in slices if event["cat"] == "wait"]
    assert waits and all(event["args"]["why"].startswith("waits ") for event in waits)
    assert all(event["args"].get("step", 0) >= 0 for event in slices)
    received = [event["args"] for event in slices if event["cat"] == "communicate" and event["name"] == "receive"]
    assert received and all({"bytes", "from", "to"} <= args.keys() for args in received)
    flows = {(event["args"]["from"], event["name"]) for event in events if event["ph"] == "s"}
    assert ("worker 1", "gradient") in flows and ("server 0", "sgd") in flows


def test_a_message_that_never_arrived_has_no_arrow(small_run):
    arrived = small_run.trace.messages["arrived"].copy()
    arrived[0] = np.nan
    trace = replace(small_run.trace, messages={**small_run.trace.messages, "arrived": arrived})
    events = json.loads(chrome_trace(trace))["traceEvents"]
    assert sum(event["ph"] == "s" for event in events) == len(arrived) - 1


def test_a_trace_too_large_to_open_is_refused(small_run, monkeypatch):
    monkeypatch.setattr(module, "MAX_EVENTS", 10)
    with pytest.raises(ValueError, match="more than 10 events"):
        chrome_trace(small_run.trace)


def test_pictures_say_what_to_install_where_kaleido_is_missing(small_run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "kaleido", None)
    with pytest.raises(ValueError, match=r"pip install kaleido.*svg"):
        export(small_run, "png", tmp_path / "run.png")
    assert not list(tmp_path.iterdir())


def test_the_curves_are_svg_without_a_browser_and_without_another_program(small_run, tmp_path, monkeypatch):
    for program in ("kaleido", "plotly"):
        monkeypatch.setitem(sys.modules, program, None)
    (file,) = export(small_run, "svg", tmp_path / "run.svg")
    root, name = ElementTree.parse(file).getroot(), "{http://www.w3.org/2000/svg}"
    words = [one.text for one in root.iter(f"{name}text")]
    assert words[0].startswith("EASGD on ") and "Loss" in words and "training" in words
    assert any(word.startswith("time, ") for word in words)
    held = small_run.evaluations["loss"]
    lines = [one.get("d") for one in root.iter(f"{name}path")]
    assert len(held) in [line.count("M") + line.count("L") for line in lines]
    assert not any("nan" in line or "inf" in line for line in lines)


def test_the_timeline_is_svg_with_a_bar_for_every_span_in_its_window_an_axis_in_time_and_a_legend(tmp_path):
    run = runs(Experiment.of({"algorithm": "easgd", "workers": 3, "steps": 40, "crash": "1:0.003"}))
    frame, columns = unpack(timeline.frame(run, ""))
    (file,) = export(run, "timeline", tmp_path / "run.timeline.svg")
    root, name = ElementTree.parse(file).getroot(), "{http://www.w3.org/2000/svg}"
    said = [one.text for one in root.iter(f"{name}text")]
    assert {"server 0", "worker 1", "worker 2", "compute", "communicate", "lost", frame["told"]} <= {*said}
    assert sum(bool(re.fullmatch(r"[\d.]+ (ms|µs)", word)) for word in said) >= 3
    assert any(word.startswith("Shown: ") and word.endswith(" ms.") for word in said)
    (begin, end), (_, c) = frame["open"], unpack(columns["timeline"].tobytes())
    inside = int(((c["start"] + c["duration"] > begin) & (c["start"] < end)).sum())
    colours = {look["colour"] for look in frame["look"].values()}
    kinds = len({frame["kinds"][kind] for kind in c["kind"][(c["start"] + c["duration"] > begin) & (c["start"] < end)]})
    bars = [one for one in root.iter(f"{name}rect") if one.get("fill") in colours]
    assert len(bars) == inside + kinds and not any("nan" in (one.get("width") or "") for one in bars)
    assert all(96 <= float(one.get("x")) <= 984 for one in bars if float(one.get("y")) > 74)


def test_a_timeline_as_svg_says_when_its_run_ended_and_not_how_long_the_others_are_drawn_waiting(tmp_path):
    run = runs(Experiment.of({"crash": "2:0.002", "steps": 20}))
    (file,) = export(run, "timeline", tmp_path / "run.timeline.svg")
    end = units.seconds(run.trace.seconds())
    assert f" to {end} of {end}." in file.read_text("utf-8")


def test_a_timeline_as_svg_says_which_ranks_are_done_while_others_go_on(tmp_path):
    run = runs(Experiment.of({"algorithm": "easgd", "slow": "2:3", "steps": 3, "evaluations": 1}))
    (file,) = export(run, "timeline", tmp_path / "run.timeline.svg")
    assert file.read_text("utf-8").count(">done<") == 3  # all workers but the slow one


def test_a_file_that_ends_in_timeline_svg_is_asked_for_as_one():
    assert read("run.timeline.svg") == ("timeline", "run.timeline.svg") and read("run.svg") == ("svg", "run.svg")


def test_a_divergence_is_drawn_as_far_as_it_has_a_place_and_named(tmp_path):
    run = runs(Experiment.of({"workload": "quadratic", "learning_rate": 1000, "steps": 200}))
    text = export(run, "svg", tmp_path / "run.svg")[0].read_text("utf-8")
    assert run.status == "diverged" and "diverged ×" in text and "nan" not in text and "inf" not in text
    assert max(float(number) for number in re.findall(r"[ML]\S+ (-?[\d.]+)", text)) < 1000


def test_json_is_the_experiment(small_run, tmp_path):
    (file,) = export(small_run, "json", tmp_path / "deep" / "run.json")
    assert Experiment.from_json(file.read_text()) == small_run.experiment


def test_an_unknown_form_names_those_there_are(small_run, tmp_path):
    with pytest.raises(ValueError, match="csv, trace, html, learning, svg, timeline, png, json"):
        export(small_run, "pdf", tmp_path / "run.pdf")


def test_a_full_disk_leaves_the_old_file_and_no_part(small_run, tmp_path, monkeypatch):
    target = tmp_path / "run.json"
    target.write_text("old")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        export(small_run, "json", target)
    assert target.read_text() == "old" and [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_the_picture_draws_the_same_curves_as_the_workbench(small_run):
    from experiments.viewer import pictures

    shown = [pictures.Shown("easgd", small_run, 0)]
    described = [pictures.loss(shown, "seconds"), pictures.accuracy(shown, "seconds")]
    figure = module.curves(small_run)
    series = [one for picture in described for one in picture.series]
    for line, one in zip(figure.data, series, strict=True):
        np.testing.assert_array_equal(line.x, one.x)
        np.testing.assert_array_equal(line.y, one.y)
        assert (line.line.color, line.line.dash) == (one.colour, one.dash)
    assert list(figure.layout.xaxis.range) == [described[0].x.least, described[0].x.most]
    assert figure.layout.xaxis.title.text == f"time, {described[0].x.unit}"
