"""Orders of ops, against the classes of torch.distributed.pipelining that make the same schedules."""

from itertools import product

import pytest

from algorithms.parts.pipeline.ops import Op
from theory import schedules

KINDS = {"FORWARD": "F", "FULL_BACKWARD": "B", "BACKWARD_INPUT": "I", "BACKWARD_WEIGHT": "W"}
LOOPED = ("interleaved", "looped_bfs", "zb_interleaved")


def torchs(name, ranks, chunks, pieces):
    """The ops of all ranks by torch's class, made without processes: only what its order is computed from."""
    from torch.distributed.pipelining import schedules as theirs

    found = []
    for rank in range(ranks):
        made = object.__new__(getattr(theirs, name))
        made._stages, made.n_local_stages, made.rank = [None] * pieces, pieces, rank
        made._num_stages = made.num_stages = ranks * pieces
        made.pp_group_size, made._n_microbatches = ranks, chunks
        made.number_of_rounds = max(1, chunks // ranks)
        made.microbatches_per_round = chunks // made.number_of_rounds
        actions = made._calculate_single_rank_operations(rank)
        found.append([Op(KINDS[one[1].name], one[0], one[2]) for one in actions if one is not None])
    return found


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("interleaved", "ScheduleInterleaved1F1B"),
        ("looped_bfs", "ScheduleLoopedBFS"),
        ("zb_interleaved", "ScheduleInterleavedZeroBubble"),
        ("zb_v", "ScheduleZBVZeroBubble"),
    ],
)
def test_the_order_is_that_of_torch(name, theirs):
    compared = 0
    for ranks, chunks, pieces in product((1, 2, 3, 4, 8), range(1, 17), (1, 2, 3)):
        options = {"pieces": pieces} if name in LOOPED else {}
        if (pieces != 2 and not options) or (name != "looped_bfs" and chunks % max(1, chunks // ranks)):
            continue
        ours = schedules.lists(name, ranks, chunks, **options)
        passes = [[op for op in ops if op.kind != "U"] for ops in ours]
        assert passes == torchs(theirs, ranks, chunks, pieces), (ranks, chunks, pieces)
        compared += 1
    assert compared > 30
