"""Links to exactly what is on the page, which recreate it on another machine.

A link has the experiment's own query, the reader's view of it (axis, source, sweep, the zoom of timeline and curves,
the selected wait, the critical path, the first screen), and the pinned runs with their colours, each as the query that
repeats it. A run that a query cannot repeat is given by its folder's name.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from app.browser import components
from app.session import background, pins, session
from experiments.jobs.job import JobState
from experiments.jobs.upload import is_uploaded
from experiments.specification.experiment import PAGE, Experiment
from experiments.viewer.canvases.timeline import View

PINS = ("pin", "keep")  # in links these are queries, in addresses names of folders
APART = ("run", "size", "embed", "embed_options", "view", "why", "zoom", "critical", "welcome", "from", "at_once")
"""Parameters that are this reader's own, or reported by the browser."""
BETWEEN = "~"  # numbers of a view


def here() -> str:
    """Return the workbench's address without a query, or "" if it is unknown."""
    url = (st.context.url or "").partition("?")[0]
    return url and f"{url.rstrip('/')}/"


def link(e: Experiment, shown: Any = None) -> str:
    """Return a link to the current page with this experiment; `shown` is the browser's report of its view."""
    view = [(name, st.query_params[name]) for name in PAGE if name in st.query_params and name not in PINS + APART]
    looks = view_parameters(components.parse_view(shown)) + [("welcome", "true")] * bool(
        st.session_state.get("welcome")
    )
    return f"{here()}?" + "&".join(filter(None, (e.query(), urlencode(view + looks), urlencode(_pins()))))


def view_parameters(view: View) -> list[tuple[str, str]]:
    """Return a view as query parameters, such as view=0.0123~0.0145, why=2~0.0131~1, zoom=20~40."""
    parts = {"view": view.window, "why": view.wait, "zoom": view.zoom}
    told = [(name, BETWEEN.join(f"{one:.7g}" for one in values)) for name, values in parts.items() if values]
    return told + [("critical", "true")] * view.critical


def read(given: Mapping[str, str]) -> View:
    """Return the view that query parameters encode, without its invalid parts."""

    def numbers(name: str) -> list[float]:
        try:
            return [float(one) for one in given.get(name, "").split(BETWEEN)]
        except ValueError:
            return []

    return components.view(numbers("view"), numbers("why"), numbers("zoom"), given.get("critical") == "true")


def view(e: Experiment) -> View:
    """Return the part of the timeline and the curves that is shown at first for the experiment `e`.

    If the session was opened by a link to `e`, it is the view that the link contains. Otherwise it is everything.
    """
    first, asked = st.session_state.setdefault("link_view", (e, read(st.query_params)))
    if first == e:
        return asked
    for name in ("view", "why", "zoom", "critical"):
        st.query_params.pop(name, None)  # otherwise a reload would apply it to another run
    return View()


def _pins() -> list[tuple[str, str]]:
    """Return a link's entry for each pinned run: the run's query, or the name of its folder, with its colour."""
    entries = []
    for name, colour in pins.pinned_colours():
        run = session.find(name)
        if run is not None and not is_uploaded(name) and run.experiment.cluster == "simulated":
            entries.append(("pin", run.experiment.query() + (f"&colour={colour}" if colour else "")))
        else:
            entries.append(("pin", f"{name}~{colour}" if colour else name))
    return entries


def receive() -> list[str]:
    """Run the experiments whose queries a link pins, and pin their runs; return a sentence for each that cannot run."""
    made, active, wrong = {}, {}, []
    for query in pins.queries():
        try:
            experiment = Experiment.from_query(query)
            if experiment.cluster != "simulated":
                raise ValueError("it ran on real processes, which links never start.")
            place = f"pin-{experiment.key()}"
            state = background.ask(experiment, place)
        except ValueError as error:
            state = JobState("failed", message=str(error))
        if state.active:
            active[place] = experiment.key()
            continue
        made[query] = state.folder.name if state.folder else ""
        if not state.folder:
            wrong.append(f"A pinned run of this link was omitted: {state.message}")
    if made:
        pins.receive(made)
    if active:
        background.progress(active, len(pins.names()) + len(active))
    return wrong
