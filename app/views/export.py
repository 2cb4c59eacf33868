"""What can be exported from a run: its link, its command line, its files, and the algorithm's source."""

from __future__ import annotations

import streamlit as st

from app import session
from experiments import catalogue
from experiments.experiment import Experiment
from experiments.plots import export
from experiments.runs.record import Run


def share(e: Experiment) -> None:
    """Show the link and the command line, each with a button that copies it."""
    query = e.query()
    if pinned := session.pinned():
        query += "&pin=" + ",".join(pinned)
    st.markdown("**Link to this run**")
    st.code(f"{(st.context.url or '').partition('?')[0]}?{query}", language=None, wrap_lines=True)
    st.markdown("**Repeat it on the command line**")
    st.code(e.command(), language="bash", wrap_lines=True)
    if e.cluster == "simulated":
        st.caption("On the simulated cluster it gives the same numbers: bit for bit here, elsewhere to rounding.")


def downloads(run: Run, name: str) -> None:
    """Offer the files; each is made when it is asked for."""
    files = (
        ("Losses (CSV)", "losses.csv", "text/csv", lambda: export.csv_text(run.losses)),
        ("Held-out (CSV)", "held-out.csv", "text/csv", lambda: export.csv_text(run.evaluations)),
        ("Timeline (Chrome trace)", "trace.json", "application/json", lambda: _trace(run)),
        ("Report (HTML)", "report.html", "text/html", lambda: export.report(run)),
    )
    for label, suffix, mime, make in files:
        st.download_button(label, make, f"{name}-{suffix}", mime, key=suffix, on_click="ignore", width="stretch")
    st.caption("ui.perfetto.dev and chrome://tracing open a Chrome trace.")


def _trace(run: Run) -> str:
    return export.chrome_trace(run.trace, run.experiment.servers)


def source(run: Run) -> None:
    """Show the algorithm's own file as it is, and the compression's below it."""
    e = run.experiment
    compressed = [] if e.compression == "none" else [catalogue.COMPRESSIONS[e.compression]]
    with st.container(key="source-code"):
        for entry in (catalogue.ALGORITHMS[e.algorithm], *compressed):
            st.markdown(f"## {entry.path}", anchors=False)
            st.code(entry.source, language="python", wrap_lines=True)
