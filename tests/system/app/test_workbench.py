"""The page, driven without a browser. Runs lie in the store already, unless a test says otherwise."""

import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

import algorithms
import workloads
from algorithms import compression
from app.charts import pictures
from app.session import session
from app.settings import all_settings, controls
from app.workbench import sidebar
from cluster.real import gpus
from experiments.jobs.job import JobState
from experiments.runs import sealed, store
from experiments.specification.catalogue import ALGORITHMS, FAMILIES, FAMILY_IDEAS, choice_label
from experiments.specification.experiment import PAGE, Experiment
from experiments.viewer import palette
from kernels import compiling
from knobs import local
from tests import fabricated
from tests.patience import PATIENCE
from tests.quotes import quote
from tests.tiers import slow_except

ROOT = Path(__file__).resolve().parents[3]
COMPILING = "Compiling kernels, once on this machine; this can take a minute."


@pytest.fixture
def folders(own_folder):
    """Each test has its own runs: what others have stored or left running would change what a page says."""
    return own_folder


def widgets(page) -> dict:
    return {key: node for node in nodes(page._tree) if (key := getattr(node, "key", None))}


def nodes(block):
    for child in block.children.values():
        yield child
        if hasattr(child, "children"):
            yield from nodes(child)


def said(page) -> str:
    """All that warnings, errors and remarks say."""
    return " ".join(element.value for element in (*page.warning, *page.error, *page.info, *page.caption))


def address(page) -> Experiment:
    """The experiment in the page's address."""
    query = {name: page.query_params[name] for name in page.query_params if name not in PAGE}
    return Experiment.of({name: value[-1] if isinstance(value, list) else value for name, value in query.items()})


@pytest.mark.slow
@pytest.mark.parametrize("name", algorithms.names())
def test_every_setting_in_force_has_a_widget_and_no_other_setting_of_the_method_has(page, stored, name):
    experiment = Experiment(algorithm=name)
    stored(experiment)
    opened = page(experiment.query())
    assert not opened.exception
    fields = {*experiment.in_force()}
    declared = algorithms.find(name)
    fields -= set() if declared.compresses else {"compression"}
    fields -= {"workers"} if declared.defaults.get("workers") == 1 else set()
    fields -= {*local(workloads.find(experiment.workload).Settings)}
    assert fields <= widgets(opened).keys()
    assert {*experiment.settings} & widgets(opened).keys() <= fields
    idea = algorithms.idea(algorithms.module(name))
    assert any(idea in re.sub("<[^>]+>", "", element.value) for element in opened.markdown)


def test_notes_on_an_experiment_stand_beside_the_button_before_it_runs_and_above_its_figures_then(page, folders):
    def noted(place) -> bool:
        return any("weights p stay 1" in element.value for element in place)

    experiment = Experiment(algorithm="push_sum")
    store.save(fabricated.run(Experiment()), folders)
    store.save(replace(fabricated.run(experiment), notes=experiment.notes), folders)
    opened = page()
    opened.selectbox("algorithm").select("push_sum").run()
    assert noted(opened.sidebar.markdown) and not noted(opened.main.caption)
    opened.button("run").click().run()
    assert noted(opened.main.caption) and not noted(opened.sidebar.markdown)


FIRST = {"algorithm", "workers", "network", "troubles"}


def test_there_are_four_controls_at_first_and_all_settings_on_request(page, stored):
    stored(Experiment())
    opened = page(unfolded=False)
    settings = {*Experiment.model_fields, *Experiment().settings, *Experiment().data, "troubles"}
    assert settings & widgets(opened).keys() == FIRST
    opened.toggle("all_settings").set_value(True).run()
    assert settings & widgets(opened).keys() > FIRST | {"batch", "learning_rate", "workload", "cluster"}
    assert not opened.exception


def test_what_makes_an_algorithm_what_it_is_needs_no_switch(page, stored):
    stored(Experiment(algorithm="easgd"))
    opened = page("algorithm=easgd&pull=0.5", unfolded=False)
    assert opened.sidebar.select_slider("pull").value == 0.5 and opened.sidebar.select_slider("period").value == 4
    assert not opened.toggle("all_settings").value and "momentum" not in widgets(opened)
    opened.toggle("all_settings").set_value(True).run()
    assert {"pull", "period", "learning_rate", "synchronous"} <= widgets(opened).keys() and not opened.exception


def test_a_link_with_other_settings_opens_all_of_them(page, stored):
    for experiment, opens in ((Experiment(workers=8, slow="1:3"), False), (Experiment(batch=64), True)):
        stored(experiment)
        assert page(experiment.query(), unfolded=False).toggle("all_settings").value is opens


def test_what_cannot_run_is_said_before_it_does_and_mended_by_a_button(page, stored):
    stored(Experiment())
    opened = page()
    opened.selectbox("algorithm").select("gpipe").run()
    opened.select_slider("workers").set_value(16).run()
    assert "16 stages do not fit 8 layers" in said(opened)
    assert opened.button("run").disabled and opened.metric  # the last result stays
    assert opened.button("mend").label == "Use 8 workers"
    opened.button("mend").click().run()
    assert address(opened) == Experiment(algorithm="gpipe", workers=8) and not opened.button("run").disabled
    assert "cannot run" not in said(opened) and not opened.exception


def test_a_link_that_cannot_run_says_so_and_offers_what_can(page):
    opened = page("algorithm=gpipe&workers=16")
    assert "16 stages do not fit 8 layers" in said(opened) and opened.button("mend").label == "Use 8 workers"
    assert "asked" not in opened.session_state and not opened.exception


@pytest.mark.parametrize(
    "query",
    slow_except(
        2,
        [
            "algorithm=chimera&workers=5",
            "algorithm=dualpipe&workers=12&slow=2:4",
            "algorithm=dualpipe_v&workers=5",
            "algorithm=pipedream_2bw&workers=12",
            "algorithm=zb_h2&workers=7&crash=1:0.01",
        ],
    ),
)
def test_a_pipeline_without_a_schedule_says_so_with_all_settings_open(page, query):
    opened = page(query)
    assert "This cannot run" in said(opened) and not opened.exception
    assert len(opened.button_group("rank").options) == address(opened).workers  # each may have a fault taken back


