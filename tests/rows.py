"""Rows of modules in tests: what one sees of decoupled learning in a run."""

from __future__ import annotations

import numpy as np

import workloads
from cluster.network import Link, Network
from tests.training import ScalarChain
from tracing import HELD

CHAIN = ScalarChain(w=(0.5, 0.6, 0.7, 1.2), x=np.linspace(0.5, 1.5, 12))
IDEAL = Network(Link(0.0, float("inf")), Link(0.0, float("inf")))


def digits(shuffle=True, **model):
    """Digits for a small deep model of six layers, in float64."""
    module = workloads.find("digits")
    model = {"model": "residual", "depth": 4, "width": 8, "activation": "tanh"} | model
    workload = module.build(module.Settings(**model), np.dtype("float64"))
    workload.shuffle = shuffle
    return workload


def numbers(text):
    return [float(word) for word in text.split()]


def versions(run, workload, rank):
    """The weights of a module after 0, 1, 2 ... updates."""
    part = workload.split(len(run.outcome.event_logs))[rank]
    return [part.start(0), *(row[4] for row in run.outcome.event_logs[rank].reports)]


def after_iteration(run, t):
    """The weights when t mini-batches have gone forward: module k of K has made t - (K - k) updates then."""
    modules = len(run.outcome.event_logs)
    made = [t - (modules - 1 - rank) for rank in range(modules)]
    return [event_log.reports[n - 1][4][0] for event_log, n in zip(run.outcome.event_logs, made, strict=True)]


def passes(run, rank):
    """The passes of one rank, in order: "F0 F1 B0"."""
    return " ".join(row[4] for row in run.outcome.event_logs[rank].spans if row[4][0] in "FBR")


def period(run, of=10):
    """Seconds of a step in a full row: from one forward pass of module 0 to that `of` steps later."""
    start = {row[4]: row[1] for row in run.outcome.event_logs[0].spans}
    return (start[f"F{20 + of}"] - start["F20"]) / of


def times(run):
    """(T_F, T_B): a forward and a backward through the whole model."""
    spans = [row for event_log in run.outcome.event_logs for row in event_log.spans]
    return [sum(row[2] - row[1] for row in spans if row[4] == f"{kind}5") for kind in "FB"]


def most(run, kind):
    """The most bytes of a kind that each rank held at one time."""
    return [max((row[3] for row in j.memory if HELD[row[2]] == kind), default=0) for j in run.outcome.event_logs]


def measured(run, rank, quantity):
    """(steps, values) of what a rank has measured."""
    rows = [(row[0], row[3]) for row in run.outcome.event_logs[rank].measures if row[2] == quantity]
    return [row[0] for row in rows], np.array([row[1] for row in rows])
