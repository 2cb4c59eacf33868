"""What cannot run is refused before it does, and mended by one setting."""

import pytest

from app import feasible
from app.feasible import Mend
from experiments.experiment import Experiment


def values(**given):
    return {"workers": 4, "batch": 32, "slow": "", "pause": "", "crash": "", **given}


def test_nothing_is_said_against_what_can_run():
    assert feasible.refusal(Experiment()) == "" and feasible.why_not(values()) == ""


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


def test_without_a_way_nothing_is_offered():
    assert feasible.mend(values(), why=lambda _: "never") is None
