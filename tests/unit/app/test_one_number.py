"""Whatever a run says of one quantity, on its page, in its pictures or on the command line, is one number.

`spoken` collects every sentence, figure and table of a run, from the functions that write them. The tests then hold all
of it together: one number for one quantity, only ranks that exist, units, and words for people.
"""

import re
from functools import cache
from html.parser import HTMLParser

import pytest

from app import charts
from app.charts import pictures
from app.charts.words import figure_of
from app.comparison import changes, difference
from app.workbench import figures, head
from experiments.cli import show
from experiments.execution.run import run
from experiments.exports.report import report
from experiments.runs.ending import explain_planned_loss
from experiments.runs.figures import FIGURES, choose_figures, figure_text, headline_label
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.viewer import race, waits
from experiments.viewer.canvases import timeline
from experiments.viewer.column_codec import unpack
from experiments.viewer.headline import headline
from experiments.viewer.lanes import lane_names
from experiments.viewer.pictures import Shown
from experiments.wording import naming

ODD = (
    # ranks that are lost, come back, or are told too late
    "crash=2:0.001",
    "algorithm=asgd&crash=1:0.001,2:0.001,3:0.001,4:0.001",
    "algorithm=asgd&crash=1:0.001-0.002,2:0.001-0.002,3:0.001-0.002,4:0.001-0.002",
    "algorithm=asgd&crash=1:0.001,2:0.002",
    "algorithm=asgd&crash=0:0.001,2:0.0005",
    "algorithm=asgd&crash=1:9",
    "algorithm=backup&crash=1:0.001,2:0.001,3:0.001",
    "algorithm=easgd&synchronous=true&crash=2:0.001",
    "algorithm=dpsgd&crash=2:0.001",
    "algorithm=push_sum&crash=3:0.001",
    "algorithm=local_sgd&period=7&crash=2:0.001",
    "algorithm=one_shot&crash=3:0.0005",
    "algorithm=gpipe&crash=1:0.001",
    "algorithm=layer_wise&crash=0:0.001",
    "algorithm=greedy&crash=1:0.0005",
    "algorithm=async_svrg&workload=sparse&crash=1:0.0005",
    "algorithm=momentum&workers=1&crash=0:0.0005",
    "algorithm=downpour&shards=2&workers=3&crash=3:0.0008-0.002",
    # ranks that are slow or paused
    "slow=3:4",
    "jitter=pareto&workers=16&steps=6",
    "algorithm=easgd&slow=1:5&network=1GbE",
    "algorithm=ssp&slow=2:8",
    "algorithm=softsync&workers=9&jitter=cloud",
    "algorithm=adpsgd&slow=0:3",
    "algorithm=hybrid&slow=1:2",
    "algorithm=diloco&pause=1:0.001-0.01",
    "algorithm=pipedream&workers=3&pause=0:0.001-0.003",
    # one rank, two, many
    "algorithm=sgd&workers=1&steps=1",
    "steps=1&workers=1",
    "epochs=1&workers=2&batch=256",
    "algorithm=asgd&workers=1",
    "algorithm=asgd&workers=40&steps=4",
    "algorithm=project_adam&workers=34&steps=3",
    "workers=70&batch=4&steps=2",
    # ranks that are no workers
    "algorithm=tensor",
    "algorithm=three_d&workers=8&steps=6",
    "algorithm=interleaved&chunks=8",
    "algorithm=zb_h1&chunks=4",
    "algorithm=zb_v&steps=6",
    "algorithm=dualpipe&network=1GbE&steps=6",
    "algorithm=features_replay",
    "algorithm=downpour&shards=3",
    "algorithm=sandblaster&steps=4",
    # memory that is shared, and gradients that are late, small or too large
    "algorithm=hogbatch",
    "algorithm=hogwild&workers=8&steps=4",
    "algorithm=delayed&delay=20&steps=60",
    "algorithm=easgd&pull=2&steps=60",
    "learning_rate=900&steps=40",
    "compression=sign",
    "compression=top_k&density=0.01",
    # other networks, clocks, data and precision
    "algorithm=overlap&network=1GbE",
    "algorithm=zero3&workers=3",
    "algorithm=gossipgrad&workers=5",
    "collective=ring&workers=7",
    "per_node=4&workers=8&network=1GbE",
    "device=H100&network=ideal&steps=2",
    "precision=float64&evaluations=1",
    "workload=quadratic&steps=3",
    "workload=spirals&seconds=0.003",
)

