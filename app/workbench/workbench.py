"""The workbench's page: choose an experiment, run it, and see the result."""

import streamlit as st

from app.browser import chrome, looks
from app.browser.text import sentence
from app.guide import ask, coach, verdicts, welcome
from app.session import pins, session, sharing
from app.settings import chosen, faults, feasible
from app.workbench import head, live, result, sidebar
from experiments.specification.experiment import Experiment

WHY = {
    "simulated": "This has not run yet.",
    "processes": "This link asks for real processes on this machine, so it waits for you.",
    "threads": "This link asks for real threads on this machine, so it waits for you.",
    "gpus": "This link asks for real GPUs, so it waits for you.",
}


def entry() -> chrome.Entry:
    return st.Page(page, title="Workbench", url_path="workbench", default=True)


def take(experiment: Experiment) -> None:
    """Set the controls to this experiment and run it."""
    chosen.put(experiment)
    st.session_state.complaint = ""
    session.start(experiment)


def go_to(experiment: Experiment, **address: str) -> None:
    """Switch from another page to the workbench, with this experiment and these parameters in the address."""
    take(experiment)
    st.switch_page(entry(), query_params=address)


def page() -> None:
    """Show controls on the left; on the right the run in progress, or the last one."""
    opens = "algorithm" not in st.session_state
    returns = not opens and chrome.is_back_navigation()
    pins.settle(given=opens or returns)
    if opens:
        _open()
    elif returns:
        _return()
    _show()
    state = st.session_state
    verdicts.keep()
    chrome.show(state.asked.key() if state.get("asked") else "", ask.number_to_show(), welcome.is_alone())
    session.await_end(live.EVERY)  # a run of a fraction of a second need not wait for the next frame


def _show() -> None:
    state = st.session_state
    with st.sidebar:
        experiment, refusal = sidebar.choose()
    now = session.under_way()
    shown = session.run_on_page()
    coach.show(welcome.first(), shown.trace.ranks if shown else 1, state.asked.key() if state.get("asked") else "")
    sidebar.bar(experiment, refusal)
    faults.show(experiment)
    if wrong := sharing.receive():
        state.complaint = " ".join(map(sentence, wrong))
    left = None if now else session.unstored_run()
    with st.container():  # also while it is empty, or the page below would be removed and drawn again when it fills
        if state.get("complaint"):
            st.warning(state.complaint, icon=":material/link_off:")
        if refusal:
            st.warning(f"**This cannot run.** {sentence(refusal)}{_way_out()}", icon=":material/block:")
            looks.fade("result", opacity=0.45)
        if state.get("trouble") and not refusal and not now:
            ending = live.ending(left) or "This did not run."
            st.error(f"**{ending}** {sentence(state.trouble)}{_way_out()}", icon=":material/error:")
        if state.get("notice") and not now:
            ending = f"**{live.ending(left)}** " if left else ""
            st.info(f"{ending}{sentence(state.notice)}", icon=":material/stop_circle:")
        ask.show_question()
    if state.get("shown"):
        with st.container(key="result"):
            led = welcome.on()
            told = welcome.show(state.shown) if led else False
            if now:
                live.show(led)
            else:
                result.show(state.shown, experiment, led=led, told=told, brief=welcome.is_alone())
    elif now:
        with st.container(key="result"):
            if welcome.on():
                welcome.draw_placeholder(live.say_progress)
            live.show(welcome.on())
    elif left:
        with st.container(key="result"):
            live.show_unstored(left)
    elif experiment and not refusal and not state.get("trouble"):
        st.markdown(f"# {head.title(experiment)}", anchors=False)
        st.caption(head.headline(experiment))
        st.info(f"{WHY[experiment.cluster]} Press **Run**.", icon=":material/play_arrow:")


def _open() -> None:
    """Start a session: read the link and run it, unless it asks the reader for a prediction first."""
    state = st.session_state
    state.complaint = ""
    welcome.settle()
    if name := st.query_params.pop("run", ""):  # the command line prints such links
        try:
            experiment = session.show_named(name)
            chosen.put(experiment)
            state.all_settings = bool(sidebar.beyond(experiment))
            return
        except ValueError as error:
            state.complaint = sentence(str(error))
    if trouble := chosen.read_address():
        state.complaint = f"This link is invalid: {sentence(trouble)} The default experiment is shown instead."
    experiment = chosen.experiment()
    state.all_settings = state.get("all_settings", False) or bool(sidebar.beyond(experiment))
    if feasible.refusal(experiment):
        return
    waits = st.query_params.get("at_once", "").lower() == "false"
    if waits or experiment.cluster != "simulated":
        session.reattach(experiment)
    if experiment.cluster == "simulated" and not state.get("asked"):
        first = _known(experiment) if waits else experiment
        if not feasible.refusal(first):
            session.start(first)


def _known(experiment: Experiment) -> Experiment:
    """Return the default experiment on the same data, shown for comparison while the link waits for Run."""
    return Experiment.of({"workload": experiment.workload, **experiment.data})


def _return() -> None:
    """Show the run in the address, after the browser's Back or Forward."""
    state = st.session_state
    if chosen.read_address(again=True):  # it was not one of our addresses
        return
    state.complaint = ""
    experiment = chosen.experiment()
    if experiment != state.get("asked") and experiment.cluster == "simulated" and not feasible.refusal(experiment):
        session.start(experiment)


def _way_out() -> str:
    """Return a hint on how a reader can add the missing data. The error itself is for the server's owner."""
    state = st.session_state
    if state.get("workload") == "table" and not state.get("table"):
        return " Upload one on [Your own](own): *Train on it* brings you back here with it."
    if state.get("workload") == "mnist" and state.get("trouble"):
        return " Or upload its two t10k files on [Your own](own), and train on them as a table."
    return ""
