"""Draw one hidden Streamlit element of each kind at start-up, so that the browser loads the code of all kinds early.

The browser loads the script of a kind when it first draws one, and React shows a placeholder until then. While there
are placeholders, React waits for half a second before it fills any (`FALLBACK_THROTTLE_MS`), even those of buttons that
are ready. So all kinds are drawn while the server is still working on the page.

Relies on Streamlit drawing with React, and loading the script of a kind with its first element. Without that, these
ten hidden elements are useless.
"""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def show() -> DeltaGenerator:
    """Draw one element of each kind, once per session; return their container, which the caller should empty."""
    place = st.empty()
    if "drawn_first" not in st.session_state:
        st.session_state.drawn_first = True
        with place.container(key="first-kinds"):  # hidden, because after a reconnection no curtain covers it
            st.button("button", icon=":material/play_arrow:", help="help")
            st.download_button("download", "")
            st.html("<i></i>")
            st.menu_button("menu", ["option"])
            st.metric("metric", 0)
            st.progress(0)
            st.segmented_control("control", ["option"])
            st.selectbox("box", ["option"])
            st.slider("slider")
            st.toggle("toggle")
    return place
