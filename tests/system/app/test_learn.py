"""The section that shows how a run learned, before it has been replayed."""

from types import SimpleNamespace

from app.session import session
from experiments.jobs.job import JobState
from experiments.specification.experiment import Experiment


class State(dict):
    """A session's state."""

    __getattr__, __setattr__ = dict.get, dict.__setitem__


def test_a_run_is_replayed_only_when_its_pictures_come_in_sight(page, stored, canvases):
    folder = stored(Experiment())
    header, _ = canvases(page())["landscape"]
    assert header["asks"] and "when you scroll here" in header["pending"] and header["run"] == str(folder)


def test_what_is_awaited_takes_the_room_that_it_will_have(page, stored, canvases):
    stored(Experiment())
    assert canvases(page())["landscape"][0]["boundary"] is False
    stored(Experiment(workload="spirals"))
    assert canvases(page("workload=spirals"))["landscape"][0]["boundary"] is True


def test_beside_another_run_the_section_says_which_it_shows(page, stored):
    stored(Experiment())
    other = stored(Experiment(algorithm="easgd", workers=3))
    alone, beside = ([one.value for one in page(query).markdown] for query in ("", f"pin={other.name}"))
    assert "## See it learn" in alone
    assert "## See it learn: Synchronous SGD, 4 workers" in beside
    assert "## Each rank and each link: Synchronous SGD, 4 workers" in beside


def test_of_real_processes_it_is_said_why_nothing_is_seen(page, stored, canvases):
    folder = stored(Experiment.of({"cluster": "threads"}))
    opened = page("cluster=threads")
    opened.session_state["shown"] = str(folder)
    opened.run()
    assert "timeline" in canvases(opened) and "landscape" not in canvases(opened)
    assert any("cannot be replayed" in one.value for one in opened.caption)


def test_a_replay_makes_way_for_a_run(monkeypatch):
    done = []
    pool = SimpleNamespace(
        cancel=lambda job, owner: done.append(("cancel", job, owner)),
        submit=lambda owner, work: done.append(("submit", owner)) or "run",
        state=lambda job: JobState("finished"),
    )
    state = State({"ada/learning": "learning-1"})
    monkeypatch.setattr(session, "pool", lambda: pool)
    monkeypatch.setattr(session, "owner", lambda: "ada")
    monkeypatch.setattr(session, "st", SimpleNamespace(session_state=state))
    session.start(Experiment())
    assert done == [("cancel", "learning-1", "ada/learning"), ("submit", "ada")]
    assert "ada/learning" not in state
