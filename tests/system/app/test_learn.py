"""The section that shows how a run learned, before it has been replayed."""

from experiments.experiment import Experiment


def test_a_run_is_replayed_only_when_its_pictures_come_in_sight(page, stored, canvases):
    folder = stored(Experiment())
    header, _ = canvases(page())["landscape"]
    assert header["asks"] and "comes into sight" in header["pending"] and header["run"] == str(folder)


def test_of_real_processes_it_is_said_why_nothing_is_seen(page, stored, canvases):
    stored(Experiment.of({"cluster": "threads"}))
    test = page("cluster=threads")
    assert "landscape" not in canvases(test)
