import heapq
import random

import pytest

from algorithms.parts.work_queue import WorkQueue


def play(queue, workers, seed, losses=0.0, most_lost=2):
    """Workers at random speeds, some of which are lost; gives how often each portion is in the sum."""
    draw = random.Random(seed)
    held = {worker: [] for worker in range(workers)}  # finished and counted, not handed in
    under_way, counted = {}, []
    free, computing, alive = list(range(workers)), [], workers
    while not queue.is_done:
        for worker in free.copy():
            if queue.assign(worker) is not None:
                free.remove(worker)
                computing.append(worker)
        events = [("finish", w) for w in computing] + [("arrive", w) for w in under_way]
        what, worker = draw.choice(sorted(events))
        if draw.random() < losses and alive > workers - most_lost:
            alive -= 1
            queue.forget_worker(worker)
            held[worker] = []
            under_way.pop(worker, None)
            for crowd in (free, computing):
                if worker in crowd:
                    crowd.remove(worker)
        elif what == "finish":
            computing.remove(worker)
            portion = queue.complete(worker)
            if portion is not None:
                held[worker].append(portion)
            if queue.push_due(worker):
                under_way[worker], held[worker] = held[worker], []
            free.append(worker)
        else:
            counted += under_way.pop(worker)
            queue.confirm(worker)
            if worker in free and queue.push_due(worker):
                under_way[worker], held[worker] = held[worker], []
    return counted


@pytest.mark.parametrize("backups", [False, True])
@pytest.mark.parametrize("every", [1, 3, 100])
@pytest.mark.parametrize("losses", [0.0, 0.05])
def test_every_portion_is_counted_exactly_once_whoever_is_quick_slow_or_lost(backups, every, losses):
    for seed in range(200):
        queue = WorkQueue(17, every, few=4, backups=backups)
        assert sorted(play(queue, 4, seed, losses)) == list(range(17))


def makespan(queue, draws):
    """When the last portion is done by workers whose k-th portion takes `draws[worker][k]`."""
    done, running, free, now = [0] * len(draws), [], list(range(len(draws))), 0.0
    while len(queue.finished_portions) < queue.count:
        for worker in free.copy():
            if queue.assign(worker) is not None:
                free.remove(worker)
                heapq.heappush(running, (now + draws[worker][done[worker]], worker))
        now, worker = heapq.heappop(running)
        done[worker] += 1
        queue.complete(worker)
        free.append(worker)
    return now


def test_with_backups_a_batch_is_never_done_later_than_without_and_rarely_at_the_same_time():
    sooner = 0
    for seed in range(200):
        draw = random.Random(seed)
        draws = [[draw.paretovariate(1.2) for _ in range(50)] for _ in range(5)]
        alone, helped = (makespan(WorkQueue(20, backups=backups), draws) for backups in (False, True))
        assert helped <= alone
        sooner += helped < alone
    assert sooner > 100


def test_small_portions_are_done_sooner_than_equal_shares_if_one_worker_is_slow():
    for slowness in (2, 5, 20):
        shares, small = (
            makespan(WorkQueue(4 * n, backups=False), [[pace / n] * 99 for pace in (1, 1, 1, slowness)]) for n in (1, 8)
        )
        at_best = 4 / (3 + 1 / slowness)  # all busy to the end
        assert shares == slowness and small < shares and small <= at_best + slowness / 8


def test_near_the_end_a_portion_is_given_out_twice_and_the_slower_one_wasted():
    queue = WorkQueue(2)
    assert [queue.assign(worker) for worker in (7, 8, 9)] == [0, 1, 0]
    assert queue.complete(9) == 0
    assert queue.complete(7) is None and queue.duplicates == 1


def test_without_backups_a_free_worker_waits():
    queue = WorkQueue(1, backups=False)
    assert [queue.assign(0), queue.assign(1)] == [0, None]


def test_what_a_lost_worker_had_handed_in_stays():
    queue = WorkQueue(4, every=1)
    queue.assign(0)
    queue.complete(0)
    assert queue.push_due(0)
    queue.confirm(0)
    queue.assign(0)
    queue.forget_worker(0)
    assert queue.summed == {0} and queue.pending == [3, 2, 1]
