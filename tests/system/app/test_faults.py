"""Ranks in trouble: clicked, changed in a dialog, and written into the experiment."""

import math

import pytest

from app.session import session
from app.settings import faults
from cluster.faults import parse_crash, parse_pause, parse_slow, spell_crash, spell_pause, spell_slow
from experiments.specification.experiment import Experiment


def click(page, rank):
    page.button_group("rank").set_value(rank).run()
    assert not page.exception
    return page


def test_what_is_spelled_is_read_again():
    slow, pause, crash = {3: 2.5, 0: 4.0}, {1: ((0.5, 0.75), (1.0, 2.0))}, {2: (0.125, math.inf), 1: (0.5, 0.75)}
    assert parse_slow(spell_slow(slow), 4) == slow
    assert parse_pause(spell_pause(pause), 4) == pause
    assert parse_crash(spell_crash(crash), 4) == crash


def test_a_click_on_a_rank_slows_it_down_pauses_it_and_loses_it(page, stored):
    stored(Experiment())
    opened = click(page("slow=1:3"), 2)
    opened.select_slider("fault-slow").set_value(5)
    opened.toggle("fault-pauses").set_value(True).run()
    opened.toggle("fault-lost").set_value(True).run()
    opened.number_input("fault-from").set_value(10.0)
    opened.number_input("fault-for").set_value(2.5)
    opened.number_input("fault-at").set_value(30.0)
    opened.button("fault-apply").click().run()
    assert not opened.exception
    state = opened.session_state
    assert (state.slow, state.pause, state.crash) == ("1:3,2:5", "2:0.01-0.0125", "2:0.03")
    assert opened.text_input("slow").value == "1:3,2:5" and "fault-slow" not in [s.key for s in opened.select_slider]


def test_no_trouble_takes_it_all_away_and_leaves_the_others(page, stored):
    experiment = Experiment(slow="1:3,2:5", pause="2:0.01-0.02", crash="2:0.03")
    stored(experiment)
    opened = click(page(experiment.query()), 2)
    assert opened.select_slider("fault-slow").value == 5 and opened.number_input("fault-at").value == 30
    opened.button("fault-none").click().run()
    state = opened.session_state
    assert (state.slow, state.pause, state.crash) == ("1:3", "", "")


def test_a_worker_that_a_server_serves_can_be_lost_and_come_back(page, stored):
    experiment = Experiment(algorithm="asgd")
    stored(experiment)
    opened = click(page(experiment.query()), 2)
    opened.toggle("fault-lost").set_value(True).run()
    opened.toggle("fault-returns").set_value(True).run()
    opened.number_input("fault-at").set_value(30.0)
    opened.number_input("fault-away").set_value(12.5)
    opened.button("fault-apply").click().run()
    assert not opened.exception and opened.session_state.crash == "2:0.03-0.0425"
    assert opened.button_group("rank").options[2] == "worker 2 ↺"
    link = experiment.change(crash=opened.session_state.crash).query()
    assert "crash=2%3A0.03-0.0425" in link and click(page(link), 2).number_input("fault-away").value == 12.5


def test_run_with_it_runs_at_once(page, stored):
    stored(Experiment())
    slower = Experiment(slow="0:2")
    folder = stored(slower)
    opened = click(page(), 0)
    opened.select_slider("fault-slow").set_value(2)
    opened.button("fault-run").click().run()
    assert opened.session_state.asked == slower and opened.session_state.shown == str(folder)


def test_every_rank_says_what_its_trouble_is(page, stored):
    experiment = Experiment(slow="1:3", pause="2:0.01-0.02", crash="3:0.03")
    stored(experiment)
    ranks = page(experiment.query()).button_group("rank")
    assert ranks.options == ["worker 0", "worker 1 × 3", "worker 2 ‖", "worker 3 ✕"]


