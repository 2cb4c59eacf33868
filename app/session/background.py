"""Background jobs: the pool does work that is too heavy for this process, while the page waits."""

from pathlib import Path

import streamlit as st

from app.browser.text import sentence
from app.session import session
from experiments.jobs.job import JobState
from experiments.jobs.spec import JobSpec
from experiments.specification.experiment import Experiment
from experiments.wording.sentences import capital

EVERY = 0.25  # s between two checks
SOON = 3.5  # s to wait for the run that another is compared with; in a long queue the other is shown without it


def fetch(work: JobSpec | Experiment, waiting: str, place: str, on_request: bool = False) -> Path | None:
    """Submit the work, unless that was done before, and return the folder of its result.

    Return None while the work is running or if it failed; the page shows which. `place` is the part of the page that
    wants the result: the next work for the same place replaces this one. Work `on_request` was started by a button on
    the page: it can be stopped, and the button tries again.
    """
    owner, now = f"{session.owner()}/{place}", ask(work, place)
    if now.active:
        st.fragment(_wait, run_every=EVERY)(work.key(), owner, waiting, on_request)
    elif now.folder is None:
        if now.status == "cancelled":
            st.info(sentence(now.message), icon=":material/stop_circle:")
        else:
            st.error(sentence(now.message), icon=":material/error:")
        if not on_request:
            try_again(place)
    return now.folder


def try_again(place: str) -> None:
    """Offer to retry the failed work for this place: the machine may no longer be busy."""
    owner = f"{session.owner()}/{place}"
    st.button("Try again", key=f"again-{place}", on_click=st.session_state.pop, args=(owner, None))


def ask(work: JobSpec | Experiment, place: str) -> JobState:
    """Submit `work` for `place` on the page, unless that was done before, and return its state. Failed work is not
    submitted again, because it would fail again.
    """
    state, owner = st.session_state, f"{session.owner()}/{place}"
    try:
        if state.get(owner) != work.key():
            state[owner] = session.pool().submit(owner, work)
            return session.wait(state[owner], session.PATIENCE)
        return session.pool().state(work.key())
    except (ValueError, OSError) as error:
        return JobState("failed", message=str(error))


def ask_soon(work: Experiment, place: str) -> JobState:
    """Submit `work` as `ask` does, wait up to SOON s for it to end, and return its state."""
    now = ask(work, place)
    return session.wait(work.key(), SOON) if now.active else now


def progress(active: dict[str, str], total: int) -> None:
    """Show the progress of `total` runs, and redraw the page as soon as one of them ends. `active` maps the place on
    the page of each unfinished run to the key of its job.
    """
    st.fragment(_progress, run_every=EVERY)(active, total)


def _progress(active: dict[str, str], total: int) -> None:
    for place in active:
        session.pool().touch(f"{session.owner()}/{place}")
    states = [session.pool().state(key) for key in active.values()]
    if not all(state.active for state in states):
        st.rerun()
    before = total - len(states)
    done = (before + sum(state.fraction for state in states)) / total
    st.progress(min(done, 1.0), text=f"{before} of {total} runs are done.")


def _wait(job: str, owner: str, waiting: str, on_request: bool) -> None:
    session.pool().touch(owner)
    now = session.pool().state(job)
    if not now.active:
        st.rerun()
    ahead = f" {now.place - 1} ahead of it." if now.place > 1 else ""
    phase = f" {capital(now.phase)}." if now.phase else ""
    st.progress(min(max(now.fraction, 0.0), 1.0), text=f"{waiting}{ahead}{phase}")
    if on_request:
        st.button("Stop", key=f"stop-{job}", icon=":material/stop:", on_click=session.pool().cancel, args=(job, owner))
