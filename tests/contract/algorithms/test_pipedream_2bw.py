import numpy as np
import pytest

from algorithms.pipelined import pipedream_2bw
from tests.training import ScalarChain, train

CHAIN = ScalarChain(w=(0.5, 0.6, 0.7, 1.2), x=np.linspace(0.5, 1.5, 24))
BOOK = (".533180 .627650 .723700", ".581900 .668250 .758500", ".646889 .723917 .807037", ".777554 .841205 .912632")


def test_its_delay_of_one_makes_the_weights_of_the_book():
    # one sample a mini-batch there; here the sample comes twice, as two micro-batches
    twice = ScalarChain(x=np.repeat(ScalarChain().x, 2))
    for steps, row in zip((1, 2, 4, 8), BOOK, strict=True):
        run = train("pipedream_2bw", twice, 3, {"learning_rate": 0.1, "chunks": 2}, batch=2, steps=steps)
        assert run.shipped == pytest.approx([float(word) for word in row.split()], abs=6e-7)


@pytest.mark.parametrize(("stages", "chunks"), [(2, 1), (3, 2), (4, 3), (4, 4), (4, 12)])
def test_every_stage_is_one_update_late_and_holds_two_versions(stages, chunks):
    settings = {"chunks": chunks, "learning_rate": 0.01}
    run = train("pipedream_2bw", CHAIN, stages, settings, batch=12, steps=8)
    assert run.staleness == [[0] + [1] * 7] * stages
    for event_log, w in zip(run.outcome.event_logs, run.outcome.results, strict=True):
        assert max(row[3] for row in event_log.memory if row[2] == 0) == 2 * w.nbytes


def test_it_is_sgd_with_a_delay_of_one_bit_for_bit_where_nothing_has_to_be_added():
    settings = {"chunks": 1, "learning_rate": 0.05}
    run = train("pipedream_2bw", CHAIN, 2, settings, batch=4, steps=12)
    late = train("delayed", CHAIN, 1, {"delay": 1, "layerwise": False, "learning_rate": 0.05}, batch=4, steps=12)
    assert np.array_equal(run.shipped, late.models[0])


def test_fewer_micro_batches_than_two_versions_bear_are_refused():
    with pytest.raises(ValueError, match=r"2 micro-batches .*4 ranks.* 3 or more"):
        pipedream_2bw.ALGORITHM.check(4, 8, CHAIN, pipedream_2bw.Settings(chunks=2))