def test_settings_that_are_folded_away_are_in_force_all_the_same(page, stored):
    experiment = Experiment(algorithm="easgd", slow="1:3", precision="float64")
    stored(experiment)
    opened = page(experiment.query(), unfolded=False)
    assert "slow" not in widgets(opened) and "precision" not in widgets(opened)
    opened.select_slider("workers").set_value(2).run()
    assert address(opened) == experiment.change(workers=2)


def test_the_slider_of_rates_reaches_ten_times_the_rate_that_the_experiment_begins_with(page, stored):
    experiment = Experiment(algorithm="asgd", workload="sparse")
    stored(experiment)
    slider = page(experiment.query()).select_slider("learning_rate")
    assert slider.value == experiment.settings["learning_rate"]
    assert float(slider.options[-1].replace(",", "")) >= 10 * slider.value


def test_a_page_that_is_drawn_again_does_not_read_the_sources_again(page, stored, monkeypatch):
    experiment = Experiment(batch=48)  # its best rate is in no table
    stored(experiment)
    opened = page(experiment.query())
    monkeypatch.setattr("experiments.jobs.spec.source_version", lambda: pytest.fail("they were read"))
    opened.run()
    assert not opened.exception and opened.button("best-rate").label == "Find its best rate"


def test_what_was_changed_stays_when_it_is_folded_away(page, stored):
    stored(Experiment())
    opened = page()
    opened.text_input("slow").set_value("1:3").run()
    opened.session_state["more-cluster"] = False
    opened.run()
    assert "slow" not in widgets(opened)
    assert address(opened.run()) == Experiment(slow="1:3")


@pytest.mark.slow
@pytest.mark.parametrize("name", algorithms.names())
def test_a_finished_run_shows_its_figures_curves_and_timeline(page, stored, canvases, name):
    experiment = Experiment(algorithm=name)
    stored(experiment)
    opened = page(experiment.query())
    figures = {metric.label: metric.value for metric in opened.metric}
    assert figures["Held-out accuracy"] == "95.5 ± 1.1 %"
    assert figures["Staleness"].endswith("updates")
    assert canvases(opened).keys() == {"loss", "accuracy", "timeline", "landscape"}
    assert not opened.exception


def test_the_first_page_needs_no_plotting_library(page, stored):
    stored(Experiment())
    assert not page().get("plotly_chart")


def test_the_first_page_shows_the_default_run_without_being_asked(page, stored):
    stored(Experiment())
    opened = page()
    assert opened.metric
    assert address(opened) == opened.session_state.asked == Experiment()


def test_the_first_screen_explains_the_look_of_an_idle_lane_where_one_is_idle(page, folders):
    for kinds, told in ((5, True), (4, False)):  # with idle, the last of them, and without
        experiment = Experiment(seed=kinds)
        run = fabricated.run(experiment)
        spans = {name: column[run.trace.spans["kind"] < kinds] for name, column in run.trace.spans.items()}
        store.save(replace(run, trace=replace(run.trace, spans=spans)), folders)
        opened = page(f"{experiment.query()}&welcome=true")
        (words,) = (one.value for one in opened.markdown if "has a lane" in one.value)
        assert ("idle" in words) is told


def test_moving_a_widget_changes_the_experiment_and_the_address(page, stored):
    stored(Experiment())
    opened = page()
    opened.select_slider("workers").set_value(8).run()
    assert address(opened) == Experiment(workers=8)
    assert any("workers 4 → 8" in element.value for element in opened.markdown)


@pytest.mark.parametrize(
    "values",
    [
        {"algorithm": "easgd", "workers": 7, "period": 13, "latency": 0.0003},
        {"algorithm": "downpour", "shards": 3, "overlap": True, "update": "sgd", "epochs": 2.5},
        {"algorithm": "pipedream", "weights": "vertical", "momentum": 0.9, "depth": 9},
        {"workload": "quadratic", "noise": 1.25, "condition": 33.0, "steps": 77, "seed": 123456},
        {"compression": "top_k", "density": 0.037, "error_feedback": False},
        {"update": "momentum", "momentum": 0.996},
        {"slow": "1:3", "pause": "2:0.5-0.8", "jitter": "pareto", "bandwidth": 1.5e8, "collective": "tree"},
    ],
)
def test_a_link_opens_as_exactly_that_experiment(page, stored, values):
    experiment = Experiment.of(values)
    stored(experiment)
    opened = page(experiment.query())
    assert not opened.exception and not opened.warning
    assert address(opened) == experiment
    assert opened.session_state.asked == experiment


@pytest.mark.parametrize(
    "values",
    [
        {"cluster": "processes", "network": "10GbE", "latency": 0.002, "slow": "2:3"},
        {"cluster": "threads", "device": "laptop", "per_node": 2},
        {"cluster": "gpus", "jitter": "cloud", "crash": "1:0.5"},
    ],
)
def test_a_link_to_a_real_cluster_opens_as_what_it_emulates_and_waits_for_run(page, values, monkeypatch):
    monkeypatch.setattr(gpus, "count", lambda: 8)
    experiment = Experiment.of(values)
    opened = page(experiment.query())
    assert not opened.exception and not opened.warning
    assert address(opened) == experiment and "asked" not in opened.session_state


@pytest.mark.parametrize(
    ("cluster", "refused"),
    [
        ("processes", set()),
        ("threads", {"crash"}),
        ("gpus", {"network", "latency", "bandwidth", "per_node", "nics", "device"}),
    ],
)
def test_what_a_cluster_cannot_obey_is_disabled_and_says_why(page, stored, cluster, refused):
    stored(Experiment())
    opened = page()
    opened.selectbox("cluster").select(cluster).run()
    assert not opened.exception and address(opened) == Experiment(cluster=cluster)
    knobs = {name: widgets(opened)[name] for name in (*controls.DELAY, *controls.PLACE, *controls.MORE)}
    assert {name for name, knob in knobs.items() if knob.disabled} == refused
    for name in knobs:
        assert ("Not on this cluster" in knobs[name].help) is (name in refused)


def test_what_a_cluster_refuses_can_be_taken_back_and_then_is_disabled(page, stored):
    stored(Experiment())
    opened = page("network=1GbE")
    opened.selectbox("cluster").select("gpus").run()
    network = opened.selectbox("network")
    assert network.value == "1GbE" and not network.disabled
    network.select("own").run()
    assert opened.selectbox("network").disabled and address(opened) == Experiment(cluster="gpus")


