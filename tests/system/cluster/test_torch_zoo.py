"""Programs of torch.distributed give on simulated ranks what they give on real processes (gloo)."""

import pytest

from tests import torch_zoo
from tests.tiers import slow_except
from tests.torch_zoo.compare import difference, on_processes, simulated


def test_two_simulated_ranks_give_the_bits_of_two_processes():
    real = on_processes(2, torch_zoo.QUICK)
    for name in torch_zoo.QUICK:
        assert difference(simulated(2, name).results, real[name]) == 0.0, name


@pytest.mark.parametrize("name", slow_except(2, (*torch_zoo.QUICK_TUTORIALS, *torch_zoo.TUTORIALS)))
def test_tutorials_run_on_one_rank_and_on_four_and_every_rank_takes_part(name):
    for size in (1, 4):
        done = simulated(size, name)
        steps = done.summary.steps
        assert steps > 0 and all(log.step == steps for log in done.event_logs), size
        assert size == 1 or done.summary.sent.min() > 0
