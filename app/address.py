"""Address: a choice that stands in the page's address by its name, where Streamlit would write the words on the screen.

A widget that is bound to the address (`bind="query-params"`) writes there what `format_func` makes of its value, and
reads nothing else; `schedule_a=1f1b` would become `schedule_a=1F1B+·+1f1b`, and links that have the name would be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import streamlit as st


def keep(key: str, options: Iterable[str], default: str | None, label: Callable[[str], str] = str) -> None:
    """Take over what the address says of a choice at first, and keep the address up to date from then on.

    Called before the widget of that key, whose value is in the session by then. The default is not in the address.
    Older addresses have the `label` of an option.
    """
    state, asked = st.session_state, st.query_params.get(key)
    if key not in state:
        state[key] = next((one for one in options if asked in (one, label(one))), default)
    elif state[key] not in options:
        state[key] = default
    if state[key] in (None, default):
        st.query_params.pop(key, None)
    elif state[key] != asked:
        st.query_params[key] = state[key]
