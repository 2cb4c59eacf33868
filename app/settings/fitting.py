""" "Fit to this machine", offered only to readers on this machine: sets the simulated cluster's constants to measured
ones.
"""

from datetime import datetime

import streamlit as st

from app.session import background
from experiments.measure import fit
from experiments.specification import this_machine
from experiments.wording import units

LOCAL = ("127.0.0.1", "localhost", "::1")


def is_allowed() -> bool:
    """Return True if this server serves only its own machine. On a shared host, readers must not start measurements."""
    return st.get_option("server.address") in LOCAL


def settle() -> None:
    """After a fit, and before the controls are drawn, select the fitted network and device. If they are unusable,
    explain why.

    A real cluster keeps its own network and device.
    """
    state = st.session_state
    if not state.pop("fitted", False) or not (made := this_machine.load()):
        return
    if made.doubt:
        st.warning(f"The fit cannot be used: {made.doubt}")
    elif state.cluster == "simulated":
        state.update(device=made.device, network=made.network)


def offer() -> None:
    """Show the button, and the progress of the measurement."""
    state = st.session_state
    if not is_allowed():
        return
    if not state.get("fitting"):
        known = this_machine.load()
        when = f" It was fitted on {units.moment(known.moment)}." if known else ""
        st.button(
            "Fit again to this machine" if known else "Fit to this machine", key="fit", icon=":material/straighten:",
            type="tertiary", on_click=_begin,
            help="Measures kernels and messages with two processes on this machine, for half a minute, and sets the "
            f"simulated cluster's device and network accordingly.{when} Also: lockstep fit",
        )  # fmt: skip
        return
    if background.fetch(fit.job_spec(state.fitting), "This machine is being measured.", "fit"):
        state.fitting, state.fitted = None, True
        st.rerun()


def _begin() -> None:
    st.session_state.fitting = datetime.now().astimezone().isoformat()