@pytest.mark.parametrize(("algorithm", "rank"), [("sync_sgd", 2), ("asgd", 0)], ids=["no server", "a server"])
def test_who_cannot_come_back_is_not_offered_to(page, stored, algorithm, rank):
    experiment = Experiment(algorithm=algorithm)
    stored(experiment)
    opened = click(page(experiment.query()), rank)
    opened.toggle("fault-lost").set_value(True).run()
    assert "fault-returns" not in [toggle.key for toggle in opened.toggle]
    assert opened.toggle("fault-lost").label == "Fails for good"


def test_hundreds_of_ranks_are_picked_from_a_list(page, stored):
    experiment = Experiment(workers=100)
    stored(experiment)
    opened = page(experiment.query())
    opened.selectbox("rank").select_index(57).run()
    assert opened.select_slider("fault-slow").value == 1 and not opened.exception


@pytest.mark.parametrize(("cluster", "losable"), [("gpus", True), ("threads", False)])
def test_real_ranks_are_slowed_and_paused_and_lost_where_that_can_be(page, stored, cluster, losable):
    experiment = Experiment(algorithm="asgd", cluster=cluster)
    stored(experiment)
    opened = click(page(experiment.query()), 2)
    lost = opened.toggle("fault-lost")
    assert lost.label == "Fails for good" and lost.disabled is not losable
    assert losable or "a thread cannot crash" in lost.help
    opened.select_slider("fault-slow").set_value(3)
    opened.toggle("fault-pauses").set_value(True)
    if losable:
        lost.set_value(True)
    opened.run()
    assert "fault-returns" not in [toggle.key for toggle in opened.toggle]
    opened.button("fault-apply").click().run()
    state = opened.session_state
    assert (
        not opened.exception and state.slow == "2:3" and state.pause.startswith("2:") and bool(state.crash) is losable
    )


def test_the_help_names_what_the_cluster_can_have_happen():
    assert "restart" in faults._ways("simulated") and "restart" in faults._ways("processes")
    assert "for good" in faults._ways("gpus") and "restart" not in faults._ways("gpus")
    assert "lose" not in faults._ways("threads")


def test_a_rank_that_is_not_there_any_more_opens_nothing(page, stored):
    stored(Experiment())
    opened = page()
    opened.session_state["faulty"] = 9
    opened.run()
    assert not opened.exception and not [s for s in opened.select_slider if s.key == "fault-slow"]


def test_what_goes_wrong_begins_in_the_middle_of_the_run_on_the_page(page, stored):
    half = session.load(str(stored(Experiment()))).summary["seconds"] / 2
    opened = click(page(), 2)
    opened.toggle("fault-lost").set_value(True).run()
    assert opened.number_input("fault-at").value == pytest.approx(1e3 * half, rel=0.05)


def test_a_chip_sets_the_fault_and_takes_it_back(page, stored):
    stored(Experiment())
    opened = page(unfolded=False)
    assert opened.pills("troubles").value == ["calm"]
    opened.pills("troubles").set_value(["calm", "slow"]).run()
    assert opened.session_state.slow == "3:4" and opened.pills("troubles").value == ["slow"]
    opened.pills("troubles").set_value(["slow", "crash"]).run()
    state = opened.session_state
    assert state.slow == "3:4" and state.crash.startswith("2:") and not opened.exception
    opened.pills("troubles").set_value(["slow", "crash", "calm"]).run()
    assert (state.slow, state.crash) == ("", "") and opened.pills("troubles").value == ["calm"]


def test_a_fault_that_came_with_a_link_lights_its_chip(page, stored):
    experiment = Experiment(slow="1:3", jitter="cloud")
    stored(experiment)
    assert page(experiment.query()).pills("troubles").value == ["slow", "jitter"]


def test_a_cluster_that_cannot_lose_a_worker_has_no_chip_for_it(page):
    assert "Lose a worker" not in page("cluster=threads").pills("troubles").options


def test_what_would_run_at_once_anyway_is_not_offered_a_second_time(page, stored):
    stored(Experiment())
    for at_once in (True, False):
        opened = click(page(at_once=at_once), 0)
        keys = {button.key for button in opened.button}
        assert "fault-run" in keys and ("fault-apply" in keys) is not at_once