def test_a_real_cluster_begins_with_its_own_network_and_emulates_what_is_chosen(page, stored):
    stored(Experiment())
    opened = page()
    opened.selectbox("cluster").select("processes").run()
    network = opened.selectbox("network")
    assert network.value == "own" and network.options[0] == "this machine's own · not emulated"
    network.select("1GbE").run()
    assert address(opened) == Experiment(cluster="processes", network="1GbE")
    opened.selectbox("cluster").select("simulated").run()
    assert address(opened) == Experiment(network="1GbE")
    assert not [said for said in opened.selectbox("network").options if "own" in said]


@pytest.mark.parametrize(
    ("query", "words"),
    slow_except(
        5,
        [
            ("algorithm=<script>alert(1)</script>", "algorithm"),
            ("workers=999999999", "1 to 4096"),
            ("workers=", "Workers … 1 to 4096"),
            ("workers=four", "Workers … 'four'"),
            ("learning_rate=nan", "learning\\_rate … nan"),
            ("nonsense=1", "'nonsense'"),
            ("algorithm=easgd&n_push=3", "'n\\_push'"),
            ("compression=topk", "did you mean top\\_k?"),
            ("density=0.1", "'density'"),
            ("compression=top_k&density=2", "density … '2' … above 0 to 1"),
            ("algorithm=easgd&compression=top_k", "easgd … compress"),
            ("slow=9:3", "no rank 9"),
            ("network=carrier pigeon", "carrier pigeon"),
            ("workload=text&file=/etc/passwd", "link … file"),
            ("workload=mnist&folder=/etc", "link … folder"),
            ("workers=8&" + "x" * 9000 + "=1", "characters"),
        ],
    ),
)
def test_a_link_that_cannot_be_read_says_so_in_one_sentence(page, stored, query, words):
    stored(Experiment())
    opened = page(query)
    assert not opened.exception
    assert re.search(quote(words), said(opened))
    assert address(opened) == Experiment()
    assert opened.metric


@pytest.mark.parametrize("pin", slow_except(2, ["../../etc/passwd", "%00", "a" * 5000, "0123456789abcdef-gone", ",,,"]))
def test_a_hostile_list_of_pinned_runs_does_no_harm(page, stored, pin):
    stored(Experiment())
    opened = page(f"pin={pin}&axis=sideways&log=perhaps&source=maybe")
    assert not opened.exception
    assert opened.metric


def test_a_setting_that_does_not_fit_is_refused_in_a_sentence_and_nothing_runs(page, stored):
    stored(Experiment())
    opened = page()
    opened.text_input("slow").set_value("9:3").run()
    assert re.search(quote("no rank 9 … 0 to 3"), said(opened))
    assert opened.button("run").disabled
    assert not opened.exception


def test_another_algorithm_starts_from_its_own_defaults(page, stored):
    stored(Experiment())
    opened = page("learning_rate=0.5")
    opened.selectbox("algorithm").select("gpipe").run()
    assert address(opened) == Experiment(algorithm="gpipe")
    opened.selectbox("algorithm").select("easgd").run()
    assert address(opened) == Experiment(algorithm="easgd")


def test_an_algorithm_with_a_workload_of_its_own_brings_it_and_leaves_with_it(page, stored):
    stored(Experiment())
    opened = page("learning_rate=0.5")
    opened.selectbox("algorithm").select("context").run()
    assert address(opened) == Experiment(algorithm="context") and not opened.exception
    opened.selectbox("algorithm").select("easgd").run()
    assert address(opened) == Experiment(algorithm="easgd")
    chosen = page("workload=text&depth=4")
    for name in ("context", "tensor"):
        chosen.selectbox("algorithm").select(name).run()
        assert address(chosen) == Experiment.of({"algorithm": name, "workload": "text", "depth": 4})


def offers_workers(page) -> bool:
    """Whether the number of workers can be chosen."""
    return "workers" in [slider.key for slider in page.select_slider]


def test_workers_and_steps_begin_where_an_algorithm_has_its_own_and_one_that_trains_alone_keeps_one(page, stored):
    stored(Experiment())
    opened = page("workers=8")
    opened.selectbox("algorithm").select("sgd").run()
    assert address(opened) == Experiment(algorithm="sgd") and not offers_workers(opened)
    opened.selectbox("algorithm").select("sandblaster").run()
    assert address(opened) == Experiment(algorithm="sandblaster") and offers_workers(opened)
    opened.selectbox("algorithm").select("easgd").run()
    assert address(opened) == Experiment(algorithm="easgd")


def test_workers_that_a_link_gives_to_an_algorithm_that_trains_alone_can_be_taken_back(page, stored):
    stored(Experiment(algorithm="sgd"))
    opened = page("algorithm=sgd&workers=4")
    assert offers_workers(opened)
    opened.select_slider("workers").set_value(1).run()
    assert address(opened) == Experiment(algorithm="sgd") and not offers_workers(opened)


@pytest.mark.parametrize(
    ("name", "module"),
    [("FSDP", "zero3"), ("ZeRO", "zero1"), ("DiLoCo", "diloco"), ("1F1B", "dapple"), ("DDP", "overlap"),
     ("FedAvg", "local_sgd"), ("Megatron", "tensor"), ("zero bubble", "zb_h1"), ("parameter server", "asgd"),
     ("zero bubble", "zb_h2"), ("zero bubble", "zb_v"), ("pipeline", "dapple"), ("pipeline", "gpipe"),
     ("pipeline", "pipedream"), ("federated", "scaffold"), ("FedProx", "scaffold"), ("LARS", "lamb"),
     ("Krum", "robust"), ("Byzantine", "robust"), ("elastic averaging", "easgd")],
)  # fmt: skip
def test_the_names_that_people_use_today_are_in_the_label_of_their_algorithm(name, module):
    assert name in choice_label(ALGORITHMS, module)


