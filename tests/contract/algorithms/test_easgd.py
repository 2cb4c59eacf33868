import numpy as np
import pytest

from cluster.faults import Faults
from cluster.network import NETWORKS
from tests.training import ScalarChain, Springs, train

BOOK = {"learning_rate": 0.1, "pull": 0.2, "period": 1}
FORMS = pytest.mark.parametrize("synchronous", [False, True], ids=["asynchronous", "synchronous"])


class Beads:
    """Springs of several replicas, one centre of force each, that start at other places than the centre of EASGD."""

    def __init__(self, forces, places, centre, synchronous, curvature=1.0):
        starts = [[place, centre] for place in places] if synchronous else [[centre], *([place] for place in places)]
        self.ranks = [Springs(forces, own, curvature=curvature) for own in starts]
        self.forces = forces

    def __call__(self, rank):
        return self.ranks[rank]

    def path(self, force):
        """Where the replica under this force asked for gradients."""
        return np.ravel(next(springs.seen[force] for springs in self.ranks if force in springs.seen))


def centres(run):
    """The centre after every visit (asynchronous) or round of visits."""
    return [float(row[4][0]) for row in run.outcome.event_logs[0].reports]


def test_the_synchronous_form_makes_the_steps_of_the_book():
    beads = Beads([1.0, -1.0], [2.0, 2.0], 0.0, synchronous=True)
    run = train("easgd", beads, 2, BOOK | {"synchronous": True}, steps=4)
    assert centres(run)[:3] == pytest.approx([0.8, 1.04, 1.08])
    assert beads.path(1.0) == pytest.approx([2, 1.5, 1.31, 1.225])
    assert beads.path(-1.0) == pytest.approx([2, 1.3, 0.97, 0.787])


def test_the_asynchronous_form_makes_the_steps_of_the_book():
    beads = Beads([1.0, -1.0], [2.0, 2.0], 0.0, synchronous=False)
    run = train("easgd", beads, 2, BOOK, steps=2, faults=Faults(slow={2: 1.01}))
    assert centres(run)[1::2] == pytest.approx([0.72, 0.9768])
    assert np.ravel(run.models) == pytest.approx([1.294, 1.0412])
    assert [beads.path(c)[1] for c in (1.0, -1.0)] == pytest.approx([1.5, 1.38])


@FORMS
def test_visits_conserve_the_sum_of_centre_and_replicas(synchronous):
    places, centre = [2.0, -3.0, 7.0], 1.5
    beads = Beads([10.0, 20.0, 30.0], places, centre, synchronous, curvature=0.0)  # no gradient: visits alone
    settings = BOOK | {"synchronous": synchronous, "pull": 0.17, "period": 2}
    run = train("easgd", beads, 3, settings, steps=9, faults=Faults(slow={1: 1.7}))
    ends = [beads.path(c)[-1] for c in (10.0, 20.0, 30.0)] if synchronous else np.ravel(run.models)
    # the last visit of the synchronous form comes after the last look at the replicas
    z = centres(run)[-2] if synchronous else run.shipped[0]
    assert sum(ends) + z == pytest.approx(sum(places) + centre, rel=1e-12)
    assert abs(z - centre) > 0.1


@pytest.mark.parametrize(("share", "settles"), [(0.5, True), (0.97, True), (1.03, False)])
def test_visits_alone_bring_all_to_their_mean_if_the_pull_is_below_two_over_n_plus_1(share, settles):
    places, centre = [2.0, -3.0, 7.0], 4.0
    beads = Beads([10.0, 20.0, 30.0], places, centre, synchronous=True, curvature=0.0)
    settings = BOOK | {"synchronous": True, "pull": share * 2 / (3 + 1)}
    run = train("easgd", beads, 3, settings, steps=400)
    places = np.array([centres(run)[-1], *(beads.path(c)[-1] for c in (10.0, 20.0, 30.0))])
    assert (np.ptp(places) < 1e-6) == settles
    if settles:
        assert places == pytest.approx(2.5)


def test_visits_in_turn_bring_all_to_their_mean():
    beads = Beads([10.0, 20.0, 30.0], [2.0, -3.0, 7.0], 4.0, synchronous=False, curvature=0.0)
    run = train("easgd", beads, 3, BOOK | {"pull": 0.3}, steps=200, faults=Faults(slow={1: 1.7}))
    assert [float(w[0]) for w in (*run.models, run.shipped)] == pytest.approx([2.5] * 4)


@FORMS
def test_without_a_pull_the_centre_never_moves(synchronous):
    beads = Beads([1.0, -1.0], [2.0, 2.0], 0.5, synchronous)
    run = train("easgd", beads, 2, BOOK | {"synchronous": synchronous, "pull": 0.0}, steps=5)
    assert set(centres(run)) == {0.5}
    alone = Springs([-1.0], starts=[2.0])
    train("sgd", alone, 1, {"learning_rate": 0.1}, steps=5)
    assert np.array_equal(beads.path(-1.0), np.ravel(alone.seen[-1.0]))


