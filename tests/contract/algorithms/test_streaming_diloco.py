"""Numbers of torchft's regression test (local_sgd, commit 7eb7087) and of an independent program in float64."""

from itertools import chain

import numpy as np
import pytest

from algorithms.averaging.streaming_diloco import Settings, check
from algorithms.parts.fragments import fragments
from cluster.network import NETWORKS
from tests.training import ScalarChain, Slope, Springs, train
from tracing import COMPUTE

PLAIN = {"update": "sgd", "learning_rate": 1.0, "outer_rate": 2.0, "outer_momentum": 0, "period": 6}
TORCHFT = {  # overlap, share kept: w before inner steps 4, 7, 10, 13 and 16, and x after steps 3, 6, 9 and 12
    (0, 0.0): ([(-11, -5), (-17, -23), (-35, -29), (-41, -47), (-59, -53)],
                [(-11, 1), (-11, -23), (-35, -23), (-35, -47)]),
    (0, 0.5): ([(-8, -5), (-14, -17), (-24.5, -23), (-30.5, -32), (-40.25, -38)],
                [(-11, 1), (-11, -23), (-29, -23), (-29, -35)]),
    (0, 1.0): ([(-5, -5), (-11, -11), (-17, -17), (-23, -23), (-29, -29)],
                [(-11, 1), (-11, -23), (-23, -23), (-23, -23)]),
    (1, 0.0): ([(-7, -5), (-13, -19), (-27, -25), (-33, -39), (-47, -45)],
                [(-7, 1), (-7, -19), (-27, -19), (-27, -39)]),
    (1, 0.5): ([(-6, -5), (-12, -15), (-21.5, -21), (-27.5, -29), (-35.75, -35)],
                [(-7, 1), (-7, -19), (-25, -19), (-25, -31)]),
    (1, 1.0): ([(-5, -5), (-11, -11), (-17, -17), (-23, -23), (-29, -29)],
                [(-7, 1), (-7, -19), (-23, -19), (-23, -23)]),
}  # fmt: skip


def reported(run):
    return np.array([row[4] for row in run.outcome.event_logs[0].reports])


@pytest.mark.parametrize(("overlap", "keep"), TORCHFT)
def test_it_reproduces_torchfts_regression_test(overlap, keep):
    slopes, (seen, after) = (Slope(2), Slope(2)), TORCHFT[overlap, keep]
    settings = PLAIN | {"fragments": 2, "overlap": overlap, "own_share": keep}
    x = reported(train("streaming_diloco", lambda rank: slopes[rank], 2, settings, steps=16))
    assert np.allclose(slopes[0].seen[3:16:3], seen) and np.allclose(x[:4], after)


def test_two_workers_with_unlike_curvatures_meet_as_in_an_independent_program():
    springs = [
        Springs([centre] * 2, starts=[0.0], parameters=2, curvature=h) for centre, h in ((1.0, 1.0), (-2.0, 3.0))
    ]
    settings = {"update": "sgd", "learning_rate": 0.1, "period": 4, "fragments": 2, "overlap": 1, "own_share": 0.5}
    run = train("streaming_diloco", lambda rank: springs[rank], 2, settings, steps=12)
    first = -0.3325, -0.914410175, -1.15281362148575
    second = -0.693595, -1.09759476155, -1.1829925433767594
    expected = [(first[0], 0), *zip(np.repeat(first, 2)[1:], np.repeat(second, 2), strict=False)]
    assert np.allclose(reported(run)[:6], expected, rtol=1e-12, atol=1e-15)


def test_no_all_reduce_is_larger_than_a_fragment_and_a_period_sends_the_model_once():
    settings = {"period": 4, "fragments": 2, "pattern": "consecutive"}
    springs = ScalarChain(w=(0.5, 0.6, 0.7, 0.8))
    whole, cut = (
        train("streaming_diloco", springs, 2, settings | more, steps=40).outcome.trace().traffic().sum()
        for more in ({"fragments": 1}, {})
    )
    assert whole == 2 * 4 * 8 * 10 and cut == whole + 2 * 2 * 8  # the first fragment moved in the last two steps


def test_an_all_reduce_hides_behind_the_steps_that_it_overlaps():
    def seconds(network, overlap):
        settings = {"period": 20, "overlap": overlap}
        run = train("streaming_diloco", ScalarChain(flops=1e8), 2, settings, steps=200, network=NETWORKS[network])
        return max(span[2] for span in run.outcome.event_logs[0].spans if span[0] == COMPUTE)

    assert seconds("1GbE", 5) == pytest.approx(seconds("ideal", 5), rel=1e-6)
    assert seconds("1GbE", 0) > seconds("ideal", 0) + 19 * 4e-5  # 19 all-reduces before the last step


def test_fragments_are_balanced_or_strided_and_cover_every_layer_once():
    layers = [slice(a, b) for a, b in ((0, 10), (10, 12), (12, 20), (20, 21), (21, 40))]
    assert fragments(layers, 2, "consecutive") == [layers[:3], layers[3:]]
    assert fragments(layers, 2, "strided") == [layers[::2], layers[1::2]]
    assert fragments([slice(0, 7)], 3, "consecutive") == [[slice(0, 3)], [slice(3, 5)], [slice(5, 7)]]
    for count in range(1, 6):
        assert [*chain.from_iterable(fragments(layers, count, "consecutive"))] == layers


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fragments": 3}, "use a period of 18 or 21"),
        ({"overlap": 10}, "use an overlap of at most 9"),
        ({"fragments": 10}, "use at most 3"),
    ],
)
def test_settings_that_make_no_sense_together_are_refused_with_what_would_fit(settings, words):
    with pytest.raises(ValueError, match=words):
        check(2, 1, ScalarChain(), Settings(**settings))