def test_the_families_are_listed_with_a_sentence_each(page, stored):
    stored(Experiment())
    opened = page("learning_rate=0.5")
    opened.button("families").click().run()
    assert not opened.exception
    labels = [place.label for place in opened.expander if place.label.startswith("**")]
    assert labels == [
        f"**{FAMILIES[one]} ({count}).** {FAMILY_IDEAS[one]}"
        for one, count in Counter(e.family for e in ALGORITHMS.values()).items()
    ]
    assert any(label.startswith("**One worker (7).**") for label in labels)
    assert len({*FAMILY_IDEAS.values()}) == len(FAMILIES)


def test_the_side_bar_says_what_run_would_do_now(page, stored):
    def says(opened) -> str:
        (told,) = [one.value for one in opened.sidebar.markdown if "Run**" in one.value or "have run" in one.value]
        return told

    stored(Experiment())
    opened = page()
    assert "These settings have run" in says(opened)
    opened.select_slider("workers").set_value(8).run()
    assert "**Run** starts 8 workers" in says(opened)


def test_what_an_algorithm_becomes_in_special_cases_stands_under_its_idea(page, stored):
    stored(Experiment())
    badge = next(element for element in page().markdown if "badge" in element.value)
    assert badge.value.startswith(":small[Special case:]") and badge.value.endswith("one worker gives SGD]")
    assert "N workers give SGD with N times the batch: up to rounding" in badge.proto.help


def test_the_other_meanings_of_delay_lead_to_algorithms_that_have_them(page, stored):
    stored(Experiment())
    for field, (_, name) in all_settings.LATE.items():
        opened = page()
        opened.button(f"late-{field}").click().run()
        assert address(opened) == Experiment(algorithm=name)
        assert controls.control(algorithms.find(name).Settings, field).postpones
        assert f"late-{field}" not in widgets(opened)


@pytest.mark.parametrize("name", slow_except(("top_k", "power_sgd"), compression.COMPRESSIONS))
def test_a_compression_brings_its_settings_and_its_idea(page, stored, name):
    stored(Experiment())
    opened = page()
    before = widgets(opened).keys()
    opened.selectbox("compression").select(name).run()
    assert not opened.exception
    assert widgets(opened).keys() - before >= compression.find(name).Settings.model_fields.keys()
    texts = [re.sub(r"<[^>]+>", "", element.value) for element in opened.markdown]  # without marks of the glossary
    assert any(algorithms.idea(compression.module(name)) in text for text in texts)
    assert address(opened) == Experiment(compression=name)


def test_another_compression_starts_from_its_own_defaults(page, stored):
    stored(Experiment())
    opened = page("compression=top_k&density=0.5")
    opened.selectbox("compression").select("random_k").run()
    assert address(opened) == Experiment(compression="random_k")
    opened.selectbox("compression").select("none").run()
    assert address(opened) == Experiment()


def test_a_compression_stays_with_an_algorithm_that_can_use_it_and_goes_with_another(page, stored):
    stored(Experiment())
    opened = page("compression=top_k&density=0.5")
    opened.selectbox("algorithm").select("large_batch").run()
    assert address(opened).coding["density"] == 0.5
    opened.selectbox("algorithm").select("easgd").run()
    assert address(opened) == Experiment(algorithm="easgd") and "compression" not in widgets(opened)
    assert not opened.exception and not opened.warning
    opened.selectbox("algorithm").select("sync_sgd").run()
    assert address(opened) == Experiment()


def test_what_changed_is_said_of_a_compression_too(page, stored):
    stored(Experiment())
    opened = page()
    opened.selectbox("compression").select("top_k").run()
    assert any("compression none → top\\_k" in element.value for element in opened.markdown)


def test_what_a_method_measured_has_a_chart_for_those_that_measured(page, stored, canvases):
    stored(Experiment())
    stored(Experiment(algorithm="noise_scale", seed=6), quantities=("signal", "noise scale"))
    assert not any("What the method measured" in element.value for element in page().markdown)
    opened = page("algorithm=noise_scale&seed=6")
    assert any("What the method measured" in element.value for element in opened.markdown)
    assert {"measured-signal", "measured-noise scale"} < canvases(opened).keys() and not opened.exception


def test_a_model_that_was_chosen_stays_with_another_algorithm(page, stored):
    stored(Experiment())
    opened = page("hidden=77")
    opened.selectbox("algorithm").select("easgd").run()
    assert address(opened).data["hidden"] == "77"


def test_another_workload_brings_its_own_settings(page, stored):
    stored(Experiment())
    opened = page()
    opened.selectbox("workload").select("quadratic").run()
    assert "condition" in widgets(opened) and "hidden" not in widgets(opened)
    assert address(opened) == Experiment(workload="quadratic")


@pytest.mark.parametrize("name", slow_except(("quadratic", "table", "text"), workloads.WORKLOADS))
def test_every_setting_of_a_workload_in_force_has_a_widget_but_for_files_of_the_machine(page, stored, name):
    stored(Experiment())
    opened = page("workload=table" if name == "table" else "")  # in the menu it opens another page
    opened.selectbox("workload").select(name).run()
    assert not opened.exception
    own = workloads.find(name).Settings
    shown = {*own.model_fields} & {*Experiment(workload=name).in_force()}
    assert {*own.model_fields} & widgets(opened).keys() == shown - {*local(own)}
    assert address(opened) == Experiment(workload=name)


def test_reset_brings_back_the_defaults_and_their_run(page, stored):
    stored(Experiment())
    easgd = Experiment(algorithm="easgd", workers=16)
    stored(easgd)
    opened = page(easgd.query())
    opened.button("reset").click().run()
    assert address(opened) == Experiment()
    assert opened.session_state.shown.split("/")[-1].startswith(Experiment().key())


def test_pinned_runs_are_laid_over_the_next_one(page, stored, canvases):
    one, two = (Experiment.of({"algorithm": "easgd", "period": period}) for period in (2, 8))
    stored(one)
    folder = stored(two)
    opened = page(one.query())
    opened.button("pin-it").click().run()
    opened.select_slider("period").set_value(8).run()
    opened.button("run").click().run()
    assert not opened.exception
    assert opened.session_state.shown == str(folder)
    table = next(element.value for element in opened.get("html") if "<table>" in str(element.value))
    assert "EASGD, period 2" in table and "EASGD, period 8" in table
    header, _ = canvases(opened)["loss"]
    assert len({line["colour"] for line in header["lines"] if not line["bare"]}) == 2
    told = [
        one.value
        for one in opened.markdown
        if "Compared with **EASGD, period 2**, pinned (now **period 2 → 8**): " in one.value
    ]
    assert len(told) == 1 and told[0].endswith(
        "including all times."
    )  # fabricated runs are alike; before Race is pressed


