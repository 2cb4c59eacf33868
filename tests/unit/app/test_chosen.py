import pytest

from app.settings import chosen, widgets
from app.settings.controls import control
from experiments.specification.experiment import Experiment
from experiments.specification.this_machine import Fit

FIT = Fit(device="3e+10:2e+10:2e-06", network="5e-05:1.5e+09:0", machine="one", moment="2026-11-21T20:00+00:00")


def test_a_value_from_a_link_joins_the_stops_in_its_place():
    assert widgets._with((None, 1, 2, 4), 3) == (None, 1, 2, 3, 4)


@pytest.fixture
def state(monkeypatch):
    values = {"cluster": "processes", "network": "10GbE", "device": "laptop"}
    monkeypatch.setattr(widgets.st, "session_state", values)
    monkeypatch.setattr(chosen.this_machine, "load", lambda: FIT)
    return values


def test_a_network_that_was_not_chosen_becomes_the_default_of_the_new_cluster_and_back(state):
    chosen.settle_cluster("simulated")
    assert (state["network"], state["device"]) == ("own", "own")
    state["cluster"] = "threads"
    chosen.settle_cluster("processes")
    assert (state["network"], state["device"]) == ("own", "own")
    state["cluster"] = "simulated"
    chosen.settle_cluster("threads")
    assert (state["network"], state["device"]) == ("10GbE", "laptop")


def test_a_network_that_was_chosen_stays_on_every_cluster(state):
    state.update(network="1GbE", device="laptop")
    chosen.settle_cluster("simulated")
    assert (state["network"], state["device"]) == ("1GbE", "own")
    state.update(cluster="threads", device="laptop")
    chosen.settle_cluster("processes")
    assert (state["network"], state["device"]) == ("1GbE", "laptop")
    state.update(cluster="simulated")
    chosen.settle_cluster("threads")
    assert (state["network"], state["device"]) == ("1GbE", "laptop")


def test_what_was_fitted_to_this_machine_is_a_real_clusters_own(state):
    state.update(network=FIT.network, device=FIT.device)
    chosen.settle_cluster("simulated")
    assert (state["network"], state["device"]) == ("own", "own")


@pytest.mark.parametrize("field", ["network", "device"])
def test_only_a_real_cluster_has_its_own_network_and_device_and_says_what_they_are(state, field):
    one = control(Experiment, field)
    assert widgets._offered(one, "own")[0] == "own" and getattr(FIT, field) not in widgets._offered(one, "own")
    assert "this machine's own" in widgets._told(field, "own") and "nothing is emulated" in widgets._sources(field)
    state["cluster"] = "simulated"
    assert widgets._offered(one, one.default) == (*one.options, getattr(FIT, field))
    assert "nothing is emulated" not in widgets._sources(field)
    assert one.words("own") == "this machine's own"
