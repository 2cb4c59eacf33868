"""The machines of a run and the wires between them: their places, who talks to whom, and their memory over time.

The shape follows from the roles and the messages of the trace: servers are in the middle of their workers (a star);
ranks that only talk to the next one form a ring, or a line if it does not close; all others are on a circle.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.runs.record import Run
from experiments.runs.script_run import ScriptRun
from experiments.viewer.lanes import group_names, groups, lane_names
from experiments.wording import units
from experiments.wording.rank_names import training_role
from experiments.wording.sentences import capital

DRAWN = 32  # most machines; more ranks are drawn in groups
WIRES = 300  # most wires: the busiest ones
ACROSS = 4  # machines side by side in a line
MOMENTS = 400  # at which the memory of a machine is recorded

SHAPES = {"star": "around {servers}", "ring": "in a ring", "line": "in a line", "circle": "on a circle"}


class Machines(NamedTuple):
    """A topology, as a header and columns for the browser."""

    header: dict
    columns: dict[str, np.ndarray]


def machines(run: Run | ScriptRun) -> Machines:
    """Return the places of a run's machines, the wires between them, and their memory over time.

    Header: shape, names, of (the machine of each rank), x and y from -1 to 1, servers (number of machines that are
    servers), wires (pairs of machines), ports (whether messages pass the machines' ports one after the other), memory
    (the meaning of a full bar, "" if memory is unknown), parts (the runs: each with its first machine, number of
    machines, shape, servers, name and colour), and description. Column held: 255ths of a full bar, (machines, MOMENTS)
    uint8, flat.
    """
    trace, servers = run.trace, run.experiment.servers
    every = lane_names(run)
    some = groups(every, DRAWN)
    of = np.repeat(np.arange(len(some)), [one.stop - one.start for one in some])  # the machine that each rank is in
    names = group_names(every, some)
    count, first = len(names), len({int(group) for group in of[:servers]})
    table = np.zeros((count, count))
    np.add.at(table, (of[trace.messages["src"]], of[trace.messages["dst"]]), trace.messages["bytes"])
    both = np.triu(table + table.T, 1)
    a, b = np.nonzero(both)
    busiest = np.sort(np.argsort(-both[a, b], kind="stable")[:WIRES])
    wires = [(int(a[n]), int(b[n])) for n in busiest]
    shape = _shape(count, first, {(int(s), int(d)) for s, d in zip(a, b, strict=True)})
    x, y = places(shape, count, first)
    held, most = _held(run, of, count)
    header = {
        "shape": shape,
        "names": names,
        "of": of.tolist(),
        "x": x.round(4).tolist(),
        "y": y.round(4).tolist(),
        "servers": first,
        "wires": wires,
        "ports": run.experiment.cluster == "simulated" and not trace.messages["collective"].any(),
        "memory": f"memory held, at most {units.size(most)}" if most else "",
        "parts": [{"first": 0, "count": count, "shape": shape, "servers": first, "name": "", "colour": ""}],
        "description": _described(run, shape, names, first, len(wires), most),
    }
    return Machines(header, {"held": held} if most else {})


def together(runs: Sequence[Run], names: Sequence[str], colours: Sequence[str]) -> Machines:
    """Return the machines of several runs in one picture, the ranks of each run after those of the previous one.

    Memory is omitted, because each run has its own time and its own maximum.
    """
    every = [machines(run).header for run in runs]
    before = np.cumsum([0, *(len(one["names"]) for one in every)]).tolist()
    parts = [
        {**one["parts"][0], "first": first, "name": name, "colour": colour}
        for one, first, name, colour in zip(every, before, names, colours, strict=False)
    ]
    told = [f"{name}: {one['description'].partition(' A bar ')[0]}" for one, name in zip(every, names, strict=True)]
    shifted = list(zip(every, before, strict=False))
    header = {
        "shape": "several",
        **{name: [value for one in every for value in one[name]] for name in ("names", "x", "y")},
        "of": [machine + first for one, first in shifted for machine in one["of"]],
        "wires": [(a + first, b + first) for one, first in shifted for a, b in one["wires"]],
        "servers": 0,
        "ports": all(one["ports"] for one in every),
        "memory": "",
        "parts": parts,
        "description": " ".join(told),
    }
    return Machines(header, {})


def _shape(count: int, servers: int, pairs: set[tuple[int, int]]) -> str:
    """Return the shape of machines whose `pairs` (smaller, larger) exchange messages."""
    if servers:
        return "star"
    chain = {(n, n + 1) for n in range(count - 1)}
    if pairs and pairs <= chain:
        return "line"
    return "ring" if pairs and pairs <= chain | {(0, count - 1)} else "circle"


def places(shape: str, count: int, servers: int) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y of each machine, from -1 to 1, y downwards: clockwise from the top, servers in the middle."""
    if shape == "line":
        row, place = np.divmod(np.arange(count), ACROSS)
        place = np.where(row % 2, ACROSS - 1 - place, place)  # every other row runs backwards
        wide, rows = min(count, ACROSS), row.max() + 1
        return 2 * (place + 0.5) / wide - 1, 2 * (row + 0.5) / rows - 1

    def circle(many: int, radius: float) -> np.ndarray:
        turn = 2 * np.pi * np.arange(many) / max(many, 1)
        return radius * np.stack([np.sin(turn), -np.cos(turn)])

    inner = circle(servers, 0.0 if servers == 1 else 0.35)
    return tuple(np.concatenate([inner, circle(count - servers, 1.0)], axis=1))


def _held(run: Run | ScriptRun, of: np.ndarray, count: int) -> tuple[np.ndarray, int]:
    """Return the memory of each machine at MOMENTS times, flattened, in 255ths of the largest, and the largest in
    bytes. The memory of a machine is that of its fullest rank; `of` has the machine of each rank.
    """
    total, table = max(run.trace.seconds(), 1e-300), np.zeros((count, MOMENTS))
    if not len(run.memory["rank"]):
        return np.zeros(0, np.uint8), 0
    for number, (rows, held) in enumerate(run.holdings()):
        cell = np.minimum((run.memory["seconds"][rows] / total * MOMENTS).astype(int), MOMENTS - 1)
        own = np.zeros(MOMENTS)
        np.maximum.at(own, cell, held.sum(axis=1)[1:])
        known = np.zeros(MOMENTS, bool)
        known[cell] = True
        last = np.maximum.accumulate(np.where(known, np.arange(MOMENTS), -1))  # memory stays until it changes
        own = np.where(last >= 0, own[last], 0.0)
        table[of[number]] = np.maximum(table[of[number]], own)
    most = int(table.max())
    return np.round(255 * table / max(most, 1)).astype(np.uint8).ravel(), most


def _described(run: Run | ScriptRun, shape: str, names: list[str], servers: int, wires: int, most: int) -> str:
    """Return two or three sentences that describe the picture, for screen readers."""
    middle = names[0] if servers == 1 else units.count_with_noun(run.experiment.servers, "server")
    many = run.trace.ranks - run.experiment.servers
    stand = f" {SHAPES[shape].format(servers=middle)}" if many > 1 or servers else ""
    grouped = f", drawn as {len(names)} because there are so many" if len(names) < run.trace.ranks else ""
    wired = units.count_with_noun(wires, "wire") if wires else "no wires"
    beads = ", and beads on the wires are messages" if wires else ""
    memory = f" A bar next to each shows the memory it holds, at most {units.size(most)}." if most else ""
    role = training_role(run.experiment, run.trace.ranks)
    return (
        f"{units.count_with_noun(many, role)}{stand}{grouped}, {wired}. {capital(role)}s fill while they compute{beads}"
        f", at the moment of the timeline's cursor.{memory}"
    )