def test_algorithms_are_told_apart_by_what_both_could_have_and_not_by_knobs_of_their_own(page, stored, canvases):
    pinned = stored(Experiment.of({"algorithm": "easgd", "momentum": 0.5})).name
    stored(Experiment(workers=3))
    header, _ = canvases(page(Experiment(workers=3).query() + f"&pin={pinned}"))["loss"]
    assert {line["name"].rpartition(",")[0] for line in header["lines"]} == {
        "EASGD, 4 workers",
        "Synchronous SGD, 3 workers",
    }


def test_a_run_keeps_its_colour_when_another_is_unpinned_and_a_link_from_before_still_pins(page, stored):
    experiments = [Experiment(workers=workers) for workers in (1, 2, 3)]
    names = [stored(experiment).name for experiment in experiments]
    opened = page(experiments[2].query() + "&keep=" + ",".join(names[:2]))
    before = legend(opened)
    opened.button(f"unpin-{names[0]}").click().run()
    assert legend(opened) == {name: before[name] for name in before if "1 worker" not in name}
    assert pins(opened) == f"{names[1]}~1" and "keep" not in opened.query_params


def pins(page) -> str:
    """What the page's address says of pinned runs."""
    said = page.query_params["pin"]
    return said if isinstance(said, str) else said[0]


def legend(page) -> dict[str, str]:
    """The colours of the runs on the page, by what the legend calls them."""
    (told,) = [one.value for one in page.get("html") if "line: training" in str(one.value)]
    return {name: colour for colour, name in re.findall(r'<b style="color: (#\w+)">.</b> ([^<]+)</span>', told)}


def test_colours_are_the_same_after_pinning_and_in_the_copy_of_a_link(page, stored):
    pinned, other, shown = (Experiment(workers=workers) for workers in (1, 2, 3))
    names = [stored(one).name for one in (pinned, other, shown)]
    opened = page(f"{shown.query()}&pin={names[0]},{names[1]}")
    opened.button(f"unpin-{names[0]}").click().run()
    before = legend(opened)
    assert list(before.values()) == [palette.RUNS[1].colour, palette.RUNS[2].colour]
    opened.session_state["share-view"] = True
    opened.run()
    link = urlsplit(next(block.value for block in opened.code if "?" in block.value)).query
    assert legend(page(link)) == before
    opened.button("pin-it").click().run()
    assert pins(opened) == f"{names[1]}~1,{names[2]}~2" and legend(opened) == before


def test_a_run_before_that_is_pinned_takes_a_colour_that_no_run_on_the_page_has(page, stored):
    one, two = Experiment(workers=2), Experiment(workers=3)
    names = [stored(each).name for each in (one, two)]
    opened = page(one.query())
    opened.select_slider("workers").set_value(3).run()
    opened.button("run").click().run()
    opened.button("race").click().run()
    assert pins(opened) == f"{names[0]}~1" and "colour" not in opened.query_params
    assert legend(opened)["Synchronous SGD, 3 workers"] == palette.RUNS[0].colour


def test_a_diverged_run_says_so_and_shows_what_was_recorded(page, stored):
    experiment = Experiment.of({"learning_rate": 50, "seed": 9})
    stored(experiment, status="diverged", error="the loss became nan at step 7 on rank 2; use less")
    opened = page(experiment.query())
    assert "**Diverged.**" in said(opened) and "at step 7 on worker 2" in said(opened)
    assert opened.metric and not opened.exception


def test_a_remark_of_a_run_is_shown_as_it_is(page, stored):
    stored(Experiment())
    assert any("\\*fast\\* and \\$slow\\$" in element.value for element in page().caption)


def test_a_damaged_folder_is_put_aside_and_its_experiment_is_run_again(page, stored, folders):
    experiment = Experiment(seed=44, steps=20, evaluations=1)
    folder = stored(experiment)
    (folder / "spans.parquet").write_bytes(b"not a table")
    opened = page(experiment.query())
    assert not opened.exception
    done = session.wait(experiment.key(), 300)
    assert done.folder and store.load(done.folder).experiment == experiment
    assert [*folders.glob(f".damaged-{folder.name}-*")]


def test_a_workload_without_accuracy_has_one_chart_less(page, stored):
    experiment = Experiment(workload="quadratic")
    stored(experiment, accuracy=False)
    opened = page(experiment.query())
    assert {metric.label: metric.value for metric in opened.metric}["Held-out accuracy"] == "–"
    assert not opened.exception


def test_a_synchronous_run_says_why_there_is_no_staleness(page, stored):
    stored(Experiment(seed=55), stale=False)
    opened = page("seed=55")
    opened.session_state["tab"] = "Staleness"
    assert "is synchronous: every update is computed from the newest parameters" in said(opened.run())


@pytest.mark.parametrize("tab", slow_except(2, pictures.TABS))
def test_only_the_part_that_is_looked_at_is_drawn(page, stored, tab):
    stored(Experiment(algorithm="easgd"))
    opened = page("algorithm=easgd")
    opened.session_state["tab"] = tab
    opened.run()
    bars = sum('class="bars"' in str(element.value) for element in opened.get("html"))
    drawn = {"Who sends to whom": (2, 0), "Staleness": (1, 0), "Each rank": (0, 0)}.get(tab, (0, 1))
    assert (len(opened.get("plotly_chart")), bars) == drawn and not opened.exception


def test_who_sends_most_to_whom_is_said_in_words(page, stored):
    stored(Experiment(algorithm="easgd"))
    opened = page("algorithm=easgd")
    opened.session_state["tab"] = "Who sends to whom"
    words = " ".join(element.value for element in opened.run().markdown)
    assert "**8.32 MB** in 160 messages" in words and "All 4 links in use carry the same" in words


def test_who_holds_most_is_said_in_words(page, stored):
    stored(Experiment())
    opened = page()
    opened.session_state["tab"] = "Memory"
    assert (
        "All workers held the same amount, 364 kB each: 52 kB parameters, 104 kB gradients, 208 kB activations."
        in said(opened.run())
    )


