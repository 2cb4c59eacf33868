"""Choose an algorithm, from a searchable list or by family. Each is shown with its idea."""

from collections import Counter
from functools import partial

import streamlit as st

from app.browser.text import escape_markdown, mark_glossary_terms
from app.settings import chosen, helps
from experiments.specification.catalogue import ALGORITHMS, FAMILIES, FAMILY_IDEAS, choice_label
from experiments.specification.experiment import Experiment


def choose() -> None:
    """Draw the list of algorithms, the idea of the chosen one, and the button that shows all by family."""
    st.selectbox(
        "Algorithm", ALGORITHMS, key="algorithm", on_change=chosen.settle, args=("algorithm",), persist_state="session",
        format_func=partial(choice_label, ALGORITHMS), help=helps.text(Experiment, "algorithm"),
        filter_mode="contains",  # a fuzzy search ranks HSDP above ZeRO-3 for "FSDP"
    )  # fmt: skip
    idea = ALGORITHMS[st.session_state.algorithm].idea
    st.markdown(f":small[{mark_glossary_terms(idea)}]", unsafe_allow_html=True)
    if st.button("All algorithms by family", key="families", type="tertiary", icon=":material/account_tree:"):
        _browse()


@st.dialog("Algorithms by family", width="medium")
def _browse() -> None:
    """Show each family with a sentence and, if it is open, its algorithms with their ideas."""
    with st.container(key="by-family", gap="xsmall"):
        for family, count in Counter(entry.family for entry in ALGORITHMS.values()).items():
            label = f"**{FAMILIES[family]} ({count}).** {FAMILY_IDEAS[family]}"
            with st.expander(label, key=f"family-{family}", on_change="rerun") as place:
                if place.open:
                    _offer(family)


def _offer(family: str) -> None:
    for name, entry in ALGORITHMS.items():
        if entry.family == family:
            label = f"**{escape_markdown(choice_label(ALGORITHMS, name))}**  \n{escape_markdown(entry.idea)}"
            if st.button(label, key=f"take-{name}", width="stretch", on_click=chosen.switch, args=(name,)):
                st.rerun()