PAIRS = (
    ("seed=0", "algorithm=asgd&crash=1:0.001,2:0.001,3:0.001,4:0.001"),
    ("crash=2:0.001", "crash=1:0.0005"),
    ("learning_rate=900&steps=40", "algorithm=easgd&pull=2&steps=60"),
    ("seed=0", "learning_rate=900&steps=40"),
    ("algorithm=gpipe", "algorithm=zb_h1&chunks=4"),
    ("algorithm=gpipe&crash=1:0.001", "algorithm=gpipe"),
    ("steps=1&workers=1", "steps=1&workers=1"),
    ("seed=0", "workers=8"),
    ("seed=0", "seed=3"),
    ("algorithm=sgd&workers=1&steps=1", "algorithm=hogwild&workers=8&steps=4"),
    ("algorithm=delayed&delay=20&steps=60", "algorithm=delayed&steps=60"),
    ("workload=quadratic&steps=3", "workload=quadratic&steps=300"),
    ("compression=top_k&density=0.01", "seed=0"),
    ("algorithm=tensor", "algorithm=hybrid&slow=1:2"),
)

NUMBER = r"(\d[\d,.]*(?:e-?\d+)?(?: ± [\d,.]+)?(?: (?:[kMGT]?B|bytes|[mµn]?s|min|%|[kMGTP]?FLOP|updates?)(?!\w))?)"
QUANTITIES = {
    "end": (
        rf"Ended at {NUMBER}, after",
        rf"ranks? over {NUMBER}\.",
        rf"^ends at {NUMBER}[ ,]",
        rf"{NUMBER}, \S+ \S+ of wall",
        rf"^(?:Virtual )?time \| {NUMBER}",
    ),
    "steps": (
        rf"after {NUMBER}(?: of {NUMBER})? steps?:",
        rf"^ends at .*?, after {NUMBER} steps?,",
        rf"samples .*? {NUMBER} steps?,",
        rf"took only {NUMBER} steps?;",
    ),
    "planned steps": (
        rf"· {NUMBER} steps? ·",
        rf"Ended at .*? of {NUMBER} steps?:",
    ),
    "updates": (
        rf"^ +samples .*? {NUMBER[:-1]})(?= updates? of the model,)",
        rf"^updates of the model \| {NUMBER}",
    ),
    "samples": (
        rf"^ +samples +{NUMBER}",
        rf"^samples \| {NUMBER}",
    ),
    "samples per second": (
        rf"{NUMBER} samples/s",
        rf"^[Ss]amples per second \| {NUMBER}",
    ),
    "work": (
        rf"samples/s, {NUMBER}",
        rf"^computed in total \| {NUMBER}",
    ),
    "waited": (
        rf"waited {NUMBER} of their time",
        rf"{NUMBER} wait\b",
        rf"\bwaits? {NUMBER}(?= of its time|,|$|  )",
        rf"^\w+ waited \| {NUMBER}",
    ),
    "computed": (
        rf"{NUMBER} compute\b",
        rf"\bcomputes? {NUMBER}(?= and | of its time|,|$|  )",
        rf"^[Cc]omputing \| {NUMBER}",
    ),
    "held-out loss": (
        rf"^ +held-out loss +{NUMBER}",
        rf"held-out loss ends at {NUMBER}",
        rf"^.*?eld-out loss {NUMBER} instead",
        rf"^[Hh]eld-out loss \| {NUMBER}",
        rf"eld-out loss of the run ends at {NUMBER}",
    ),
    "accuracy": (
        rf"^ +accuracy +{NUMBER}",
        rf"^[Hh]eld-out accuracy \| {NUMBER}",
    ),
    "staleness": (
        rf"^ +staleness +{NUMBER}",
        rf"^[Ss]taleness \| {NUMBER}",
    ),
    "bytes": (
        rf"^ +traffic +{NUMBER}",
        rf"\*\*{NUMBER}\*\*",
        rf"^[Ss]ent in total \| {NUMBER}",
    ),
    "messages": (rf"in {NUMBER} messages?\b",),
    "busiest link": (
        rf"busiest link is from .*?: {NUMBER}\.",
        rf"carry the same amount: {NUMBER} each",
        rf"^most of all cells \| {NUMBER}",
    ),
    "memory": (
        rf"^ +memory +{NUMBER}",
        rf"held (?:most|the same amount), {NUMBER}",
        rf"^memory \| {NUMBER}(?= \| Peak)",
        rf"memory it holds, at most {NUMBER}\.",
    ),
    "workers": (
        rf"{NUMBER} workers?[ ·,]+(?:and|batch|simulated)",
        rf"all {NUMBER} workers were lost",
        rf"^workers \| {NUMBER}",
    ),
}
"""By quantity: how sentences, figures and rows of tables give it."""
PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "m": 1e-3, "µ": 1e-6, "n": 1e-9}
DIGITS = 0.0051  # by which numbers written with three digits may differ and still be the same
LEAST = 0.051  # %, and likewise for shares, which have one decimal
UNITS = {"s": r"[mµn]?s|min", "bytes": "[kMGT]?B", "share": "%", "updates": "updates?", "FLOP": "[kMGTP]?FLOP"}
ONE = r"(?<![\d.,-])1 (?:steps|workers|servers|messages|updates|ranks|machines|wires|links|stages|modules|samples)\b"
CODE = r"\b(?:learning_rate|held_out_loss|undo what you|nan|inf|None|NaN)\b|\d\.\d{5,}|\de[+-]0\d|\de\+"
ROLES = "server|worker|stage|module|rank"


