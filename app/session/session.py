"""A reader's session: its runs in the pool, which executes them outside this process, and the folders of stored
runs.
"""

import contextlib
import math
import os
import re
import secrets
import time

import pyarrow.parquet  # noqa: F401  (the store reads with it; better now than at the first result)
import streamlit as st

from app.browser.cookies import reader
from experiments.jobs import dask_cluster, turns
from experiments.jobs.job import JobState
from experiments.jobs.pool import Pool
from experiments.runs import cached, store
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.viewer.canvases import timeline
from experiments.wording import naming, units
from experiments.wording.sentences import capital

ROOT = store.home().resolve()
PATIENCE = 0.35  # s for a run to end, or start its curve, before a page shows it as in progress
POLITE = 10.0  # s that a page waits for a stopped run to store its results; after that it counts as still running
REPLAY = "learning"  # the place of a replay, which is replaced by a run
SHORT = 300_000  # samples up to which a run starts by itself: seconds of the default experiment
NAME = re.compile(r"[0-9a-f]{16}-\w{1,16}(-\d{1,6})?")  # of a run's folder


@st.cache_resource(show_spinner=False)
def pool() -> Pool:
    return Pool(ROOT, dask=os.environ.get(dask_cluster.VARIABLE, ""))


def owner() -> str:
    """Return this tab's name in the pool, "reader:tab"; the pool is notified when the tab closes."""
    if "owner" not in st.session_state:
        st.session_state.owner = f"{reader(st.context.cookies, st.context.ip_address)}:{secrets.token_hex(8)}"
    name = st.session_state.owner
    _presence(name)
    return name


@st.cache_resource(scope="session", show_spinner=False, on_release=lambda name: pool().release(name))
def _presence(name: str) -> str:
    return name


# one run at a time per reader: session_state.job is in progress, session_state.shown is the folder on the page


def start(experiment: Experiment) -> None:
    """Show this run if it is stored; otherwise submit it, replacing this reader's earlier run."""
    state = st.session_state
    state.trouble, state.remark, state.notice, state.asked = "", "", "", experiment
    state.unstored = None
    if replay := state.pop(f"{owner()}/{REPLAY}", None):
        pool().cancel(replay, f"{owner()}/{REPLAY}")
    try:
        state.job, state.job_is_new = pool().submit(owner(), experiment), True
    except (ValueError, OSError) as error:
        state.job, state.trouble = None, str(error)


def follow(experiment: Experiment, at_once: bool) -> str:
    """Start this run if the reader has changed a setting, `at_once` is on, and the run is short.

    If the run waits for *Run* instead, return why. Otherwise return "".
    """
    state = st.session_state
    before, state.followed = state.get("followed"), (experiment, at_once)
    if before is None or not at_once or experiment == state.get("asked"):
        return ""
    if not (why := _waits(experiment)) and before != state.followed:
        start(experiment)
    return why


def _waits(experiment: Experiment) -> str:
    """Return why this run starts only on request, or "" if it is short and nobody else is waiting for the pool."""
    samples = turns.length(experiment)
    if real := naming.REAL.get(experiment.cluster):
        return f"{capital(real)} start only with **Run**."
    if math.isinf(samples):
        return "The length of this run is not known in advance: press **Run** to start it."
    if samples > SHORT:
        return (
            f"This run takes {units.count(int(samples))} samples; only runs of up to {units.count(SHORT)} start by "
            "themselves. Press **Run** to start it."
        )
    if pool().has_other_readers(owner()):
        return "Others are waiting for this machine: press **Run** to queue this run."
    return ""


def reattach(experiment: Experiment) -> None:
    """Show this run again if it was in progress or had ended before the page was reloaded; start nothing."""
    if job := pool().reattach(owner(), experiment):
        st.session_state.job, st.session_state.asked, st.session_state.job_is_new = job, experiment, True


def await_first_curve() -> None:
    """Wait up to PATIENCE for a new run to end or to begin its curve; show it if it has ended.

    Short runs then need no progress bar. Call this after the controls have been sent: the browser draws them meanwhile.
    """
    state = st.session_state
    if state.pop("job_is_new", False) and state.get("job"):
        with contextlib.suppress(ValueError):  # the pool no longer has this job, which under_way reports
            wait(state.job, PATIENCE, or_curve=True)
    under_way()


