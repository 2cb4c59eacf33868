"""Faults of ranks: slow, paused, lost or restarted. Readers click a rank here or in the timeline."""

import math

import streamlit as st

from app.session import session
from app.settings import chosen, feasible, trouble
from experiments.execution.admission import REFUSED, RESTARTING
from experiments.specification.experiment import Experiment
from experiments.wording import units
from experiments.wording.rank_names import rank_names

FACTORS = (1, 1.5, 2, 3, 5, 10, 20, 50, 100)
NAMED = 8  # most ranks offered by name; more are numbered
FEW = 40  # most ranks offered one by one; with more, one is picked from a list
MS = 1e-3  # s


def choose(experiment: Experiment | None) -> None:
    """Draw the ranks with their faults; clicking one opens its dialog."""
    if experiment is None:
        return
    ranks = experiment.ranks
    names = rank_names(experiment, ranks)
    marks = [_mark(*_of(experiment, rank)) for rank in range(ranks)]

    def said(rank: int) -> str:
        return f"{names[rank] if ranks <= NAMED else rank} {marks[rank]}".strip()

    common = {
        "key": "rank", "format_func": said, "on_change": _clicked,
        "help": f"Click a rank to {_ways(experiment.cluster)}. Its name in the timeline offers more.",
    }  # fmt: skip
    if ranks <= FEW:
        st.pills("Faults of a rank", range(ranks), **common)
    else:
        st.selectbox("Faults of a rank", range(ranks), None, placeholder="Choose a rank", **common)


def _ways(cluster: str) -> str:
    """Return in words which faults this cluster can inject."""
    if _unlosable(cluster):
        return "slow it down (×) or pause it (‖)"
    lost = ", for good (✕) or until a restart (↺)" if cluster in RESTARTING else " for good (✕)"
    return f"slow it down (×), pause it (‖), or make it fail{lost}"


def _unlosable(cluster: str) -> str:
    """Return why no rank of this cluster can be lost, or "" if ranks can be lost."""
    return REFUSED.get(cluster, {}).get("crash", "")


def ask(rank: int) -> None:
    st.session_state.faulty = rank


def show(experiment: Experiment | None) -> None:
    """Show the requested dialog on the faults of a rank until it is closed."""
    rank = st.session_state.get("faulty")
    if rank is not None and experiment and rank < experiment.ranks:
        name = rank_names(experiment, experiment.ranks)[rank]
        st.dialog(f"Faults of {name}", on_dismiss=_close)(_form)(experiment, rank)


def _close() -> None:
    st.session_state.faulty = None


def _clicked() -> None:
    state = st.session_state
    if state.rank is not None:
        ask(state.rank)
    state.rank = None


def _form(experiment: Experiment, rank: int) -> None:
    at = trouble.middle()
    slow, pauses, crash = _of(experiment, rank)
    start, end = pauses[0] if pauses else (at, 1.5 * at)
    st.select_slider("Slower than the others", sorted({*FACTORS, slow}), slow, _times, key="fault-slow")
    if st.toggle("Pauses once", bool(pauses), key="fault-pauses"):
        left, right = st.columns(2)
        with left:
            _time("from, ms", "fault-from", start)
        with right:
            _time("for, ms", "fault-for", end - start)
    lost, back = crash or (at, math.inf)
    able = experiment.cluster in RESTARTING
    returns = able and experiment.restartable and rank >= experiment.servers
    stuck = _unlosable(experiment.cluster)
    if st.toggle(
        "Is lost" if returns else "Fails for good", crash is not None, key="fault-lost",
        disabled=bool(stuck) and crash is None, help=f"Not on this cluster: {stuck}" if stuck else None,
    ):  # fmt: skip
        left, right = st.columns(2)
        with left:
            _time("at, ms", "fault-at", lost)
        if returns and st.toggle("Restarts without its memory", back < math.inf, key="fault-returns"):
            with right:
                _time("away for, ms", "fault-away", back - lost if back < math.inf else at / 2)
    st.caption(f"Times are on the run's own clock; the run on the page took {units.seconds(2 * at)}.")
    with st.container(horizontal=True):
        done = [
            st.button("Run with these faults", type="primary", key="fault-run", on_click=_run, args=(experiment, rank)),
            st.button("No fault", key="fault-none", on_click=_write, args=(experiment, rank, 1.0, (), None)),
        ]
        if not st.session_state.get("at_once"):  # otherwise it would run, too
            done.append(st.button("Apply", key="fault-apply", on_click=_apply, args=(experiment, rank)))
    if any(done):
        st.rerun()


def _time(label: str, key: str, value: float) -> None:
    shown = float(f"{value / MS:.4g}")
    st.number_input(label, 0.0, None, shown, max(shown / 10, 0.001), "%g", key=key)


def _run(experiment: Experiment, rank: int) -> None:
    _apply(experiment, rank)
    session.start(chosen.experiment())


def _apply(experiment: Experiment, rank: int) -> None:
    state = st.session_state
    pauses, crash = (), None
    if state["fault-pauses"] and state["fault-for"] > 0:
        start = state["fault-from"] * MS
        pauses = ((start, start + state["fault-for"] * MS),)
    if state["fault-lost"]:
        lost = state["fault-at"] * MS
        away = state["fault-away"] * MS if state.get("fault-returns") else 0
        crash = lost, (lost + away if away else math.inf)
    _write(experiment, rank, state["fault-slow"], pauses, crash)


def _write(experiment: Experiment, rank: int, factor: float, pauses: tuple, crash: tuple | None) -> None:
    """Set the controls to these faults of `rank`; leave the other ranks unchanged."""
    _close()
    st.session_state.update(
        slow=experiment.slow.with_value(rank, factor if factor != 1 else None).text,
        pause=experiment.pause.with_value(rank, pauses or None).text,
        crash=experiment.crash.with_value(rank, crash).text,
    )


def cause(kind: str, rank: int, value: float) -> None:
    """Set a fault in the controls: `rank` becomes `value` times slower ("slow") or is lost at `value` s ("lost"), or
    messages get a latency of `value` s ("latency").

    Other faults stay. Then start the run, unless the reader has turned off automatic runs, or the cluster is a real
    one, where only *Run* starts it.
    """
    try:
        experiment = chosen.experiment()
    except ValueError:  # the page says what is wrong with the controls
        return
    slow, pauses, crash = _of(experiment, rank)
    if kind == "latency":
        st.session_state["latency"] = value
    elif kind == "slow":
        _write(experiment, rank, value, pauses, crash)
    else:
        _write(experiment, rank, slow, pauses, (value, math.inf))
    if st.session_state.get("at_once", True) and experiment.cluster == "simulated":
        wanted = chosen.experiment()
        if not feasible.refusal(wanted):
            session.start(wanted)


def _of(e: Experiment, rank: int) -> tuple[float, tuple, tuple | None]:
    """Return the faults of a rank: its slowdown factor, its pauses, and when it is lost and restarts."""
    return e.slow.by_rank.get(rank, 1), e.pause.by_rank.get(rank, ()), e.crash.by_rank.get(rank)


def _mark(slow: float, pauses: tuple, crash: tuple | None) -> str:
    lost = "" if crash is None else "↺" if crash[1] < math.inf else "✕"
    return " ".join(filter(None, (_times(slow) if slow != 1 else "", "‖" if pauses else "", lost)))


def _times(factor: float) -> str:
    return f"× {factor:g}"
