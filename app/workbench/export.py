"""Exports of a run: its link, its command line, its files, and the algorithm's source."""

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import streamlit as st

from app.browser.scripts import script
from app.comparison import reference
from app.session import session, sharing
from app.settings.fitting import LOCAL
from experiments.exports import export
from experiments.exports.report import report
from experiments.learning import record
from experiments.runs.record import Run
from experiments.specification import catalogue
from experiments.specification.experiment import Experiment
from experiments.viewer.saved import stem

_view = script("view")


def share(e: Experiment, name: str) -> None:
    """Offer the link to the current page, and the command line, each with a button that copies it.

    The run called `name` is kept, because links may refer to it.
    """
    with st.popover("Share", icon=":material/link:", key="share-view", on_change="rerun") as popover:
        if not popover.open:  # the link describes the view at the moment of opening
            return
        session.keep(name)
        reported = (st.session_state.get("view") or {}).get("view")
        with st.container(gap="xxsmall"):  # so that all of it fits below the button in a small window
            st.markdown("**Link to this view**")
            st.code(sharing.link(e, reported), language=None, wrap_lines=True)
            if urlsplit(sharing.here()).hostname in LOCAL:
                st.caption(
                    "This address works on this machine only. Anyone who runs Lockstep can append the part from the "
                    "`?` onwards to the address of their own workbench."
                )
            st.caption(
                "The link includes axis, zoom, critical path, the selected wait, pinned runs with their colours, and "
                "the switches above the charts. It does not include the previous run, in grey: pin that run to include "
                "it."
            )
            st.markdown("**Repeat it on the command line**")
            st.code(e.command(), language="bash", wrap_lines=True)
            _view(data={"view": reported}, key="view", on_view_change=lambda: None)
            if e.cluster == "simulated":
                st.caption(
                    "On the simulated cluster this gives the same numbers: bit for bit on this machine, up to "
                    "rounding on others."
                )


def downloads(run: Run, name: str) -> None:
    """Offer the files of the run called `name`, and a report that includes the pinned runs; each is made on request."""
    pinned, _ = reference.load_pinned_runs()
    shown = reference.name_runs(
        pinned if name in dict(pinned) else [*pinned, (name, run)], name
    )  # colours as on the page
    shown.sort(key=lambda one: one.run is not run)
    address, file = sharing.here(), stem(run.experiment)
    files = (
        ("Losses (CSV)", "losses.csv", "text/csv", lambda: export.csv_text(run.losses)),
        ("Held-out (CSV)", "held-out.csv", "text/csv", lambda: export.csv_text(export.evaluations(run))),
        ("Timeline (Chrome trace)", "trace.json", "application/json", lambda: _trace(run)),
        ("Timeline (SVG)", "timeline.svg", "image/svg+xml", lambda: export.timeline_svg(run)),
        ("Report (HTML)", "report.html", "text/html", lambda: report(shown, address, _learned(run))),
    )

    def kept(make: Callable[[], Any]) -> Any:
        session.keep(name)
        return make()

    for label, suffix, mime, make in files:
        st.download_button(
            label, partial(kept, make), f"{file}-{suffix}", mime, key=suffix, on_click="ignore", width="stretch"
        )
    st.caption(
        "The report is this page in one file, with pinned runs and, once they have been shown, the pictures of how "
        "it learns; it needs no network. ui.perfetto.dev and chrome://tracing open a Chrome trace. The SVG shows "
        "the timeline as it first opens. To save the current view, or any other picture, use its own Save button: "
        "SVG, PNG, film."
    )


def _learned(run: Run) -> record.Learning | None:
    """Return the path of the run's models if a replay has computed it, else None. No page waits for a replay."""
    return export.learning(run, session.ROOT, patience=-1.0)


def _trace(run: Run) -> str:
    return export.chrome_trace(run.trace, run.experiment.servers)


def source(run: Run) -> None:
    """Show the algorithm's source file unchanged, and the compression's below it."""
    e = run.experiment
    compressed = [] if e.compression == "none" else [catalogue.COMPRESSIONS[e.compression]]
    with st.container(key="source-code"):
        for entry in (catalogue.ALGORITHMS[e.algorithm], *compressed):
            st.markdown(f"## {entry.path}", anchors=False)
            st.code(entry.source, language="python", wrap_lines=True)
