"""Sharing: the link to exactly what is on the page, which makes the same page on another machine.

It has the experiment's own query, how the reader looks at it (axis, source, sweep ...), and the pinned runs, each as
the query that makes it again. What cannot be made again from a query stays the name of its folder.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

from app import background, session
from experiments.experiment import PAGE, Experiment
from experiments.runs.upload import uploaded

PINS = ("pin", "keep")  # of which links have queries, and addresses the names of folders
APART = ("run", "size", "embed", "embed_options")  # of this server or this screen


def here() -> str:
    """Return the address of the workbench, without a query."""
    return (st.context.url or "").partition("?")[0]


def link(e: Experiment) -> str:
    """Return the address of the page as it is, with this experiment."""
    view = [(name, st.query_params[name]) for name in PAGE if name in st.query_params and name not in PINS + APART]
    return f"{here()}?" + "&".join(filter(None, (e.query(), urlencode(view), urlencode(_pins()))))


def _pins() -> list[tuple[str, str]]:
    """Return what the link has for each pinned run: its query, or the name of its folder."""
    pins = []
    for name in session.pinned():
        run = session.find(name)
        again = run is not None and not uploaded(name) and run.experiment.cluster == "simulated"
        pins.append(("pin", run.experiment.query() if again else name))
    return pins


def receive() -> list[str]:
    """Make the pinned runs that a link has as queries and pin them; return what is wrong with others, in sentences."""
    asked = st.query_params.get_all("pin")
    if not any("=" in one for one in asked):
        return []
    ready, waiting, active, wrong = [], [], {}, []
    for one in asked:
        if "=" not in one:
            ready += one.split(",")
            continue
        try:
            experiment = Experiment.from_query(one)
            if experiment.cluster != "simulated":
                raise ValueError("it ran on real processes, which no link starts.")
            place = f"pin-{experiment.key()}"
            state = background.ask(experiment, place)
        except ValueError as error:
            wrong.append(f"A pinned run of this link is left out: {error}")
            continue
        if state.active:
            waiting.append(one)
            active[place] = experiment.key()
        elif state.folder:
            ready.append(Path(state.folder).name)
        else:
            wrong.append(f"A pinned run of this link is left out: {state.message}")
    session.pin_all(ready, waiting)
    if active:
        background.progress(active, len(ready) + len(active))
    return wrong
