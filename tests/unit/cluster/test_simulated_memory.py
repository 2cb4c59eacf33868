"""Two additions to one piece of a shared vector: which counts, by when each was loaded and stored."""

from types import SimpleNamespace

import numpy as np
import pytest

from cluster.simulated import memory as simulated
from cluster.simulated.memory import Memory, SimulatedVector


@pytest.mark.parametrize(
    ("loaded", "stored", "vector", "before", "lost"),
    [
        (1, 2, 111, 101, 0),  # theirs was stored before ours was loaded
        (2, 3.5, 110, 100, 1),  # ours was loaded before theirs was stored, and is stored last: theirs is overwritten
        (3.5, 5, 101, 100, 1),  # the other way round
        (4.5, 5, 111, 110, 0),  # theirs is loaded when ours has been stored
    ],
    ids=["after", "theirs_lost", "ours_lost", "ahead"],
)
def test_what_is_stored_first_is_lost_where_two_additions_meet(monkeypatch, loaded, stored, vector, before, lost):
    """Theirs added 1 to 100, and ours, loaded at 3 and stored at 4 s, adds 10."""
    monkeypatch.setattr(simulated, "MEETING", 0.5)
    memory = Memory(np.full(1, 100.0))
    ((place, additions, cell, _),) = memory.cells(slice(None))
    memory.vector += 1
    additions.loaded[cell], additions.stored[cell] = loaded, stored
    comm = SimpleNamespace(_actor=SimpleNamespace(now=4.0), _rank=SimpleNamespace(seed=0, number=0))
    ours = SimulatedVector(comm, memory, "none")
    ours._began = 2.0
    assert ours._store_piece(place, additions, cell.start, np.zeros(1), np.full(1, 10.0)) == lost
    assert (memory.vector.item(), memory.before.item()) == (vector, before)
    ends = max(stored, 4)
    assert additions.stored[cell] == [ends] and additions.loaded[cell] == [3.0 if ends == 4 else loaded]
