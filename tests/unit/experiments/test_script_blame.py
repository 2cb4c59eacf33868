"""Who is named for the waits of a script's run: the rank that was slow, and nobody if all are alike."""

import re
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.distributed as dist

from cluster.faults import Faults
from cluster.script_summary import counted_spans
from cluster.torch import simulate
from cluster.waiting.causes import causes
from cluster.waiting.pieces import UNKNOWN
from experiments.viewer import script_words, waits
from experiments.wording.script_summary import lines, share_of_time
from installation import ROOT
from tests.tiers import slow_except
from tracing import WAIT

SLOW = 2
WAITS = r"\d+ ranks wait|rank \d+ waits (?!most)"


@cache
def outcome(name, ranks, slow=0, network="1GbE", steps=4):
    faults = Faults(slow={SLOW: float(slow)} if slow else {})
    if name.startswith("zoo "):
        from tests.torch_zoo.programs import PROGRAMS

        script = PROGRAMS[name.removeprefix("zoo ")]
    else:
        script = str(ROOT / "docs" / "scripts" / f"{name}.py")
    return simulate(script, ranks, network=network, faults=faults, steps=steps)


def sentences(done):
    """Return headline, lines of the summary on waits, and the sentence of the timeline."""
    trace, summary = done.trace, done.summary
    names = [f"rank {rank}" for rank in range(summary.ranks)]
    why = causes(trace, done.recorded.waits)
    told = waits.totals_of(trace, why, names, counted_spans(trace, summary.steps))
    run = SimpleNamespace(status="finished", summary=summary)
    return script_words.headline(run), [text for _, text in lines(summary) if re.match(WAITS, text)], told


@pytest.mark.parametrize(("name", "ranks"), [("ddp", 8), ("fsdp2", 8), ("pipeline", 4), ("ring", 8)])
def test_a_slow_rank_is_named_first_in_headline_summary_and_timeline(name, ranks):
    headline, summary, told = sentences(outcome(name, ranks, slow=8, network="10GbE"))
    assert f"rank {SLOW} makes the others wait" in headline
    assert f"for rank {SLOW} in " in summary[0]
    assert re.findall(r"caused by rank (\d)", told)[0] == str(SLOW)


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        *[("ddp", 2), ("fsdp2", 4), ("ring", 8), ("zoo ddp", 4)],
        *slow_except(0, [("ddp", 4), ("ddp", 16), ("fsdp2", 8), ("ring", 2)]),
    ],
)
def test_nobody_is_blamed_where_all_ranks_are_alike(name, ranks):
    for network in ("1GbE", "10GbE"):
        headline, summary, told = sentences(outcome(name, ranks, network=network))
        assert "no rank keeps the others waiting" in headline
        assert not any("for rank" in text for text in summary)
        assert "caused by" not in told


def test_a_wait_for_a_rank_that_takes_under_a_hundredth_of_the_time_is_not_worth_a_line():
    done = outcome("fsdp2", 4, network="10GbE", steps=12)
    assert any(one.culprit >= 0 for one in done.summary.waits), "ten rows on four ranks: one updates fewer"
    assert sentences(done)[1] == []


@pytest.mark.parametrize("ranks", [4, 8])
def test_a_rank_that_computes_on_after_it_joined_is_compared_as_of_when_it_joined(ranks):
    done = outcome("zoo ddp", ranks, network="10GbE")
    assert any(one.ready < one.start for one in done.recorded.waits), "buckets overlap with backward"
    late = [one for one in done.summary.waits if one.culprit >= 0 and one.seconds > 1e-12]
    assert not late, "all ranks do the same work, and none of it takes longer on one of them"


def test_ranks_that_send_to_each_other_in_time_do_not_wait():
    for ranks in (2, 8):
        summary = outcome("ring", ranks).summary
        assert summary.wait.tolist() == [0.0] * ranks
        assert summary.communicate.min() > 0


def test_the_first_step_is_left_out_of_the_waits_if_there_are_others():
    one, two = (outcome("ddp", 4, steps=steps).summary for steps in (1, 2))
    first = sum(wait.seconds for wait in one.waits)
    assert first > 0.1 * one.ranks * one.waits_over, "DDP's first broadcast reaches the ranks one after the other"
    assert two.wait.sum() > first > 10 * sum(wait.seconds for wait in two.waits)
    assert two.waits_over < two.seconds - one.waits_over / 2


