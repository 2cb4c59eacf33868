"""Two additions to one piece of a shared vector: which counts, by when each was loaded and stored."""

import numpy as np
import pytest

from cluster.simulated import cells


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
    monkeypatch.setattr(cells, "MEETING", 0.5)
    now, then = np.full(1, 101.0), np.full(1, 100.0)
    piece = cells.VectorPiece(now, then, slice(0, 1))
    piece.loaded, piece.stored = loaded, stored
    assert piece.store(np.zeros(1), np.full(1, 10.0), began=2, read=0, writing=3, stored=4) == lost
    assert (now.item(), then.item()) == (vector, before)
    assert (piece.loaded, piece.stored) == ((loaded, stored) if stored > 4 else (3, 4))
