"""Whatever a run says of one quantity, on its page, in its pictures or on the command line, is one number."""

import re

import pytest

from app.charts import pictures
from app.comparison import difference
from app.workbench import head
from experiments.cli import show
from experiments.execution.run import run
from experiments.runs.ending import explain_planned_loss
from experiments.runs.figures import FIGURES
from experiments.specification.experiment import Experiment
from experiments.viewer import waits
from experiments.viewer.canvases import timeline
from experiments.wording import naming

NUMBER = r"(\d[\d,.]*(?:e-?\d+)?(?: (?:[kMGT]?B|bytes|[mµn]?s|min|%))?)"
QUANTITIES = {
    "end": (
        rf"Ended at {NUMBER}, after",
        rf"ranks? over {NUMBER}\.",
        rf"^ends at {NUMBER}[ ,]",
        rf"{NUMBER}, \S+ \S+ of wall",
    ),
    "steps": (
        rf"after {NUMBER}(?: of {NUMBER})? steps?:",
        rf"^ends at .*?, after {NUMBER} steps?,",
        rf"samples .*? {NUMBER} steps?,",
    ),
    "waited": (
        rf"waited {NUMBER} of their time",
        rf"{NUMBER} wait\b",
    ),
    "held-out loss": (
        rf"held-out loss +{NUMBER}",
        rf"held-out loss ends at {NUMBER}",
        rf"^.*?eld-out loss {NUMBER} instead",
    ),
    "bytes": (
        rf"traffic +{NUMBER}",
        rf"\*\*{NUMBER}\*\*",
    ),
    "messages": (rf"in {NUMBER} messages?\b",),
    "memory": (
        rf"memory +{NUMBER}",
        rf"held (?:most|the same), {NUMBER}",
    ),
    "workers": (
        rf"{NUMBER} workers?[ ·,]+(?:and|batch|simulated)",
        rf"all {NUMBER} workers were lost",
    ),
    "planned steps": (
        rf"· {NUMBER} steps? ·",
        rf"Ended at .*? of {NUMBER} steps?:",
    ),
}
"""By quantity: how sentences give it."""
SCALE = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "min": 60.0}
DIGITS = 0.0051  # by which numbers written with three digits may differ and still be the same

QUICK = (
    "crash=2:0.001",
    "algorithm=asgd&crash=1:0.001,2:0.001,3:0.001,4:0.001",
    "algorithm=asgd&crash=1:0.001,2:0.002",
    "algorithm=dpsgd&crash=2:0.001",
    "algorithm=gpipe&crash=1:0.001",
    "algorithm=asgd&workers=40&steps=4",
    "algorithm=hogbatch",
    "algorithm=sgd&workers=1&steps=1",
    "algorithm=tensor",
    "jitter=pareto&workers=16&steps=6",
)
ODD = (
    "algorithm=asgd&crash=1:0.001-0.002,2:0.001-0.002,3:0.001-0.002,4:0.001-0.002",
    "algorithm=asgd&crash=0:0.001,2:0.0005",
    "algorithm=asgd&crash=1:9",
    "algorithm=backup&crash=1:0.001,2:0.001,3:0.001",
    "algorithm=easgd&pull=2&steps=60",
    "algorithm=easgd&synchronous=true&crash=2:0.001",
    "algorithm=easgd&slow=1:5&network=1GbE",
    "algorithm=downpour&shards=3",
    "algorithm=ssp&slow=2:8",
    "algorithm=softsync&workers=9&jitter=cloud",
    "algorithm=project_adam&workers=34&steps=3",
    "algorithm=delayed&delay=20&steps=60",
    "algorithm=overlap&network=1GbE",
    "algorithm=zero3&workers=3",
    "algorithm=local_sgd&period=7&crash=2:0.001",
    "algorithm=diloco&pause=1:0.001-0.01",
    "algorithm=one_shot&crash=3:0.0005",
    "algorithm=push_sum&crash=3:0.001",
    "algorithm=gossipgrad&workers=5",
    "algorithm=adpsgd&slow=0:3",
    "algorithm=hogwild&workers=8&steps=4",
    "algorithm=async_svrg&workload=sparse&crash=1:0.0005",
    "algorithm=sandblaster&steps=4",
    "algorithm=layer_wise&crash=0:0.001",
    "algorithm=three_d&workers=8&steps=6",
    "algorithm=hybrid&slow=1:2",
    "algorithm=interleaved&chunks=8",
    "algorithm=dualpipe&network=1GbE&steps=6",
    "algorithm=pipedream&workers=3&pause=0:0.001-0.003",
    "algorithm=greedy&crash=1:0.0005",
    "algorithm=features_replay",
    "compression=sign",
    "compression=top_k&density=0.01",
    "learning_rate=900&steps=40",
    "workload=quadratic&steps=3",
    "workload=spirals&seconds=0.003",
    "epochs=1&workers=2&batch=256",
    "collective=ring&workers=7",
    "per_node=4&workers=8&network=1GbE",
    "steps=1&workers=1",
    "precision=float64&evaluations=1",
    "device=H100&network=ideal&steps=2",
    "algorithm=momentum&workers=1&crash=0:0.0005",
)


