"""The event queue of the simulated cluster, without a cluster."""

from cluster.simulated.event_queue import EventQueue


def queue_of(*times):
    """A queue with a call at each of these times, and the list of (now, number of the call) that they fill."""
    queue, happened = EventQueue(lambda: None), []
    for number, time in enumerate(times):
        queue.call(time, lambda number=number: happened.append((queue.now, number)))
    return queue, happened


def test_events_happen_in_the_order_of_time_and_of_scheduling_where_times_are_equal():
    queue, happened = queue_of(2.0, 1.0, 2.0, 0.5, 1.0)
    queue.run()
    assert happened == [(0.5, 3), (1.0, 1), (1.0, 4), (2.0, 0), (2.0, 2)]


def test_an_event_may_schedule_another_one_at_the_same_time():
    queue, happened = queue_of(1.0)
    queue.call(1.0, lambda: queue.call(queue.now, happened.append, "last"))
    queue.run()
    assert happened == [(1.0, 0), "last"]


def test_no_event_happens_after_a_stop():
    queue, happened = queue_of(1.0)
    queue.call(0.5, queue.stop)
    queue.run()
    assert happened == [] and queue.now == 0.5


def test_a_tick_comes_every_256_events():
    ticks = []
    queue = EventQueue(lambda: ticks.append(queue.now))
    for time in range(600):
        queue.call(time, int)
    queue.run()
    assert ticks == [0, 256, 512]
