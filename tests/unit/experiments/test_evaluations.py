"""From reports to models, and from times to steps, samples and bytes."""

import numpy as np

from cluster.event_log import EventLog
from experiments.runs.evaluations import Axes, assemble, complete, evenly, final, table
from tracing import LOSSES, MESSAGES, join_tables, sort_rows
from workloads.workload import Evaluation


def event_log(rank, *reports):
    """Reports as (index, seconds, start, stop, value)."""
    j = EventLog(rank, lambda: 0.0)
    for index, seconds, start, stop, value in reports:
        j.reports.append((index, seconds, start, stop, np.full(stop - start, value, np.float32)))
    return j


def test_parts_that_do_not_lie_in_a_row_are_put_where_they_belong():
    event_logs = []
    for rank, places in enumerate(([0, 3], [1, 2, 4])):
        j = EventLog(rank, lambda: 0.0)
        j.places[places[0], places[0] + len(places)] = np.array(places)
        j.reports.append((1, 0.5, places[0], places[0] + len(places), 10.0 * np.array(places)))
        event_logs.append(j)
    assert assemble(event_logs, 1, 5).w.tolist() == [0, 10, 20, 30, 40]
    assert assemble(event_logs[:1], 1, 5) is None
    assert final(event_logs, [np.array([7.0, 8.0]), np.array([1.0, 2.0, 3.0])], 5).tolist() == [7, 1, 2, 8, 3]


def test_parts_with_one_index_are_one_model_at_the_time_of_the_last():
    first, second = event_log(0, (1, 0.5, 0, 2, 10)), event_log(1, (1, 0.7, 2, 5, 20))
    model = assemble([first, second], 1, 5)
    assert model.seconds == 0.7 and model.w.tolist() == [10, 10, 20, 20, 20]


def test_several_reports_of_one_part_are_averaged():
    model = assemble([event_log(0, (3, 0.1, 0, 2, 1)), event_log(1, (3, 0.2, 0, 2, 4))], 3, 2)
    assert model.w.tolist() == [2.5, 2.5]


def test_a_model_with_a_part_missing_is_none():
    assert assemble([event_log(0, (1, 0.5, 0, 2, 10))], 1, 5) is None


def test_a_single_reporter_is_passed_on_bit_for_bit():
    w = np.array([0.1, -0.0, 1e-40, 3e38], np.float32)
    j = EventLog(0, lambda: 0.0)
    j.reports.append((1, 0.0, 0, 4, w))
    assert assemble([j], 1, 4).w.tobytes() == w.tobytes()


def test_a_running_rank_is_waited_for_and_an_ended_one_is_not():
    fast = event_log(0, *((i, i, 0, 2, i) for i in (1, 2, 3, 4)))
    slow = event_log(1, *((i, i, 0, 2, i) for i in (1, 2)))
    assert complete([fast, slow], over=False) == [1, 2]
    assert complete([fast, slow], over=True) == [1, 2, 3, 4]


def test_indices_that_one_rank_has_thinned_away_are_left_out():
    thinned = event_log(0, *((i, i, 0, 2, i) for i in (2, 4, 6, 8)))
    whole = event_log(1, *((i, i, 2, 4, i) for i in (1, 2, 3, 4, 5)))
    assert complete([thinned, whole], over=True) == [2, 4, 6, 8]
    assert complete([thinned, whole], over=False) == [2, 4]


def test_ranks_that_never_report_do_not_count():
    assert complete([event_log(0, (1, 0, 0, 2, 1)), event_log(1)], over=False) == [1]
    assert complete([event_log(0)], over=True) == []


def test_evenly_chooses_as_many_as_asked_and_the_last():
    chosen = evenly([*range(1, 81), *range(82, 161, 2), *range(164, 202, 4)], 10)
    assert chosen == [20, 40, 60, 80, 100, 120, 140, 160, 180, 200]
    assert evenly([3, 5], 10) == [3, 5] and evenly(range(1, 1000), 1) == [999] and evenly([], 5) == []


def test_the_final_model_is_what_reporting_ranks_returned():
    shards = [event_log(0, (1, 0, 0, 2, 1)), event_log(1, (1, 0, 2, 5, 1)), event_log(2)]
    results = [np.full(2, 7, np.float32), np.full(3, 8, np.float32), np.full(5, 99, np.float32)]
    assert final(shards, results, 5).tolist() == [7, 7, 8, 8, 8]


def test_a_rank_with_several_parts_returns_them_one_after_the_other():
    two = event_log(0, (1, 0, 3, 5, 1), (1, 0, 0, 2, 1))
    one = event_log(1, (1, 0, 2, 3, 1))
    results = [np.array([1, 2, 4, 5], np.float32), np.array([3], np.float32)]
    assert final([two, one], results, 5).tolist() == [1, 2, 3, 4, 5]


def test_without_a_result_the_final_model_is_the_last_report():
    assert final([event_log(0, (1, 0, 0, 2, 1), (2, 1, 0, 2, 5))], [None], 2).tolist() == [5, 5]
    assert final([event_log(0)], [np.zeros(2, np.float32)], 2) is None


def test_a_lost_replica_is_left_out_of_the_final_average():
    replicas = [event_log(0, (1, 0, 0, 2, 1)), event_log(1, (1, 0, 0, 2, 100))]
    assert final(replicas, [np.full(2, 3, np.float32), None], 2).tolist() == [3, 3]


def test_an_evaluation_knows_its_step_samples_and_bytes_from_what_was_recorded_by_then():
    zero, one = (EventLog(rank, lambda: 0.0) for rank in range(2))
    zero.losses += [(0, 32, 1.0, 0.5), (1, 64, 2.0, 0.4)]
    one.losses += [(0, 32, 1.5, 0.5), (1, 64, 3.0, 0.4)]
    zero.messages.append((1, 0, 100, 0.5, 0.6, False))
    one.messages.append((0, 0, 50, 2.5, 2.6, False))
    axes = Axes(
        sort_rows(join_tables((zero, one), "losses", LOSSES, "i4 i4 i8 f8 f8"), "seconds", "rank"),
        sort_rows(join_tables((zero, one), "messages", MESSAGES, "i4 i4 i4 i8 f8 f8 ?"), "sent", "src"),
    )
    assert axes.at(0.0) == (0.0, 0, 0)
    assert axes.at(1.0) == (0.5, 32, 100)
    assert axes.at(2.0) == (1.5, 96, 100)
    assert axes.at(9.0) == (2.0, 128, 150)


def test_a_run_without_losses_or_messages_has_axes_of_zero():
    tables = ("losses", LOSSES, "i4 i4 i8 f8 f8"), ("messages", MESSAGES, "i4 i4 i4 i8 f8 f8 ?")
    empty = Axes(*(join_tables([], *table) for table in tables))
    assert empty.at(3.0) == (0.0, 0, 0)
    rows = table([], lambda w: Evaluation(0.0, 0.0), empty)
    assert all(len(column) == 0 for column in rows.values())
