"""Keep choices in the page's address by their short names; Streamlit itself would write their on-screen labels.

A widget that is bound to the address (`bind="query-params"`) writes and reads only the result of `format_func`:
`schedule_a=1f1b` would become `schedule_a=1F1B+·+1f1b`, and links that use the name would break. It also forgets the
choice once the reader has visited another page.
"""

from collections.abc import Callable, Iterable
from typing import Any

import streamlit as st


def keep(key: str, options: Iterable, default: Any, label: Callable[[Any], str] = str) -> None:
    """Load a choice from the address on first use, and write it to the address from then on.

    Call it before the widget with this key is drawn; the widget's value is then in the session. A default is left out
    of the address. Older addresses contain an option's `label` instead.
    """
    state, asked = st.session_state, st.query_params.get(key)
    if key not in state:
        state[key] = next((one for one in options if asked in (one, label(one))), default)
    elif state[key] not in options:
        state[key] = default
    _say(key, default)


def hold(key: str, default: Any, read: Callable[[str], Any]) -> None:
    """Bind a typed value or a switch to the page's address. read(text) returns the value, or raises ValueError.

    If the address has a text that cannot be read, the value is the default.
    """
    state, asked = st.session_state, st.query_params.get(key)
    if key not in state:
        try:
            state[key] = default if asked is None else read(asked)
        except ValueError:
            state[key] = default
    _say(key, default)


def toggle(label: str, key: str, default: bool = False, **options: Any) -> bool:
    """Draw a switch whose state is kept in the address; return True if it is on."""
    hold(key, default, switch)
    return st.toggle(label, key=key, persist_state="session", **options)


def switch(text: str) -> bool:
    """Return the state of a switch from an address. Raise ValueError unless it is "true" or "false"."""
    return text.lower() == "true" if text.lower() in ("true", "false") else _refuse(text)


def number(low: float, high: float) -> Callable[[str], float]:
    """Return a function that converts text to a number of the type of `low`. It raises ValueError unless `low` <=
    number <= `high`.
    """

    def read(text: str) -> float:
        value = type(low)(text)
        return value if low <= value <= high else _refuse(text)

    return read


def _refuse(text: str) -> Any:
    raise ValueError(f"{text!r} is not a value of this setting.")


def _say(key: str, default: Any) -> None:
    """Write the choice to the address, or remove it if it is the default."""
    value = st.session_state[key]
    if value in (None, default):
        st.query_params.pop(key, None)
    elif st.query_params.get(key) != (said := _written(value)):
        st.query_params[key] = said


def _written(value: Any) -> str:
    return (
        str(value).lower() if isinstance(value, bool) else f"{value:.12g}" if isinstance(value, float) else str(value)
    )
