"""What cannot run is refused before it does, and mended by one setting."""

import numpy as np
import pytest

from app.settings import feasible
from app.settings.feasible import Mend, Reason
from experiments.execution import run
from experiments.specification.experiment import Experiment
from workloads import stored_table
from workloads.stored_table import Table


def values(**given):
    return {"workers": 4, "batch": 32, "slow": "", "pause": "", "crash": "", **given}


def test_nothing_is_said_against_what_can_run():
    assert feasible.refusal(Experiment()) == "" and not feasible.why_not(values())


@pytest.mark.parametrize(
    ("given", "changed", "mend", "label"),
    [
        ({"algorithm": "gpipe", "workers": 16}, ["workers"], Mend("workers", 8), "Use 8 workers"),
        ({"workers": 256, "batch": 2048}, ["batch"], Mend("batch", 5), "Use batch size 5"),
        ({"workers": 64, "batch": 32}, ["workers"], Mend("workers", 44), "Use 44 workers"),
        ({"algorithm": "gpipe", "chunks": 7}, ["chunks"], Mend("chunks", 8), "Use chunks 8"),
        ({"slow": "9:3"}, ["slow"], Mend("slow", ""), "Leave out slow ranks"),
    ],
)
def test_the_nearest_that_can_run_is_one_setting_away(given, changed, mend, label):
    given = values(**given)
    assert feasible.why_not(given) and feasible.mend(given, changed) == mend
    assert not feasible.why_not({**given, mend.name: mend.value}) and mend.label == label


def test_numbers_in_a_sentence_are_no_remedies_and_those_of_the_error_are():
    def why(given):
        return Reason("" if given["workers"] == 7 else "only 5 will do", remedies)

    remedies = (7,)
    assert feasible.mend(values(), why=why) == Mend("workers", 7)
    remedies = ()
    assert feasible.mend(values(), why=why) is None


def test_without_a_way_nothing_is_offered():
    assert feasible.mend(values(), why=lambda _: Reason("never")) is None


@pytest.mark.parametrize(
    "given",
    [
        {"workload": "quadratic", "points": 10_000_000},
        {"workload": "quadratic", "dimension": 10_000_000, "points": 1},
        {"workload": "spirals", "points": 1_000_000},
        {"workload": "sparse", "features": 100_000_000},
        {"workload": "sparse", "rows": 10_000_000, "nonzeros": 1},
        {"workload": "mnist"},
        {"algorithm": "zb_auto", "workers": 64, "chunks": 1024, "batch": 1024},
        {"algorithm": "interleaved", "workers": 64, "pieces": 64, "chunks": 64, "batch": 64},
    ],
)
def test_the_server_builds_and_plans_nothing_large_that_a_link_asks_for(monkeypatch, given):
    monkeypatch.setattr(feasible, "check", lambda experiment: pytest.fail("it was built here"))
    assert feasible.refusal(Experiment.of(given)) == ""


def test_the_server_reads_no_large_table_that_a_link_names(monkeypatch, tmp_path):
    monkeypatch.setenv("LOCKSTEP_TABLES", str(tmp_path))
    name = stored_table.save(Table(tuple("abcde"), np.zeros((300_000, 5), np.uint8), {}))
    monkeypatch.setattr(feasible, "check", lambda experiment: pytest.fail("it was read here"))
    assert stored_table.cells(name) == 1_500_000
    assert feasible.refusal(Experiment.of({"workload": "table", "table": name})) == ""
    assert "no table" in feasible.refusal(Experiment.of({"workload": "table", "table": "0" * 16}))


@pytest.mark.parametrize("workload", ["digits", "spirals", "text", "quadratic", "sparse"])
def test_default_data_are_checked_before_they_run(workload):
    assert feasible.is_light(Experiment.of({"workload": workload}))


@pytest.mark.parametrize("workload", ["spirals", "quadratic", "sparse"])
def test_settings_know_how_many_numbers_their_data_are(workload):
    e = Experiment.of({"workload": workload})
    built = run.workload_of(e)
    arrays = {
        "spirals": lambda: [built.x, built.target, *built.held_out],
        "quadratic": lambda: [built.points],
        "sparse": lambda: [*built.data, *built.held_out],
    }[workload]()
    assert 0.4 < e.numbers / sum(array.size for array in arrays) < 2


def test_what_is_not_looked_at_is_no_way_out():
    given = values(algorithm="gpipe", workers=64, chunks=7)  # too many for the layers, however many chunks there are
    assert feasible.why_not(given) and feasible.mend(given, ["chunks"]) is None