def test_what_only_one_rank_measured_is_not_shown_rank_by_rank(page, stored):
    stored(Experiment())
    opened = page()
    opened.session_state["tab"] = "Each rank"
    assert "no per-rank measurements" in said(opened.run())


def test_a_link_alone_starts_no_real_processes(page):
    opened = page("cluster=processes&workers=2")
    assert "so it waits for you" in said(opened)
    assert "job" not in opened.session_state


class Pool:
    """A pool whose one job stands where the test says."""

    def __init__(self, state=None, refusal=""):
        self.now, self.refusal, self.cancelled, self.others = state, refusal, [], False

    def has_other_readers(self, owner):
        return self.others

    def submit(self, owner, experiment):
        if self.refusal:
            raise ValueError(self.refusal)
        return experiment.key()

    def reattach(self, owner, experiment):
        return experiment.key()

    def state(self, job):
        return self.now

    def cancel(self, job, owner):
        self.cancelled.append(job)
        self.now = JobState("cancelled", message="stopped before it began")
        return True

    def touch(self, owner): ...

    def release(self, owner): ...


@pytest.fixture
def pool(monkeypatch):
    """pool(state) puts a pool of that state in the place of the real one."""

    def put(*args, **kwargs):
        made = Pool(*args, **kwargs)
        monkeypatch.setattr(session, "pool", lambda: made)
        return made

    return put


def test_a_run_under_way_shows_how_far_it_is_and_can_be_stopped(page, pool):
    columns = {"step": np.arange(1.0, 9.0), "seconds": np.arange(8.0), "samples": np.arange(8.0), "loss": np.ones(8)}
    made = pool(JobState("running", fraction=0.5, seconds=0.25, curve=columns))
    opened = page("seed=1001")
    assert opened.get("progress")[0].proto.text == "50.0 % · 250 ms of virtual time · loss 1.00"
    assert {node.key for node in opened.get("bidi_component")} >= {"loss", "accuracy"}
    assert not opened.button("stop").disabled
    opened.button("stop").click().run()
    assert made.cancelled == [Experiment(seed=1001).key()]
    assert not opened.exception and opened.button("stop").disabled
    assert "Stopped before it began." in said(opened)


def test_a_run_that_waits_for_the_compiler_says_so(page, pool):
    pool(JobState("running", phase=compiling.WORDS))
    assert page("seed=1031").get("progress")[0].proto.text == COMPILING


def test_the_first_screen_says_where_its_lanes_will_be_that_it_waits_for_the_compiler(page, pool):
    pool(JobState("running", phase=compiling.WORDS))
    told = [
        one for one in page("seed=1032&welcome=true").main if one.type in ("progress", "caption", "heading", "markdown")
    ]
    places = [n for n, one in enumerate(told) if one.type == "progress"]
    titles = [n for n, one in enumerate(told) if one.type == "markdown" and one.value.startswith("# ")]
    assert [told[n].proto.text for n in places] == [COMPILING, "In progress."]  # not said twice
    assert titles[0] < places[0] < titles[1] < places[1]  # of the first screen, and of the run


def test_a_run_that_is_stopped_and_not_stored_keeps_its_curve_and_says_its_step(page, pool, canvases):
    columns = {"step": np.array([1.0, 1600.0]), "seconds": np.arange(2.0), "samples": np.ones(2), "loss": np.ones(2)}
    made = pool(JobState("running", fraction=0.16, seconds=0.25, curve=columns))
    opened = page("seed=1012")
    for how in ("cancelled", "failed"):
        made.now = replace(made.now, status=how, message="it took too long.")
        opened.run()
        assert "Stopped at step 1,600." in said(opened) and "took too long" in said(opened)
        assert "loss" in canvases(opened) and "not run" not in said(opened) and not opened.exception
        made.now = replace(made.now, status="running")
        opened.button("run").click().run()
        assert "Stopped at step" not in said(opened)


def test_a_run_that_somebody_else_waits_for_is_left_with_its_curve_and_says_that_it_continues(page, pool, canvases):
    columns = {"step": np.array([1.0, 160.0]), "seconds": np.arange(2.0), "samples": np.ones(2), "loss": np.ones(2)}
    made = pool(JobState("running", fraction=0.16, seconds=0.25, curve=columns))
    made.cancel = lambda job, owner: False
    opened = page("seed=1013")
    opened.button("stop").click().run()
    assert "continues for another reader" in said(opened) and "loss" in canvases(opened)
    assert opened.button("stop").disabled and not opened.exception


@pytest.mark.parametrize("how", ["pinned", "named"])
def test_a_run_that_somebody_pins_or_names_is_kept(page, stored, how):
    stored(Experiment())
    folder = stored(Experiment(seed=1033))
    (folder / sealed.CACHED).touch()
    if how == "named":
        opened = page(f"run={folder.name}")
    else:
        opened = page()
        opened.session_state.shown = str(folder)
        opened.run().button("pin-it").click().run()
    assert not (folder / sealed.CACHED).exists() and not opened.exception


def test_a_stopped_run_that_was_stored_says_its_step_and_its_time_in_the_numbers_of_its_figures(page, stored):
    stored(Experiment())
    opened = page()
    opened.session_state.shown = str(stored(Experiment(seed=1014), status="cancelled", error="cancelled at 1 s"))
    took = next(metric.value for metric in opened.run().metric if metric.label == "Virtual time")
    assert f"Stopped at step 40, after {took}.**" in said(opened) and "Cancelled" not in said(opened)


RUNNING = JobState("running", fraction=0.5, seconds=0.25)


def changed(opened, **change):
    """The page after these settings were changed."""
    for name, value in change.items():
        opened.session_state[name] = value
    opened.run()
    assert not opened.exception
    return opened


def begun(opened) -> bool:
    """Whether a run was begun other than the one that the page opened with."""
    return opened.session_state.asked != Experiment(seed=1010)


def test_a_short_simulated_run_begins_as_soon_as_a_setting_changes(page, pool):
    pool(RUNNING)
    assert begun(changed(page("seed=1010", at_once=True), workers=2))
    waiting = changed(page("seed=1010"), workers=2)
    assert not begun(waiting)
    assert begun(changed(waiting, at_once=True))  # what was changed before counts, too