def test_the_waits_add_up_to_the_time_that_ranks_wait():
    for name, ranks in (("pipeline", 4), ("ring", 8), ("ddp", 8)):
        done = outcome(name, ranks, slow=8, network="10GbE")
        spans = done.trace.spans
        counted = counted_spans(done.trace, done.summary.steps) & (spans["kind"] == WAIT)
        waited = (spans["end"] - spans["start"])[counted].sum()
        assert sum(wait.seconds for wait in done.summary.waits) == pytest.approx(waited), name


def test_the_shares_of_time_add_up_also_where_ranks_end_early():
    def ends_early():
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        torch.ones(100, 100) @ torch.ones(100, 100 * (1 + 8 * dist.get_rank()))

    summary = simulate(ends_early, 2).summary
    total = summary.compute + summary.communicate + summary.wait + summary.idle
    assert np.allclose(total, summary.seconds) and summary.idle[0] > 0
    assert "idle or blocked" in share_of_time(summary)
    shares = [float(share) for share in re.findall(r"([\d.]+) %", share_of_time(summary))]
    assert sum(shares) == pytest.approx(100, abs=0.2)


def test_a_mean_over_several_ranks_is_called_one():
    _, summary, _ = sentences(outcome("ddp", 8, slow=8, network="10GbE"))
    assert " on average" in summary[0] and " each" not in summary[0]
    assert all((" on average" in text) == (not text.startswith("rank ")) for text in summary)


def test_no_rank_is_said_to_wait_for_itself():
    def gathers_twice():
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        matrix = torch.zeros(200, 200)
        for _ in range(3):
            _ = matrix @ matrix
            for size in (100_000, 10_000):  # a late rank is through with the first before the others are
                dist.all_gather([torch.zeros(size) for _ in range(4)], torch.zeros(size))

    summary = simulate(gathers_twice, 4, faults=Faults(slow={SLOW: 4.0})).summary
    named = [wait for wait in summary.waits if wait.culprit == SLOW]
    assert named and summary.wait[SLOW] > 0
    assert all(wait.ranks < 4 and wait.waiter != SLOW for wait in named)


def test_the_only_rank_that_waits_is_named():
    waits = outcome("pipeline", 4, slow=8, network="10GbE").summary.waits
    assert all((wait.waiter >= 0) == (wait.ranks == 1) for wait in waits)
    assert (1, 0) in {(wait.culprit, wait.waiter) for wait in waits}, "the first stage waits for the second"


def test_no_wait_is_left_unexplained():
    for name, ranks in (("ddp", 8), ("pipeline", 4), ("ring", 8)):
        done = outcome(name, ranks, slow=8, network="10GbE")
        assert causes(done.trace, done.recorded.waits).totals[:, UNKNOWN].sum() == 0, name


def test_a_delay_that_travels_along_a_ring_is_charged_to_the_rank_where_it_arose():
    summary = outcome("ring", 16, slow=8, network="10GbE").summary
    receives = [wait for wait in summary.waits if wait.what == "receive"]
    slow = sum(wait.seconds for wait in receives if wait.culprit == SLOW)
    assert slow > 0.9 * sum(wait.seconds for wait in receives)


def test_a_slow_rank_is_named_and_not_the_network_where_a_ring_of_many_ranks_passes_its_delay_on():
    def gathers():
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        optimizer = torch.optim.SGD([weight := torch.nn.Parameter(torch.zeros(1))])
        parts, matrix = [torch.zeros(100) for _ in range(dist.get_world_size())], torch.zeros(100, 100)
        for _ in range(2):
            for _ in range(6):
                _ = matrix @ matrix
                dist.all_gather(parts, torch.zeros(100))
            weight.sum().backward()
            optimizer.step()

    alike, slowed = (simulate(gathers, 32, network="10GbE", faults=Faults(slow=slow)) for slow in ({}, {SLOW: 4.0}))
    waits, costs = slowed.summary.seconds_by_culprit(), slowed.summary.seconds - alike.summary.seconds
    total = sum(wait.seconds for wait in slowed.summary.waits)
    assert waits[SLOW] > 0.9 * total
    assert slowed.summary.wait.mean() < 1.2 * costs, "what others exchange before it comes is no wait"


def test_a_slow_operation_is_compared_with_the_same_one_of_other_ranks_and_not_with_others_of_its_label():
    def work():
        dist.init_process_group()
        for _ in range(3):
            torch.ones(256, 256) @ torch.ones(256, 256)
            for _ in range(8):
                dist.all_reduce(torch.ones(3) + 1)

    done = simulate(work, 4, faults=Faults(slow={SLOW: 8.0}))
    why = causes(done.trace, done.recorded.waits)
    factors = why.factor[(why.rank == SLOW) & (why.factor > 0)]
    assert len(factors) and np.allclose(factors, 8.0)
