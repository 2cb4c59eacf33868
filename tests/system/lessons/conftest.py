"""Figures, quizzes and checks of a chapter ask for the same experiments: each is run once."""

import pytest

from experiments.specification.experiment import Experiment
from lessons import seeds


class Runs(dict):
    """The runs of one chapter by the text of their experiment: hundreds of megabytes at most."""

    chapter = None


@pytest.fixture(scope="session")
def runs():
    """That a second run would be the same, bit for bit, is proved in `tests/system/experiments/`."""
    run, kept = seeds.run_experiment, Runs()

    def once(experiment, **other):
        if other:
            return run(experiment, **other)
        text = experiment.json()
        if text not in kept:
            kept[text] = run(Experiment.from_json(text))
        return kept[text]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seeds, "run_experiment", once)
        yield kept


@pytest.fixture(autouse=True)
def _each_experiment_of_a_chapter_is_run_once(request, runs):
    """The tests of a chapter follow each other; with the next chapter its runs are forgotten."""
    chapter = request.node.callspec.params.get("chapter") if hasattr(request.node, "callspec") else None
    name = getattr(chapter, "name", chapter)
    if runs.chapter != name:
        runs.clear()
        runs.chapter = name


@pytest.fixture
def rates_are_stated(monkeypatch):
    """Refuse experiments of figures and answers that leave the learning rate to a default."""
    run = seeds.Seeded.__call__

    def stating(self, **values):
        stated = "learning_rate" in values or "learning_rate" not in Experiment.of(values).settings
        assert stated, f"give learning_rate: the default may change, and what is shown with it. Given: {values}"
        return run(self, **values)

    monkeypatch.setattr(seeds.Seeded, "__call__", stating)


@pytest.fixture
def tab(site, browser):
    """tab() opens a page of the book in a window without a network; what it asks of one, or complains of, fails."""
    complaints = []
    window = browser.new_context(offline=True, reduced_motion="reduce", viewport={"width": 1280, "height": 900})

    def opened(name: str, before: str = ""):
        page = window.new_page()
        page.add_init_script(before)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("request", lambda one: one.url.startswith(("http", "ws")) and complaints.append(one.url))
        page.goto(f"{site.as_uri()}/{name}")
        return page

    yield opened
    window.close()
    assert complaints == []
