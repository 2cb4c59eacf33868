"""The places of a first run's figures while it is under way, beside those of the run when it is there."""

import pytest
from streamlit.testing.v1 import AppTest

from experiments.execution.run import run
from experiments.specification.experiment import Experiment


def awaited_and_finished(experiment, done):
    """Draw both rows of figures, one after the other."""
    from types import SimpleNamespace

    import streamlit as st

    from app.charts import Shown
    from app.workbench import figures, result

    if st.session_state.get("finished"):
        figures.show(Shown("", done, 0))
    else:
        result.show_run_in_progress(
            experiment, SimpleNamespace(head=lambda: None, line=lambda: None, curves=lambda others: None)
        )


@pytest.mark.parametrize(
    ("name", "staleness"),
    [("sync_sgd", False), ("asgd", True), ("gpipe", True), ("parzen", False)],  # of the last two one is deterministic
)
def test_a_first_run_under_way_keeps_a_place_for_every_figure_that_it_will_have_and_for_no_other(name, staleness):
    experiment = Experiment(algorithm=name, steps=8)
    page = AppTest.from_function(awaited_and_finished, args=(experiment, run(experiment)))
    places = [figure.label for figure in page.run().metric]
    page.session_state["finished"] = True
    assert places == [figure.label for figure in page.run().metric]
    assert ("Staleness" in places) == staleness
