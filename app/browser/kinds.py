"""Draw one hidden element of each kind at start-up, so that the browser loads its code before it is needed.

The browser loads the script of a kind when it first draws one, and React keeps a place for it until then. While such
places are there it waits for half a second before it puts anything in one (`FALLBACK_THROTTLE_MS`), the buttons that
came first too. So all kinds are drawn while the server is still at work on the page.

Relies on Streamlit drawing with React, and loading the script of a kind with its first element. Without that these are
ten hidden elements for nothing.
"""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def show() -> DeltaGenerator:
    """Draw one element of each kind, once per session; return their container, which the caller empties."""
    place = st.empty()
    if "drawn_first" not in st.session_state:
        st.session_state.drawn_first = True
        with place.container(key="first-kinds"):  # hidden, since after a reconnection there is no curtain before it
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
