"""The page of the simulated network: what an all-reduce costs, and what a model takes."""

from dataclasses import replace

from streamlit.testing.v1 import AppTest

from cluster.network import NETWORKS
from experiments.study import collectives, model_states
from tests.patience import PATIENCE
from tests.system.app.finish import finish


def script():
    from app import network

    network.page()


def test_the_page_shows_the_figures_of_the_command_for_the_ranks_and_the_model_that_are_chosen(folders):
    page = AppTest.from_function(script, default_timeout=PATIENCE)
    page.query_params["network_ranks"], page.query_params["network_per_node"] = "4", "2"
    finish(page.run())
    assert not page.error
    costs, memory = (table.value.to_dict("records") for table in page.dataframe)
    network = replace(NETWORKS["HDR"], per_node=2)
    assert costs == collectives.rows(collectives.all_reduces(4, 1e9, network))
    assert memory == model_states.rows(7.5e9, 64)
    assert any("8 GB/s" in one.value and "23.5 GB/s" in one.value and "through its memory" in one.value
               for one in page.caption)  # fmt: skip


def test_the_page_says_why_a_node_is_slower_inside_only_where_it_is():
    slower = {n for n, one in NETWORKS.items() if collectives.note_on_nodes(one.on_nodes(8), 32)}
    assert slower == {"HDR", "EDR", "100GbE"}
    assert not collectives.note_on_nodes(NETWORKS["HDR"].on_nodes(8), 8)  # one node: there is nothing between


def test_more_nics_on_the_page_make_the_hierarchy_quicker_and_no_more_are_offered_than_ranks(folders):
    page = AppTest.from_function(script, default_timeout=PATIENCE)
    page.query_params["network_ranks"], page.query_params["network_per_node"] = "8", "4"
    page.query_params["network_nics"] = "4"
    finish(page.run())
    assert not page.error
    network = replace(NETWORKS["HDR"], per_node=4, nics=4)
    assert page.dataframe[0].value.to_dict("records") == collectives.rows(collectives.all_reduces(8, 1e9, network))
    assert any("4 NICs" in one.value for one in page.caption)
    page.button_group(key="network_per_node").set_value(2).run()
    assert not page.exception and page.button_group(key="network_nics").value == "preset"
    assert page.button_group(key="network_nics").options == ["preset", "1", "2"]


def test_a_link_to_ranks_that_are_not_offered_opens_the_page_as_it_begins(folders):
    page = AppTest.from_function(script, default_timeout=PATIENCE)
    page.query_params["network_ranks"], page.query_params["network_preset"] = "100000000", "../etc"
    page.run()
    assert not page.exception and page.select_slider(key="network_ranks").value == 32