def await_end(seconds: float) -> None:
    """Wait up to `seconds` for the run in progress, and show it if it ends. Call this at the end of a page.

    The page is already drawn, and a reader who changes something does not have to wait.
    """
    state, deadline = st.session_state, time.monotonic() + seconds
    while state.get("job") and time.monotonic() < deadline:  # reading the session's state lets such a change in
        if under_way() is None:
            st.rerun()
        time.sleep(0.01)


def stop() -> None:
    """Stop the run in progress. If it had begun, store and show what it has recorded so far."""
    state = st.session_state
    if state.get("job"):
        if pool().cancel(state.job, owner()):
            wait(state.job, POLITE)
        else:
            state.unstored, state.job = pool().state(state.job), None
            state.notice = "the run continues for another reader who also requested it; press Run to follow it again."


def under_way() -> JobState | None:
    """Return the state of the active run. Once it has ended, store its folder or failure, and return None."""
    state = st.session_state
    if not state.get("job"):
        return None
    pool().touch(owner())
    try:
        now = pool().state(state.job)
    except ValueError as error:
        now = JobState("failed", message=str(error))
    if now.active:
        return now
    state.job = None
    if now.folder:
        if state.get("shown") != str(now.folder):
            state.before = state.get("shown")
        state.shown, state.remark = str(now.folder), now.message
        return None
    state.unstored = now
    if now.status == "failed":
        state.trouble = now.message
    else:
        state.notice = now.message
    return None


def unstored_run() -> JobState | None:
    """Return the progress of the last run if it ended without being stored, or None if there is no such run or its
    curve is empty.
    """
    left = st.session_state.get("unstored")
    return left if left and len(left.curve.get("loss", ())) else None


def before() -> str | None:
    """Return the folder of the run that was shown before the current one, or None if there is none.

    The current one may still be in progress.
    """
    return st.session_state.get("shown" if st.session_state.get("job") else "before")


def forget_before() -> None:
    st.session_state.before = None


def wait(job: str, seconds: float, or_curve: bool = False) -> JobState:
    """Wait up to `seconds` for the job to end, and return its state. Short jobs then show no progress bar.

    With `or_curve`, the wait also ends when the job begins its curve.
    """
    deadline = time.monotonic() + seconds
    while (now := pool().state(job)).active and time.monotonic() < deadline:
        if or_curve and len(now.curve.get("loss", ())):
            break
        time.sleep(0.01)
    return now


@st.cache_resource(max_entries=32, show_spinner=False)
def load(folder: str) -> Run:
    """Return the run in `folder`, which all readers share: do not modify it. Raise ValueError if it cannot be read."""
    return store.load(folder)


def find(name: str) -> Run | None:
    """Return the stored run with this name, or None if it no longer exists."""
    try:
        return load(str(ROOT / name))
    except ValueError:
        return None


def run_on_page() -> Run | None:
    """Return the run on the page, or None if there is none."""
    return find(st.session_state.get("shown") or "")


def keep(name: str) -> None:
    """Mark the stored run with this name as kept, because somebody pinned, shared, downloaded or named it."""
    with contextlib.suppress(OSError):  # others own the folder, so it is never removed
        cached.keep(ROOT / name)


def show_named(name: str) -> Experiment:
    """Show the stored run with this name, as `?run=` does; return its experiment. Raise ValueError if there is none."""
    if not NAME.fullmatch(name) or find(name) is None:
        raise ValueError(f"there is no run {name[:40]!r} on this machine; it may be in another runs folder.")
    keep(name)
    experiment = load(str(ROOT / name)).experiment
    st.session_state.shown, st.session_state.asked = str(ROOT / name), experiment
    return experiment


@st.cache_resource(max_entries=32, show_spinner=False)
def timeline_frame(
    folder: str, window: timeline.Window | None, play: bool = False, view: timeline.View | None = None
) -> bytes:
    """Return the timeline of the run in `folder`, packed for the browser; with `play` it starts playing at once."""
    return timeline.frame(load(folder), folder, window, play=play, view=view, touchable=True)