@pytest.mark.parametrize(
    ("change", "others", "why"),
    [
        ({"workers": 2, "steps": 10_000}, False, "640,000 samples … 300,000"),
        ({"steps": None, "epochs": 1.0}, False, "length … not known"),
        ({"cluster": "processes"}, False, "Real processes"),
        ({"cluster": "gpus"}, False, "Real GPUs"),
        ({"workers": 2}, True, "Others are waiting"),
    ],
)
def test_what_does_not_begin_at_once_says_why_until_it_runs(page, pool, monkeypatch, change, others, why):
    monkeypatch.setattr(sidebar.feasible, "refusal", lambda _: "")
    pool(RUNNING).others = others
    opened = changed(page("seed=1010", at_once=True), **change)
    assert not begun(opened) and any(re.search(quote(why), one.value) for one in opened.markdown)
    session.pool().others = False
    assert not begun(changed(opened))  # nor when the others have gone
    opened.button("run").click().run()
    assert begun(opened) and not any(re.search(quote(why), one.value) for one in opened.markdown)


def test_a_run_that_was_stopped_does_not_begin_again_until_something_changes(page, pool):
    made = pool(RUNNING)
    opened = page("seed=1011", at_once=True)
    opened.button("stop").click().run()
    made.now = RUNNING
    opened.run()
    assert opened.button("stop").disabled
    opened.session_state["workers"] = 2
    opened.run()
    assert not opened.button("stop").disabled


def test_the_browser_has_the_controls_to_draw_while_the_page_waits_for_the_first_points(page, pool, monkeypatch):
    pool(JobState("running", fraction=0.5, seconds=0.25))
    order = []

    def noted(module, name, word):
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *words, **named: (order.append(word), real(*words, **named))[1])

    noted(sidebar.trouble, "choose", "controls")
    noted(session, "wait", "wait")
    noted(sidebar, "_actions", "buttons")
    opened = page("seed=1006")
    assert order == ["controls", "wait", "buttons"]
    opened.run()
    assert order[3:] == ["controls", "buttons"]  # it waits once for a run


def test_a_page_reloaded_in_the_middle_of_a_real_run_goes_on_showing_it(page, pool):
    columns = {"step": np.arange(1.0, 9.0), "seconds": np.arange(8.0), "samples": np.arange(8.0), "loss": np.ones(8)}
    pool(JobState("running", fraction=0.5, seconds=0.25, curve=columns), refusal="Nothing new is to be started.")
    opened = page("cluster=processes&workers=2&seed=1005")
    assert opened.get("progress")[0].proto.text == "50.0 % · 250 ms of run time · loss 1.00"
    assert not opened.button("stop").disabled and not opened.exception


def test_a_run_that_failed_says_why(page, pool):
    pool(JobState("failed", message="4 stages do not fit 3 layers; use 1 to 3"))
    opened = page("seed=1002")
    assert "**This did not run.** 4 stages do not fit 3 layers; use 1 to 3." in said(opened)
    assert not opened.exception


def test_a_full_queue_says_so(page, pool):
    pool(refusal="100 runs are waiting, and no more can; try again in a minute.")
    opened = page("seed=1003")
    assert "100 runs are waiting, and no more can; try again in a minute." in said(opened)
    assert not opened.exception


def test_a_run_that_could_not_be_kept_in_its_place_is_shown_with_a_warning(page, pool, stored):
    folder = stored(Experiment(seed=1004))
    pool(JobState("finished", folder=folder, message="the disk is full. It was kept elsewhere instead."))
    opened = page("seed=1004")
    assert "The disk is full. It was kept elsewhere instead." in said(opened)
    assert opened.metric


def test_the_source_and_the_way_to_repeat_a_run_are_there(page, stored):
    experiment = Experiment.of({"algorithm": "easgd", "period": 2})
    stored(experiment)
    opened = page(experiment.query() + "&source=true")
    opened.session_state["share-view"] = True
    codes = [element.value for element in opened.run().code]
    assert experiment.command() in codes
    assert any(experiment.query() in code for code in codes)
    assert Path(algorithms.module("easgd").__file__).read_text().strip() in codes


def test_a_compressed_run_says_how_much_less_it_sent(page, stored):
    stored(Experiment())
    experiment = Experiment(compression="top_k")
    stored(experiment)
    metric = next(m for m in page(experiment.query()).metric if m.label == "Sent in total")
    assert metric.delta.endswith(" % of whole gradients")
    assert not any(m.delta for m in page().metric)


def test_the_source_of_the_compression_is_there_too(page, stored):
    experiment = Experiment(compression="top_k")
    stored(experiment)
    codes = [element.value for element in page(experiment.query() + "&source=true").code]
    for module in (algorithms.module("sync_sgd"), compression.module("top_k")):
        assert Path(module.__file__).read_text().strip() in codes


def test_the_page_needs_neither_torch_nor_compilers_nor_scikit_learn(stored, folders):
    stored(Experiment())
    program = (
        "import sys\n"
        "from streamlit.testing.v1 import AppTest\n"
        f"page = AppTest.from_file('app/pages.py', default_timeout={PATIENCE}).run()\n"
        "assert not page.exception and page.metric, page\n"
        "print([name for name in ('torch', 'numba', 'sklearn', 'llvmlite') if name in sys.modules])\n"
    )
    environment = {**os.environ, "LOCKSTEP_RUNS": str(folders)}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("where", ["workers=4", "welcome=true"])
def test_what_has_changed_since_the_previous_run_stands_over_the_lanes_too(page, stored, where):
    before = stored(Experiment())
    stored(Experiment(slow="3:4"))
    opened = page(f"{where}&slow=3:4")
    opened.session_state["before"] = str(before)
    told = [one.value for one in opened.run().markdown if one.value.startswith("Compared with the previous run")]
    assert not opened.exception and len(told) == 1 and "(now **worker 3 four times slower**)" in told[0]
    opened.session_state["before"] = None
    assert not any(one.value.startswith("Compared with") for one in opened.run().markdown)


