from dataclasses import replace

import numpy as np
import pytest

from experiments.specification.experiment import Experiment
from experiments.viewer.canvases import timeline, topology
from experiments.viewer.canvases.topology import DRAWN, MOMENTS, machines
from experiments.viewer.column_codec import unpack


@pytest.fixture
def seen(made):
    """seen(pairs, ...) gives the header of a run whose ranks exchange messages in these pairs, and its columns."""

    def header(pairs, **experiment):
        run = made(Experiment.of(experiment))
        src, dst = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
        some = np.zeros(len(pairs), int)
        messages = {name: column[some] for name, column in run.trace.messages.items()} | {"src": src, "dst": dst}
        return machines(replace(run, trace=replace(run.trace, messages=messages)))

    return header


RING = [(0, 1), (1, 2), (2, 3), (3, 0)]


@pytest.mark.parametrize(
    ("pairs", "shape"), [(RING, "ring"), (RING[:3], "line"), ([*RING, (0, 2)], "circle"), ([(1, 0), (2, 1)], "line")],
    ids=("ring", "line", "graph", "backwards"),
)  # fmt: skip
def test_the_shape_comes_from_who_sends_to_whom(seen, pairs, shape):
    header, _ = seen(pairs, workers=4)
    assert header["shape"] == shape
    assert header["wires"] == sorted({tuple(sorted(pair)) for pair in pairs})


def test_a_server_stands_in_the_middle_and_its_workers_around_it(seen):
    header, _ = seen([(0, 1), (1, 0), (0, 2), (0, 3)], algorithm="asgd", workers=3)
    assert header["shape"] == "star" and header["servers"] == 1
    assert (header["x"][0], header["y"][0]) == (0, 0)
    np.testing.assert_allclose(np.hypot(header["x"][1:], header["y"][1:]), 1, atol=1e-3)


def test_no_two_machines_stand_at_one_place(seen):
    for pairs, how in (
        (RING, {"workers": 30}),
        (RING[:3], {"workers": 30}),
        (RING, {"workers": 9, "algorithm": "asgd"}),
    ):
        header, _ = seen(pairs, **how)
        places = set(zip(header["x"], header["y"], strict=True))
        assert len(places) == len(header["names"]) and max(map(abs, header["x"] + header["y"])) <= 1


def test_more_machines_than_can_be_told_apart_are_drawn_in_groups(seen):
    header, _ = seen([(0, 50), (99, 0)], algorithm="asgd", workers=99, batch=8)
    assert len(header["names"]) <= DRAWN and len(header["of"]) == 100
    assert header["of"][0] == 0 and header["of"].count(0) == 1, "the server stands alone"
    assert header["names"][0] == "server 0" and header["names"][1].startswith("workers 1-")
    assert sorted(set(header["of"])) == list(range(len(header["names"])))


def test_a_machine_holds_what_its_rank_recorded_last(made):
    run = made(Experiment(workers=2))
    rank, seconds = np.array([0, 0, 1], "i4"), np.array([0.0, 0.5, 0.0]) * run.trace.seconds()
    rows = {
        "rank": rank,
        "step": rank,
        "seconds": seconds,
        "kind": np.zeros(3, "i1"),
        "bytes": np.array([100, 200, 50]),
    }
    header, columns = machines(replace(run, memory=rows))
    held = columns["held"].reshape(2, MOMENTS) / 255 * 200
    np.testing.assert_allclose(
        held[:, [0, MOMENTS // 2 - 1, MOMENTS // 2, -1]], [[100, 100, 200, 200], [50] * 4], atol=1
    )
    assert header["memory"] == "memory held, at most 200 B"


def test_the_machines_of_a_run_come_with_its_timeline(made):
    header, columns = unpack(timeline.frame(made(Experiment(algorithm="easgd", workers=3)), "name"))
    assert header["machines"]["description"].startswith("3 workers around server 0")
    assert header["machines"]["ports"] is True
    assert ("held" in columns) is bool(header["machines"]["memory"])
    assert len(columns.get("held", [])) % topology.MOMENTS == 0


def test_a_picture_of_machines_counts_them_and_not_the_groups_that_it_draws(made):
    def said(**how):
        return machines(made(Experiment(**how))).header["description"]

    assert said(algorithm="sgd", workers=1).startswith("1 worker, no wires. Workers fill while they compute, at the")
    assert said(workers=2).startswith("2 workers in a line, 1 wire.")
    many = said(algorithm="asgd", workers=40)
    assert many.startswith(f"40 workers around server 0, drawn as {DRAWN} because there are so many, ")
