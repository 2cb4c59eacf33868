import numpy as np
import pytest

from tests.training import ScalarChain, train
from theory.balance import striped_speed_up

SPEECH = [429 * 2048, *[2048 * 2048] * 6, 2048 * 9304]  # weights of each layer: seven hidden ones and the softmax


def test_the_top_layer_limits_four_gpus_and_striping_it_lifts_the_limit():
    assert SPEECH[-1] / sum(SPEECH) > 0.4
    assert striped_speed_up(SPEECH, 4) == pytest.approx(sum(SPEECH) / SPEECH[-1]) == pytest.approx(2.37, abs=0.01)
    assert striped_speed_up(SPEECH, 4, stripes=2) > 3


def test_momentum_makes_a_delay_dearer():
    chain = ScalarChain(w=(0.9, 1.0, 1.0, 1.1), x=np.ones(48))

    def worst(momentum):
        run = train(
            "chen", chain, 4, {"learning_rate": 0.1 * (1 - momentum), "momentum": momentum}, steps=200, fails=True
        )
        return max(row[3] for row in run.outcome.event_logs[-1].losses[100:] or [(0, 0, 0, np.inf)])

    assert worst(0.0) < 1e-6 < worst(0.9)