class Lines(HTMLParser):
    """The text of a page, a line for each paragraph or row of a table, with the words of its pictures."""

    def __init__(self, html: str):
        super().__init__()
        self.text, self.hidden = "", False
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.hidden = tag in ("script", "style")
        self.text += " | " if tag in ("td", "dd") else "" if tag in ("b", "i", "a", "span") else "\n"
        self.text += "".join(f"\n{said}\n" for name, said in attributes if name in ("title", "aria-label"))

    def handle_endtag(self, tag):
        self.hidden = False

    def handle_data(self, data):
        self.text += "" if self.hidden else data


@cache
def usual() -> Run:
    return run(Experiment(steps=20))


@cache
def made(query: str) -> Run:
    return run(Experiment.from_query(query if re.search("steps|seconds|epochs", query) else f"{query}&steps=20"))


@cache
def spoken(query: str) -> tuple[str, ...]:
    """Return all lines that the run of this link says of itself, and next to the default run."""
    done = made(query)
    e, one = done.experiment, Shown("the run", done, 0)
    header = unpack(timeline.frame(done, "run"))[0]
    said = [
        head.headline(e, done),
        explain_planned_loss(done),
        *(naming.readable(e, words) for words in (done.error, *done.notes)),
        header["description"],
        header["told"],
        *(flag["text"] for flag in header["flags"]),
        *(chip["text"] for chip in header["chips"]),
        *header["machines"]["names"],
        header["machines"]["description"],
        waits.totals(done),
        headline(done),
        *(f"{headline_label(name, e)} | {figure_of(one, name)}" for name in choose_figures(figures.ABOVE, e)),
        pictures._heard([one], "held_out_loss"),
        f"By rank: {', '.join(charts.rank_series(done))}.",
        difference.between(usual(), done),
    ]
    said += [pictures._traffic(done)] if done.trace.messages["bytes"].any() else []
    said += [pictures._fullest(done)] if done.peak_memory().any() else []
    page = f"{figures.shares(done)}{report([one])}".partition("Run it again")[0]
    lines = re.sub(r"\n\s+(?=\S)", "\n", Lines(page).text).splitlines()
    cells = re.findall(r"\| (\d\S* [kMG]?B)(?= \||$)", page_of_traffic(lines), re.MULTILINE)
    said += [f"most of all cells | {max(cells, key=value)}"] if cells else []
    terminal = re.sub(r"\n {10,}", " ", show.text(done)).splitlines()
    return tuple(filter(None, [*said, *lines, *(line for line in terminal if " digest " not in line)]))


def page_of_traffic(lines: list[str]) -> str:
    """Return the rows of the table of who sends how much to whom; "" if a run has none."""
    return "\n".join(lines).partition("Who sends to whom")[2].partition("Settings")[0]


def value(written: str) -> float:
    number, _, unit = written.partition(" ± ")[0].strip(",. ").partition(" ")
    error = written.rpartition(" ")[2] if " ± " in written else unit  # the unit is behind the error
    unit = unit or error
    scale = 60.0 if unit == "min" else PREFIXES.get(unit[:1], 1.0) if unit[1:] in ("B", "s", "FLOP") else 1.0
    return float(number.replace(",", "").rstrip(".")) * scale


