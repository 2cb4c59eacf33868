import numpy as np
import pytest

from tests.training import ScalarChain, train

BOOK = (".533180 .627650 .723700", ".584579 .668595 .757647", ".659017 .723297 .801057", ".823996 .843478 .903066")


@pytest.mark.parametrize("name", ["petrowski", "chen"])
def test_the_weights_are_those_of_the_book(name):
    for steps, row in zip((1, 2, 4, 8), BOOK, strict=True):
        run = train(name, ScalarChain(), 3, {"learning_rate": 0.1}, steps=steps)
        assert run.shipped == pytest.approx([float(word) for word in row.split()], abs=6e-7)


@pytest.mark.parametrize("name", ["petrowski", "chen"])
def test_the_delay_of_a_stage_is_twice_its_way_to_the_end_and_so_is_the_gap_between_its_passes(name):
    chain = ScalarChain(w=(0.5, 0.6, 0.7, 1.2), x=np.linspace(0.5, 1.5, 24))
    run = train(name, chain, 4, {"learning_rate": 0.01}, steps=24)
    assert [delays[-1] for delays in run.staleness] == [6, 4, 2, 0]
    gaps = [[row[3] for row in event_log.measures if row[2] == "version gap"] for event_log in run.outcome.event_logs]
    assert [mine[-1] if mine else 0 for mine in gaps] == [6, 4, 2, 0]


def test_two_stages_of_one_weight_make_the_first_three_updates_that_one_can_check_by_hand():
    # y = w1 w0 x, loss (y - 1)^2 / 2, rate 0.1, x = 1: stage 1 is always fresh, stage 0 goes forward two updates early
    w0, w1, seen = 0.5, 0.8, [0.5, 0.5, 0.5]
    for batch in range(3):
        e = w1 * seen[batch] - 1
        g0, g1 = e * w1, e * seen[batch]  # both passes of stage 1 read version `batch`
        w0, w1 = w0 - 0.1 * g0, w1 - 0.1 * g1
    run = train("petrowski", ScalarChain(w=(0.5, 0.8), x=np.ones(4)), 2, {"learning_rate": 0.1}, steps=3)
    assert run.shipped == pytest.approx([w0, w1], abs=1e-15)