def test_the_first_screen_compares_with_the_previous_run_whether_or_not_it_is_pinned(page, stored):
    before = stored(Experiment())
    stored(Experiment(slow="3:4"))
    opened = page(f"welcome=true&slow=3:4&pin={before.name}")
    opened.session_state["before"] = str(before)
    (told,) = [one.value for one in opened.run().markdown if one.value.startswith("Compared with the previous run")]
    assert "**worker 3 four times slower**" in told


def test_the_first_screen_says_over_the_lanes_why_a_run_diverged(page, stored):
    before = stored(Experiment(algorithm="easgd"))
    stored(Experiment.from_query("algorithm=easgd&pull=2"), status="diverged", error="the loss became nan")
    opened = page("welcome=true&algorithm=easgd&pull=2")
    opened.session_state["before"] = str(before)
    (told,) = [one.value for one in opened.run().markdown if one.value.startswith("Compared with the previous run")]
    assert "use at most 1" in told


def test_while_a_run_is_in_progress_the_previous_one_is_grey_and_named(page, stored, monkeypatch):
    stored(Experiment())
    opened = page("welcome=true")
    assert not any("grayscale" in one.value for one in opened.get("html"))
    opened.session_state.job, opened.session_state.asked = "a job", Experiment(algorithm="easgd")
    monkeypatch.setattr(session, "under_way", lambda: JobState("running", phase=COMPILING))
    opened.run()
    assert not opened.exception
    grey = " ".join(one.value for one in opened.get("html") if "grayscale" in one.value)
    assert all(f".st-key-{part}" in grey for part in ("figures", "rest", "timeline"))
    assert ".st-key-timeline::after { content: 'Previous run' }" in grey
    told = next(one.value for one in opened.markdown if "Still shown" in one.value)
    assert re.search(quote("the previous run … Synchronous SGD on handwritten digits … 4 workers"), told)


def test_figures_of_other_settings_are_dimmed_and_say_whose_they_are_while_these_have_not_run(page, stored):
    stored(Experiment())
    opened = page()
    dims = "<style>.st-key-figures { opacity"
    assert not any(dims in str(one.value) for one in opened.get("html"))
    for name, value in (("workers", 2), ("batch", 64), ("seed", 3), ("steps", 100)):
        opened.session_state[name] = value
    opened.run()
    assert any(dims in str(one.value) for one in opened.get("html"))
    assert any(one.value.startswith("Still shown: 4 workers") for one in opened.caption)
    (badge,) = [one.value for one in opened.markdown if "Not run yet" in one.value]
    assert all(word in badge for word in ("workers", "batch", "seed", "steps")) and "more" not in badge


def test_settings_behind_the_switch_are_said_with_their_values_while_it_is_off(page, stored):
    stored(Experiment(seed=3, seconds=0.1))
    opened = page("seed=3&seconds=0.1", unfolded=False)
    opened.session_state["all_settings"] = False
    opened.run()
    assert any("Changed in All settings: time budget 100 ms, seed 3." in one.value for one in opened.caption)
    own = Experiment.of({"workload": "table", "table": "small_81d926f7", "batch": 16})
    assert sidebar.beyond(own) == ["batch"]  # the title has the table


def test_a_link_that_waits_opens_with_the_default_run_and_asks_before_it_runs_its_own(page, stored):
    asked = Experiment(algorithm="easgd", seed=777)
    stored(Experiment()), stored(asked)  # that somebody else has run it gives nothing away
    opened = page(f"{asked.query()}&at_once=false")
    assert opened.session_state.asked == Experiment() and address(opened) == asked
    assert any("Not run yet" in one.value for one in opened.markdown)
    assert opened.button_group("predict-held_out_loss").value is None
    opened.button("run").click().run()
    assert opened.session_state.asked == asked and not opened.exception


def test_a_link_that_waits_compares_with_a_run_on_the_same_data(page, stored):
    known = Experiment.of({"workload": "quadratic", "noise": 0})
    asked = known.change(workers=2)
    stored(known)
    opened = page(f"{asked.query()}&at_once=false")
    assert opened.session_state.asked == known and address(opened) == asked


def test_what_a_method_measured_has_a_unit_and_a_sentence(page, stored, canvases):
    names = ("conflicts", "clocks apart", "a stranger's")
    stored(Experiment(algorithm="ssp"), quantities=names)
    opened = page("algorithm=ssp")
    titles = [one.value for one in opened.markdown]
    assert "**conflicts, share of writes**" in titles and "**clocks apart, steps**" in titles
    assert "that the fastest worker is ahead" in said(opened)
    assert {f"measured-{name}" for name in names} <= canvases(opened).keys() and not opened.exception


def test_a_pipeline_that_follows_another_begins_with_as_many_micro_batches_where_it_can(page, stored):
    stored(Experiment(algorithm="gpipe"))
    opened = page("algorithm=gpipe")
    opened.selectbox("algorithm").select("zb_h1").run()
    assert address(opened).settings["chunks"] == 4
    opened.selectbox("algorithm").select("dualpipe").run()  # which needs twice as many as there are ranks
    assert address(opened).settings["chunks"] == 8 and "cannot run" not in said(opened)
    opened.selectbox("algorithm").select("sync_sgd").run()
    assert address(opened) == Experiment() and not opened.exception


def test_no_table_and_no_mnist_lead_to_the_page_that_takes_them(page, pool):
    opened = page("workload=table")
    assert "no table was given" in said(opened) and "[Your own](own)" in said(opened)
    pool(JobState("failed", message="mnist: there is no t10k-images-idx3-ubyte here."))
    opened = page("workload=mnist&seed=1015")
    assert "there is no t10k" in said(opened) and "[Your own](own)" in said(opened)


def test_table_in_the_menu_opens_the_page_that_takes_one_and_leaves_the_workload(page, stored):
    stored(Experiment())
    opened = page()
    opened.selectbox("workload").select("table").run()
    assert not opened.exception and any(one.value == "# Your own" for one in opened.markdown)
    assert opened.query_params["wanted"] in ("table", ["table"])
    assert opened.session_state.asked == Experiment()


def test_every_button_has_a_name_that_is_not_its_icons(page, stored):
    stored(Experiment()), stored(Experiment(workers=8))
    opened = page()
    opened.select_slider("workers").set_value(8).run()
    opened.button("run").click().run()
    assert {"forget-before", "leave"} <= {one.key for one in opened.button}
    assert all(one.label for one in opened.button)
