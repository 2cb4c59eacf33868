"""The recorder: what it writes is in the event log, on no task and no cluster."""

import numpy as np
import pytest

from cluster.event_log import EventLog
from workloads.recorder import Diverged, OutOfMemory, Recorder


def recorder(**more) -> Recorder:
    return Recorder(EventLog(3, lambda: 0.5), 4, **more)


def test_a_recorder_needs_no_task():
    r = recorder()
    r.loss(2.0, 8)
    r.record_update(1)
    r.measure("spread", 3)
    r.report(np.ones(2), slice(1, 3))
    log = r.event_log
    assert log.losses == [(-1, 8, 0.5, 2.0)] and log.applied == [(0.5, 1)]
    assert log.measures == [(-1, 0.5, "spread", 3.0)] and log.reports[0][:4] == (1, 0.5, 1, 3)


def test_an_update_is_a_new_version_of_the_model_and_its_parts_are_one():
    r = recorder()
    for new in (True, True, False):
        for part in (slice(0, 2), slice(2, 4)):
            r.report(np.ones(2), part, new)
    assert r.event_log.updates == 2
    r.shared_updates(5)
    assert r.event_log.shared_updates == 5


def test_a_loss_that_is_not_finite_does_not_enter_the_moving_mean():
    r = recorder()
    with pytest.raises(Diverged, match="on rank 3"):
        r.loss(np.nan, 1)
    assert not r.recent and len(r.event_log.losses) == 1


def test_more_memory_than_a_rank_has_is_an_error_of_its_own_kind():
    with pytest.raises(OutOfMemory, match="shard the model over more ranks"):
        recorder(memory=10).holds("parameters", 11)


def test_only_a_restarted_rank_continues_the_counts_of_its_event_log():
    r = recorder()
    for loss in (1.0, 2.0):
        r.loss(loss, 8)
    r = Recorder(r.event_log, 4, before=r.event_log.losses)
    assert (r.batches, r.samples, list(r.recent)) == (2, 16, [1.0, 2.0])
    assert Recorder(r.event_log, 4).batches == 0


def test_of_a_part_by_its_places_the_places_are_kept_once():
    r = recorder()
    r.report(np.ones(2), np.array([0, 3]))
    r.report(np.ones(0), np.array([], int))
    assert r.event_log.places[0, 2].tolist() == [0, 3] and len(r.event_log.reports) == 1