def sentences(query: str) -> list[str]:
    """Return what the run of this link says of itself, and beside the default run."""
    e = Experiment.from_query(query if re.search("steps|seconds|epochs", query) else f"{query}&steps=20")
    done, usual = run(e), run(Experiment(steps=20))
    notes = [naming.readable(e, note) for note in done.notes]
    said = [
        show.text(done),
        head.headline(e),
        timeline.describe(done),
        waits.totals(done),
        explain_planned_loss(done),
        *notes,
    ]
    said += [pictures._traffic(done)] if len(done.trace.messages["bytes"]) and done.trace.traffic().any() else []
    said += [pictures._fullest(done)] if done.peak_memory().any() else []
    return [re.sub(r"\s*\n\s+", "\n ", one) for one in (*said, difference.between(usual, done))]


def value(written: str) -> float:
    number, _, unit = written.strip(",. ").partition(" ")
    return float(number.replace(",", "").rstrip(".")) * SCALE.get(unit, 1.0)


def two_numbers(said: list[str]) -> dict[str, list[str]]:
    """Return the quantities of which these sentences give two different numbers, with the numbers."""
    found = {}
    for quantity, ways in QUANTITIES.items():
        matches = [match for way in ways for one in said for match in re.finditer(way, one, re.MULTILINE)]
        written = list(dict.fromkeys(match[match.lastindex if quantity == "planned steps" else 1] for match in matches))
        values = [value(one) for one in written]
        if values and max(values) - min(values) > DIGITS * max(values):
            found[quantity] = written
    return found


@pytest.mark.parametrize("query", [*QUICK, *(pytest.param(query, marks=pytest.mark.slow) for query in ODD)])
def test_what_a_run_says_of_one_quantity_is_one_number_everywhere(query):
    said = sentences(query)
    assert two_numbers(said) == {}, said
    everything = "\n".join(said)
    assert not re.search(r"(?<![\d.,])1 (?:steps|workers|servers|messages|updates|ranks)\b", everything), everything
    assert not re.search(r"\b(?:learning_rate|held_out_loss|undo what you)\b", everything), everything


def test_two_numbers_of_one_quantity_are_found():
    assert two_numbers(["Ended at 10 ms, after 93 of 200 steps: ", "ends at 10 ms, after 94 steps, instead"]) == {
        "steps": ["93", "94"]
    }
    assert two_numbers(["Timeline of 4 ranks over 10.2 ms.", "Ended at 10 ms, after 94 steps: "]) == {
        "end": ["10 ms", "10.2 ms"]
    }
    assert FIGURES["seconds"].unit == "s" and two_numbers(["  traffic  1.25 MB", "**1.3 MB** in 3 messages"])
