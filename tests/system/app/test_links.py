"""Links that nobody sane would write: every page opens, and says at most a sentence."""

from urllib.parse import urlencode

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import algorithms
from app.settings import controls
from experiments.measure import kernel_times
from experiments.specification.experiment import Experiment
from experiments.study import schedules as study
from experiments.study.schedules import NAMES, Plan
from tests.patience import PATIENCE

ODD = ["", "0", "-1", "1e400", "nan", "999999999999999999999", "1.5", "true", "🍰", "<script>alert(1)</script>"]
ODD += ["../../etc/passwd", "%00", "None", "[]", "0F0 0B0", "1", "2", "7", "64", "own", "1f1b", "chimera", "a" * 3000]


def schedules():
    from app.schedules import page as schedules

    schedules.page()


def kernels():
    from app.kernel_pages import kernels

    kernels.page()


def own():
    from app import upload

    upload.page()


def network():
    from app import network

    network.page()


def textbook():
    from app.textbook import page as textbook

    textbook.page()


PAGES = {
    "schedules": (schedules, 60, ("schedule_a", "schedule_b", "ranks", "micro_batches", "cost_f", "cost_i", "cost_w",
                                  "link_takes", "other_costs", "own_schedule", "pieces_a", "pipes_b", "policy_a",
                                  "cap_a", "behind", "per_update_b", "recompute_a")),
    "kernels": (kernels, 15, ("kernel", "numbers", "family")),
    "network": (network, 15, ("network_ranks", "network_bytes", "network_preset", "network_per_node", "network_nics",
                              "memory_ranks")),
    "own": (own, 15, ("run", "table", "axis", "log", "tab", "source")),
    "textbook": (textbook, 10, ("chapter", "part", "everything", "workers")),
}  # fmt: skip


def is_a_sentence(text):
    return "\n" not in text and "Traceback" not in text and len(text) < 1000


@pytest.mark.parametrize("name", ("own", "network"))
def test_a_page_without_controls_has_a_left_side_too_so_that_the_menu_stays_in_its_place(name, folders):
    opened = AppTest.from_function(PAGES[name][0], default_timeout=PATIENCE).run()
    assert not opened.exception and opened.sidebar.markdown


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_with_any_link(name, folders, monkeypatch):
    view, cases, names = PAGES[name]
    monkeypatch.setattr(kernel_times, "job_spec", lambda *_: study_job())  # nothing has to be measured for this
    draw = np.random.default_rng(len(name))
    for _ in range(cases):
        page = AppTest.from_function(view, default_timeout=PATIENCE)
        link = {str(one): ODD[draw.integers(len(ODD))] for one in draw.choice(names, draw.integers(1, 5))}
        for key, value in link.items():
            page.query_params[key] = value
        page.run()
        assert not page.exception, link
        assert all(is_a_sentence(element.value) for element in (*page.error, *page.warning)), link


def test_links_that_are_almost_right_are_an_experiment_or_a_sentence():
    draw = np.random.default_rng(4)
    opened = 0
    for case in range(600):
        algorithm = algorithms.names()[case % len(algorithms.names())]
        known = [*controls.owners(algorithm, "none", "digits"), "nonsense", "coding", "settings"]
        odd = [*ODD, "0.01", "10", "none", "auto", "1:3", "2:0.1-0.2", "digits", "10GbE", "a&b", "=", "+", "\ud83d"]
        link = {name: odd[draw.integers(len(odd))] for name in draw.choice(known, draw.integers(1, 3), replace=False)}
        text = f"algorithm={algorithm}&{urlencode(link, errors='replace')}"
        try:
            experiment = Experiment.from_query(text if case % 3 else text.replace("%", "", 1))
            assert Experiment.from_query(experiment.query()) == experiment
            opened += 1
        except ValueError as error:
            assert is_a_sentence(str(error)), link
    assert 20 < opened < 400  # neither all nor next to none


def study_job():
    from experiments.jobs.spec import JobSpec

    return JobSpec("study", {"ranks": -1})


def test_six_hundred_plans_are_studied_or_refused_in_a_sentence():
    draw = np.random.default_rng(5)
    words = [
        "0F0",
        "0B0",
        "1F0",
        "1B0",
        "0I0",
        "0W0",
        "0U0",
        "0F1+0B0",
        "0R0",
        "9F9",
        "\n",
        "\n",
        "+",
        "0X0",
        "99999999F1",
    ]
    numbers = [0, 1, 2, 3, 4, 5, 8, 13, 64, 10**9, -1, 0.5, float("nan"), "4", "x", None, True]
    done = 0
    for case in range(600):
        values = {name: numbers[draw.integers(len(numbers))] for name in ("ranks", "chunks") if draw.random() < 0.7}
        values |= {name: numbers[draw.integers(len(numbers))] for name in ("forward", "latency") if draw.random() < 0.3}
        values["schedule"] = NAMES[draw.integers(len(NAMES))] if case % 20 else "nonsense"
        known = [*study.options(values["schedule"])] if values["schedule"] in NAMES else []
        values["options"] = {name: numbers[draw.integers(len(numbers))] for name in known if draw.random() < 0.7}
        values["costs"] = ["", "2F=3", "F=0", "F+B=2 U=1", "0F=1e9", "=", "F=-1"][draw.integers(7)]
        values["own"] = " ".join(draw.choice(words, draw.integers(0, 20))) if case % 3 else study.EXAMPLE
        try:
            plan = Plan.of(**values)
            if study.size(plan) <= 2000:
                study.study(plan)
            done += 1
        except ValueError as error:
            assert is_a_sentence(str(error)), values
    assert 50 < done < 550


def test_the_link_that_the_command_line_prints_opens_that_very_run(page, stored):
    folder = stored(Experiment(algorithm="easgd", cluster="processes", workers=3))  # which no query would repeat
    opened = page(f"run={folder.name}")
    assert not opened.exception and opened.session_state.shown == str(folder)
    assert (opened.session_state.algorithm, opened.session_state.workers) == ("easgd", 3)
    assert "run" not in opened.query_params


@pytest.mark.parametrize("name", ["0123456789abcdef-01234567", "../../etc", "0123456789abcdef-../x"])
def test_a_link_to_a_run_that_is_not_here_says_so(page, stored, name):
    stored(Experiment())
    opened = page(f"run={name}")
    assert not opened.exception and any("on this machine" in warning.value for warning in opened.warning)
