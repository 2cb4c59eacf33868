"""Pinned runs, which stay on the page for comparison.

The address lists them in the order in which they were pinned, as names of folders, or as queries of runs still to be
made. Each has its colour, unless that is the first free one, such as `pin=NAME,NAME~3` or `pin=QUERY&colour=3`. The
parameter `colour` is the colour of the run on the page.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from urllib.parse import parse_qsl

import streamlit as st

from app.session import session

MOST = 4  # runs next to the one shown


def names() -> list[str]:
    """Return the names of the pinned runs, in the order they were pinned; older links call the parameter `keep`."""
    return [one for one in _pins() if "=" not in one]


def queries() -> list[str]:
    """Return the queries of pinned runs that do not exist yet."""
    return [one for one in _pins() if "=" in one]


def settle(given: bool) -> None:
    """Use the pins in the address if the address has any, or if it was `given` by a link or the browser's Back button.

    Otherwise restore the pins that the reader had before visiting another page, whose address has no pins.
    """
    state = st.session_state
    there = st.query_params.get_all("pin") or st.query_params.get_all("keep")
    if there or given:
        state.pinned = there
    elif state.get("pinned"):
        st.query_params["pin"] = state.pinned


def add(folder: str) -> None:
    """Pin the run in `folder`, with its current colour if it is on the page."""
    name, there = Path(folder).name, _on_page()
    _write(_pins() | {name: there.get(name, next_colour(there.values()))}, there.get(_shown()))


def only(folder: str | None) -> None:
    """Pin only the run in `folder`, to compare the next run with it."""
    name = Path(folder or "").name
    _write({name: _on_page().get(name, 0)} if name else {})


def remove(name: str) -> None:
    """Unpin a run. The run on the page keeps its colour."""
    _write({one: colour for one, colour in _pins().items() if one != name}, _on_page().get(_shown()))


def receive(made: Mapping[str, str]) -> None:
    """Replace the queries of pinned runs with the names of the runs they made, and remove queries that made
    none ("").
    """
    pins = {made.get(one, one): colour for one, colour in _pins().items()}
    _write({one: colour for one, colour in pins.items() if one}, next_colour())


def pinned_colours() -> list[tuple[str, str]]:
    """Return (run, colour) for each pinned run. The colour is a number as text, or "" if a link can omit it."""
    return _digits(_pins())


def colours(runs: Iterable[str]) -> dict[str, int]:
    """Return the colour of each run on the page, which stays the same after a reload and in a shared link.

    A pinned run has the colour of its pin, any other that of the address or the first free one.
    """
    pins, given = _pins(), {}
    for name in runs:
        given[name] = pins[name] if name in pins else next_colour(given.values())
    return given


def next_colour(others: Iterable[int] = ()) -> int:
    """Return the colour of the unpinned run on the page.

    It is the one in the address or, if that is taken, the first that neither a pinned run nor `others` have.
    """
    return _one_of(st.query_params.get("colour", ""), [*_pins().values(), *others])


def _pins() -> dict[str, int]:
    """Return the colour of each pinned run, by its name or, if it does not exist yet, by its query."""
    entries = st.query_params.get_all("pin") or st.query_params.get_all("keep")
    pins: dict[str, int] = {}
    for text in (text for entry in entries for text in ([entry] if "=" in entry else entry.split(","))):
        name, _, colour = text.partition("~")
        if "=" in text:
            name, colour = text, dict(parse_qsl(text)).get("colour", "")
        if ("=" in name or session.NAME.fullmatch(name)) and name not in pins and len(pins) < MOST:
            pins[name] = _one_of(colour, pins.values())
    return pins


def _shown() -> str:
    """Return the name of the run on the page, or "" if there is none."""
    return Path(st.session_state.get("shown") or "").name


def _on_page() -> dict[str, int]:
    """Return the colour of each pinned run and of the run on the page, by name."""
    return colours([*_pins(), *filter(None, [_shown()])])


def _one_of(asked: str, taken: Collection[int]) -> int:
    """Return the requested colour if it is valid and free, else the first free one."""
    free = [number for number in range(len(taken) + 1) if number not in taken]
    return next((number for number in range(MOST + 1) if asked == str(number) and number not in taken), free[0])


def _digits(pins: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return (name, colour as text) of each pin; the colour is "" if it is simply the first free one."""
    given = [*pins.values()]
    return [(name, "" if pins[name] == _one_of("", given[:n]) else str(pins[name])) for n, name in enumerate(pins)]


def _write(pins: Mapping[str, int], own: int | None = None) -> None:
    """Write these pins, and the colour `own` of the run on the page, to the address. Mark the pinned runs as kept."""
    for name in pins:
        if "=" not in name:
            session.keep(name)
    entries = [f"{name}~{colour}" if colour and "=" not in name else name for name, colour in _digits(pins)]
    st.session_state.pinned = entries
    waiting, unasked = any("=" in one for one in entries), own is None or own == _one_of("", pins.values())
    beside = "" if unasked or own in pins.values() else str(own)
    for name, value in (("keep", ""), ("pin", entries if waiting else ",".join(entries)), ("colour", beside)):
        if value:
            st.query_params[name] = value
        else:
            st.query_params.pop(name, None)