def two_numbers(said) -> dict[str, list[str]]:
    """Return the quantities of which these lines give two different numbers, with the numbers."""
    found = {}
    for quantity, ways in QUANTITIES.items():
        matches = [match for way in ways for one in said for match in re.finditer(way, one, re.MULTILINE)]
        written = list(dict.fromkeys(match[match.lastindex if quantity == "planned steps" else 1] for match in matches))
        values = [value(one) for one in written]
        far = max(values, default=0.0) - min(values, default=0.0)
        if values and far > max(DIGITS * max(values), LEAST * ("%" in written[0])):
            found[quantity] = written
    return found


def strangers(said, e: Experiment, names: list[str]) -> list[str]:
    """Return the ranks that these lines name, or count, and that the run does not have."""
    found = []
    many = {role: sum(name.startswith(role) for name in names) for role in ROLES.split("|")}
    many |= {"worker": e.workers, "rank": len(names)}  # the setting has this name for every method
    for line in said:
        if line.startswith("stages |"):  # a setting
            continue
        for role, first, last in re.findall(rf"(?i)\b({ROLES})s? (\d+)(?:-(\d+))?\b(?!,?\d* (?:to|ranks))", line):
            found += [f"{role} {n}" for n in filter(None, (first, last)) if f"{role.lower()} {n}" not in names]
        for number, role in re.findall(rf"(?<![\d.,-])(\d+) ({ROLES})s?\b(?! per)", line):
            found += [f"{number} {role}s"] * (int(number) > many[role])
    return found


@pytest.mark.parametrize("query", ODD)
def test_what_a_run_says_of_one_quantity_is_one_number_everywhere(query):
    assert two_numbers(spoken(query)) == {}


@pytest.mark.parametrize("query", ODD)
def test_a_run_names_and_counts_only_ranks_that_it_has(query):
    assert strangers(spoken(query), made(query).experiment, lane_names(made(query))) == []


@pytest.mark.parametrize("query", ODD)
def test_what_a_run_says_has_units_and_is_for_people(query):
    done = made(query)
    for name, unit in ((name, UNITS.get(figure.unit)) for name, figure in FIGURES.items()):
        if unit and done.summary.get(name) is not None:
            assert re.search(rf"\d (?:{unit})$", figure_text(name, done.summary[name])), name
    for line in spoken(query):
        assert not re.search(ONE, line), line
        assert not re.search(CODE, line), line


@pytest.mark.parametrize(("before", "now"), PAIRS)
def test_what_a_comparison_says_is_for_people_and_of_the_figures_of_both_runs(before, now):
    runs = made(before), made(now)
    shown = [Shown("the first", runs[0], 0), Shown("the second", runs[1], 1)]
    said = [difference.between(*runs), changes.summarise(changes.between(*(one.experiment for one in runs)))]
    said += [race.verdict(shown, goal)] if (goal := race.finish(runs)) is not None else []
    for line in said:
        assert not re.search(f"{ONE}|{CODE}", line), line
    losses = [figure_text("held_out_loss", one.summary["held_out_loss"]) for one in runs]
    if told := re.search(r"eld-out loss (\S+) instead of (\S+?)(?:\.? |\.?$)", said[0]):
        assert list(told.groups()) == losses[::-1]


def test_the_quantities_of_a_run_are_found_where_they_are_said():
    lines = [line for query in ODD for line in spoken(query)]
    for quantity, ways in QUANTITIES.items():
        for way in ways:
            assert any(re.search(way, line) for line in lines), (quantity, way)


def test_two_numbers_of_one_quantity_are_found():
    assert two_numbers(["Ended at 10 ms, after 93 of 200 steps: ", "ends at 10 ms, after 94 steps, instead"]) == {
        "steps": ["93", "94"]
    }
    assert two_numbers(["Timeline of 4 ranks over 10.2 ms.", "Ended at 10 ms, after 94 steps: "]) == {
        "end": ["10 ms", "10.2 ms"]
    }
    assert two_numbers(["Computing | 38.2 %", "█ compute 39 %  ▓ update 4 %"]) == {"computed": ["39 %", "38.2 %"]}
    assert two_numbers(["  traffic  1.25 MB", "**1.25 MB** in 3 messages", "Sent in total | 1,250 kB"]) == {}


def test_ranks_that_a_run_does_not_have_are_found():
    e, names = Experiment(algorithm="tensor"), ["rank 0", "rank 1", "rank 2", "rank 3"]
    said = ["Stage 1 waits for rank 2", "caused by ranks 2-4", "all 5 ranks", "4 workers", "2 stages"]
    assert strangers(said, e, names) == ["Stage 1", "rank 4", "5 ranks", "2 stages"]
