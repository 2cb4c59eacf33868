"""The page on the simulated network: the cost of a collective, a model's memory on each rank, and what the network
model omits.
"""

import re

import streamlit as st

from app.browser.frames import frame
from app.browser.text import escape_markdown
from app.charts.pictures import heading
from app.session import background
from experiments.jobs.spec import JobSpec
from experiments.specification.catalogue import NETWORKS
from experiments.study import collectives, model_states
from experiments.wording import units
from installation import document

TEXT = document("docs/simulated_network.md")
PRESET = "preset"  # as many NICs as the network has by itself
BOUND = {"bind": "query-params", "persist_state": "session"}
RANKS = [2, 4, 8, 16, 32, 64, 128, 256]
BYTES = [8, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 4e9, 1e10]
PARAMETERS = [1e8, 3.5e8, 1e9, 3e9, 7.5e9, 1.3e10, 3e10, 7e10, 1.75e11, 4.05e11, 1e12]
MANY = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096]


def page() -> None:
    """Show what an all-reduce costs and how much memory a model takes, then the text on the simulated network."""
    text = TEXT.read_text("utf-8").replace("# ", "## ", 1)  # the page has a title of its own
    with st.sidebar:
        work = _choose_all_reduce()
        parameters, ranks = _choose_model()
        st.markdown("**What is left out**")
        for title in re.findall(r"^## (.+)$", text, re.MULTILINE):
            st.markdown(f"[{title}](#{'-'.join(re.findall('[a-z]+', title.lower()))})")
    st.markdown("# The simulated network", anchors=False)
    _all_reduce(work)
    _model(parameters, ranks)
    with st.container(width=820):
        st.markdown(text)


def _choose_all_reduce() -> JobSpec:
    st.markdown("**An all-reduce**")
    ranks = st.select_slider("Ranks", RANKS, 32, key="network_ranks", **BOUND)
    nbytes = st.select_slider("Vector", BYTES, 1e9, format_func=units.size, key="network_bytes", **BOUND)
    name = st.selectbox("Network", NETWORKS, index=[*NETWORKS].index("HDR"), key="network_preset", **BOUND)
    per_node = st.segmented_control(
        "Ranks per node", [1, 2, 4, 8, 16], default=8, required=True, key="network_per_node", **BOUND,
        help="Ranks of a node share its NICs, and communicate over the node's internal link.",
    )  # fmt: skip
    nics = st.segmented_control(
        "NICs per node", [PRESET, *(n for n in (1, 2, 4, 8) if n <= per_node)], default=PRESET, required=True,
        key="network_nics", **BOUND,
        help="Network interfaces of a node; each rank uses the nearest one. *preset*: as many as the chosen network's "
        "preset has.",
    )  # fmt: skip
    return collectives.job_spec(ranks, nbytes, name, per_node, None if nics == PRESET else nics)


def _choose_model() -> tuple[float, int]:
    st.markdown("**A model**")
    parameters = st.select_slider(
        "Parameters", PARAMETERS, 7.5e9, format_func=units.in_millions, key="memory_parameters", **BOUND
    )
    return parameters, st.select_slider("Ranks that train it", MANY, 64, key="memory_ranks", **BOUND)


def _all_reduce(work: JobSpec) -> None:
    ranks, nbytes, name, per_node, nics = work.values.values()
    heading(f"What an all-reduce of {units.size(nbytes)} costs {ranks} ranks")
    network = NETWORKS[name].on_nodes(per_node, nics)
    st.caption(
        f"{escape_markdown(name)}: {collectives.links(network, ranks)}. {collectives.note_on_nodes(network, ranks)} "
        "All ranks arrive together, and additions are free."
    )
    folder = background.fetch(work, "Timing every all-reduce.", "collective")
    if folder is None:
        return
    costs = collectives.load(folder)
    st.markdown(f"**{escape_markdown(costs[0].name)}** is the quickest: {units.seconds(costs[0].seconds)}.")
    st.dataframe(
        frame(collectives.rows(costs)), hide_index=True,
        column_config={
            "rounds": st.column_config.Column(help="Number of messages that must follow one another."),
            "sent": st.column_config.Column(help="Bytes sent by the busiest rank."),
            "latency": st.column_config.Column(help="Share of the time that zero latency would save."),
            "bus bandwidth": st.column_config.Column(
                help="2 (ranks - 1) / ranks of the bytes, per second, as in nccl-tests. Compare it with the links."
            ),
        },
    )  # fmt: skip


def _model(parameters: float, ranks: int) -> None:
    heading(f"What {units.in_millions(parameters)} parameters take on each of {units.count(ranks)} ranks")
    st.dataframe(
        frame(model_states.rows(parameters, ranks)), hide_index=True,
        column_config={
            "bytes": st.column_config.Column(help="Of one parameter, its gradient and its optimizer state.")
        },
    )  # fmt: skip
    st.caption(model_states.LEFT_OUT)
