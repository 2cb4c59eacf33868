"""What a rank has for itself, although all ranks are threads of one process."""

import copy
import os
import random
import sys
import time
import weakref

import numpy as np
import pytest
import torch
import torch.distributed as dist

from cluster.strands.threads import BATON, ThreadStrand
from cluster.torch import simulate


def begin():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def test_a_rank_has_its_own_environment_of_torchrun():
    def look():
        os.environ["MINE"] = os.environ["RANK"]
        begin()
        dist.barrier()
        return [os.environ[name] for name in ("MINE", "RANK", "LOCAL_RANK", "WORLD_SIZE")]

    assert simulate(look, 3).results == [[str(r), str(r), "0", "3"] for r in range(3)]
    assert "MINE" not in os.environ


def test_a_rank_draws_its_own_random_numbers():
    def seed_and_draw(r, between):
        random.seed(r)
        np.random.seed(r)
        torch.manual_seed(r)
        between()  # others seed and draw here
        return random.random(), np.random.rand(), torch.rand(1).item()

    def draw():
        r, _ = begin()
        return seed_and_draw(r, dist.barrier)

    assert simulate(draw, 3).results == [seed_and_draw(r, lambda: None) for r in range(3)]


def test_the_process_has_its_own_state_again_after_a_run():
    before = random.random, time.time, torch.distributed.TCPStore, sys.stdout, torch.get_default_dtype()
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first = torch.rand(1)

    def disturb():
        torch.manual_seed(9)
        torch.set_default_dtype(torch.float64)
        raise SystemExit

    simulate(disturb, 2)
    assert torch.equal(torch.cat([first, torch.rand(1)]), expected)
    assert before == (random.random, time.time, torch.distributed.TCPStore, sys.stdout, torch.get_default_dtype())


def test_the_time_of_a_rank_is_virtual():
    def wait():
        r, _ = begin()
        began = time.perf_counter(), time.monotonic_ns(), time.time()
        time.sleep(1000.0 * (r == 1))
        dist.barrier()
        return time.perf_counter() - began[0], (time.monotonic_ns() - began[1]) / 1e9, time.time() - began[2]

    for took in simulate(wait, 2).results:
        assert all(1000 < seconds < 1000.1 for seconds in took)


def test_what_a_rank_prints_has_its_number_before_it(capsys):
    def speak():
        r, _ = begin()
        print("I am", r)
        sys.stdout.write("no newline")

    outcome = simulate(speak, 2)
    lines = ["rank 0: I am 0", "rank 0: no newline", "rank 1: I am 1", "rank 1: no newline"]
    assert sorted(capsys.readouterr().out.splitlines()) == lines
    assert sorted(outcome.output) == [(0, "I am 0"), (0, "no newline"), (1, "I am 1"), (1, "no newline")]


def test_a_rank_can_copy_its_stdout(capsys):
    def log():
        copy.copy(sys.stdout).write("copied\n")

    simulate(log, 1)
    assert capsys.readouterr().out == "rank 0: copied\n"


def test_a_stream_that_ranks_print_to_outlives_the_run():
    """print() borrows sys.stdout: one that is freed while the caller's thread prints is a segmentation fault."""
    streams = []
    simulate(lambda: streams.extend(weakref.ref(stream) for stream in (sys.stdout, sys.stderr)), 1)
    assert all(stream() for stream in streams)


def test_ranks_share_a_store_and_wait_for_its_values():
    def leave():
        begin()
        store = dist.TCPStore("localhost", 1234, 2, is_master=dist.get_rank() == 0)
        if dist.get_rank() == 1:
            time.sleep(1)
            store.set("key", "value")
        common = dist.distributed_c10d._get_default_store()  # of which Python keeps no reference
        common.set("rank", "0")
        return store.get("key"), store.add("count", 2) > 0, common.get("rank"), time.time()

    for *values, now in simulate(leave, 2).results:
        assert values == [b"value", True, b"0"] and now >= 1


def test_strands_hand_over_one_baton():
    BATON.holder, order = None, []
    hub = ThreadStrand.getcurrent()

    def body(name, other):
        order.append(name)
        if other:
            other[0].switch()
        order.append(f"{name} again")

    second = ThreadStrand(lambda: body("second", None), hub)
    first = ThreadStrand(lambda: body("first", [second]), hub)
    first.switch()
    assert order == ["first", "second", "second again"], "the hub continues when a strand ends"
    first.switch()
    assert order[3:] == ["first again"] and first.dead and second.dead
    BATON.holder = None


def test_a_run_inside_a_rank_is_refused():
    with pytest.raises(Exception, match="being simulated"):
        simulate(lambda: simulate(begin, 1), 1)