def test_the_synchronous_form_settles_where_springs_and_gradients_balance():
    eta, a = 0.1, 0.2
    beads = Beads([5.0, 1.0, -3.0], [0.0, 0.0, 0.0], 8.0, synchronous=True)
    run = train("easgd", beads, 3, BOOK | {"synchronous": True}, steps=400)
    z = np.mean([5.0, 1.0, -3.0])
    assert centres(run)[-1] == pytest.approx(z, rel=1e-9)
    for c in (5.0, 1.0, -3.0):
        assert beads.path(c)[-1] == pytest.approx((eta * c + a * z) / (eta + a), rel=1e-9)


@pytest.mark.parametrize(("share", "settles"), [(0.98, True), (1.02, False)])
def test_the_synchronous_form_is_stable_up_to_the_rate_of_theory(share, settles):
    replicas, beta = 4, 0.9  # the default pull
    a = beta / replicas
    critical = min(2 - a, (4 - 2 * a - 2 * beta) / (2 - beta))
    settings = {"learning_rate": share * critical, "period": 1, "synchronous": True}
    run = train("easgd", Springs([0.0] * replicas), replicas, settings, steps=600)
    assert (abs(run.shipped[0]) < 1e-3) == settles
    assert (abs(run.shipped[0]) > 1e3) != settles


@FORMS
def test_with_momentum_it_makes_the_steps_of_the_book(synchronous):
    beads = Beads([1.0], [2.0], 0.0, synchronous)
    run = train("easgd", beads, 1, BOOK | {"synchronous": synchronous, "momentum": 0.9}, steps=4)
    assert centres(run)[:3] == pytest.approx([0.4, 0.62, 0.7258], abs=1e-12)
    x, v = np.array([2.0, 1.5, 1.149, 0.92219]), np.array([0.0, -0.1, -0.131, -0.12101])
    assert beads.path(1.0) == pytest.approx(x + 0.9 * v, abs=1e-12)  # gradients are taken ahead, not behind


@FORMS
def test_momentum_too_small_to_matter_is_easgd_bit_for_bit(synchronous):
    def trained(momentum):
        settings = {"synchronous": synchronous, "momentum": momentum, "learning_rate": 0.1, "period": 2}
        return train("easgd", ScalarChain(), 3, settings, steps=15)

    plain, tiny, felt = trained(0), trained(5e-324), trained(0.5)
    assert np.array_equal(plain.models, tiny.models) and np.array_equal(plain.shipped, tiny.shipped)
    assert not np.array_equal(plain.models, felt.models)


@FORMS
def test_visits_with_momentum_conserve_the_sum_of_centre_and_replicas(synchronous):
    places, centre = [2.0, -3.0, 7.0], 1.5
    beads = Beads([10.0, 20.0, 30.0], places, centre, synchronous, curvature=0.0)
    settings = BOOK | {"synchronous": synchronous, "pull": 0.17, "period": 2, "momentum": 0.9}
    run = train("easgd", beads, 3, settings, steps=9)
    ends = [beads.path(c)[-1] for c in (10.0, 20.0, 30.0)] if synchronous else np.ravel(run.models)
    z = centres(run)[-2] if synchronous else run.shipped[0]
    assert sum(ends) + z == pytest.approx(sum(places) + centre, rel=1e-12)


@pytest.mark.parametrize(("share", "settles"), [(0.97, True), (1.03, False)])
@pytest.mark.parametrize("rate", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("replicas", [1, 3, 8])
def test_in_round_robin_it_is_stable_up_to_a_pull_that_does_not_depend_on_the_replicas(replicas, rate, share, settles):
    settings = {"learning_rate": rate, "pull": share * (4 - 2 * rate) / (4 - rate), "period": 1}
    turns = Faults(slow={rank: 1 + 0.001 * rank for rank in range(2, replicas + 1)})
    beads = Beads([0.0] * replicas, [1.0] * replicas, -1.0, synchronous=False)
    run = train("easgd", beads, replicas, settings, steps=300, faults=turns, network=NETWORKS["ideal"])
    z = np.abs(centres(run))
    early, late = z[len(z) // 4 : len(z) // 2].max(), z[-len(z) // 4 :].max()
    assert (late < early / 2) == settles
    assert (late > early * 2) != settles


def test_a_replica_visits_in_its_first_step_and_then_every_period():
    beads = Beads([0.0, 0.0], [1.0, 1.0], 1.0, synchronous=False)
    run = train("easgd", beads, 2, {"period": 4}, steps=9)
    assert len(centres(run)) == 2 * 3  # steps 0, 4 and 8


def test_a_slow_replica_holds_nobody_up():
    where = {"network": NETWORKS["ideal"], "faults": Faults(slow={1: 10.0})}
    run = train("easgd", Springs([0.0, 0.0]), 2, {"period": 1}, steps=10, **where)
    ends = [max(row[2] for row in event_log.spans) for event_log in run.outcome.event_logs]
    assert ends[2] < ends[1] / 5


def test_the_visit_goes_on_while_the_gradient_is_computed():
    run = train("easgd", Springs([0.0, 0.0], parameters=1000), 2, {"period": 1}, steps=5)
    spans = run.outcome.event_logs[1].spans
    assert [row for row in spans if row[4] == "gradient"]
    assert not [row for row in spans if row[4] == "receive"]  # the answer was there before it was needed
