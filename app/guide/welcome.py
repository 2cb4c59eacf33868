"""The first screen: a line of introduction, a timeline that plays, and three cards that ask for predictions."""

import streamlit as st

from app.charts import pictures
from app.guide import ask, coach
from app.guide.cards import CARDS, Card
from app.session import background, session
from app.settings import chosen
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from tracing import IDLE

LANES = 560  # px of the lanes of four machines, of what they learn and its explanation, and of the cards below
IDLING = ", hatched while it is **idle**"
HEARD = ("tour", "axis", "log", "at_once", "embed", "embed_options")  # parameters that choose no experiment


def settle() -> None:
    """At the start of a session, show the first screen if the address sets nothing."""
    st.session_state.linked = st.query_params.get("welcome") == "true"  # by a reader who already sees it
    st.session_state.welcome = st.session_state.linked or not {*st.query_params} - {*HEARD}


def on() -> bool:
    """Return True if the page begins with the first screen."""
    return bool(st.session_state.get("welcome"))


def first() -> bool:
    """Return True if the page begins with the first screen unasked, not because of a shared link."""
    return on() and not st.session_state.get("linked")


def show(folder: str) -> bool:
    """Draw the first screen above the run in `folder`; return True if it has explained the run's result."""
    try:
        run = session.load(folder)
    except ValueError:  # the page says why
        return False
    with st.container(key="welcome", gap="small"):
        _title()
        digits = run.experiment == Experiment()
        whose = (
            "Here four simulated machines learn to read digits, together. Each has" if digits else "Each machine has"
        )
        _words(
            f"{whose} a lane: blue while it **computes**, orange while it **talks**, grey while it **waits**, green "
            f"while it **updates** its model{IDLING if run.trace.busy()[:, IDLE].any() else ''}."
        )
        st.fragment(pictures.lanes)(folder, play=first() and not st.session_state.get("done"))
        with st.container(key="cards"):
            return _cards(run)


def draw_placeholder() -> None:
    """Draw the first screen while its run is in progress, reserving the space that the lanes will take."""
    with st.container(key="welcome", gap="small"):
        _title()
        _words(
            "Each machine will have a lane here that shows what it **computes**, when it **talks**, and how it "
            "**waits**."
        )
        st.container(height=LANES, border=False)


def _title() -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.markdown("# Train one model on many machines, and see what happens", width="stretch", anchors=False)
        st.button("Show me around", key="tour", icon=":material/explore:", type="tertiary", on_click=coach.start)
        st.button(
            "Close", key="leave", icon=":material/close:", type="tertiary", on_click=_leave,
            help="Close this introduction.",
        )  # fmt: skip


def _words(text: str) -> None:
    """Explain the lanes, in a box whose size does not change while the run is in progress (style.css)."""
    with st.container(key="welcome-words"):
        st.markdown(text)


def _cards(run: Run) -> bool:
    state = st.session_state
    asked = state.get("card") if state.get("card_over") == state.get("asked") else None  # another run closes it
    done = state.get("done", {})
    told = next(
        (card for n, card in enumerate(CARDS) if n in done and card.question.experiment == run.experiment), None
    )
    if asked is not None:
        _ask(CARDS[asked])
        return told is not None  # it was explained before
    place = st.empty()  # even without a finding; otherwise the cards would appear twice until the page is drawn
    if told:
        with place:
            _say(told, run, done[CARDS.index(told)])
    columns = st.columns(len(CARDS), gap="small")
    for n, (card, column) in enumerate(zip(CARDS, columns, strict=True)):
        mark = " :material/check:" if n in done else ""
        label = f"**{card.title}**{mark}" + ("" if done else f"  \n{card.about}")
        column.button(label, key=f"card-{n}", icon=card.icon, width="stretch", on_click=_open, args=(n,))
    return told is not None


def _ask(card: Card) -> None:
    """Ask for the prediction; the runs are computed meanwhile."""
    with st.container(key="prediction", border=True, gap="small"):
        st.markdown(f"**{card.title}.** {card.predicts}")
        with st.container(horizontal=True, gap="small"):
            for n, option in enumerate(card.options):
                st.button(option, key=f"option-{n}", on_click=_do, args=(card, n))
            st.button("Not now", key="not-now", type="tertiary", on_click=_close)


def _say(card: Card, run: Run, said: int) -> None:
    reference = background.ask(card.question.reference, "card-reference")
    found = card.question.finds
    if reference.folder:
        found = card.says(run, session.load(str(reference.folder)))
    verdict = ":green-badge[:material/check: Right]" if said == card.right else ":orange-badge[Not quite]"
    with st.container(key="finding", border=True):
        st.markdown(f"{verdict} {found}")


def _open(n: int) -> None:
    ask.close()
    st.session_state.card, st.session_state.card_over = n, st.session_state.get("asked")
    question = CARDS[n].question
    background.ask(question.reference, "card-reference")
    background.ask(question.experiment, "card")


def _close() -> None:
    st.session_state.card = None


def _do(card: Card, said: int) -> None:
    """Show the card's run in place of its reference."""
    state = st.session_state
    state.card = None
    state.done = {**state.get("done", {}), CARDS.index(card): said}
    ask.record(card.question, said == card.right)
    chosen.put(card.question.experiment)
    state.update(complaint="", axis=card.question.axis)
    reference = background.ask_soon(card.question.reference, "card-reference")
    if reference.folder:
        state.shown = str(reference.folder)
    session.start(card.question.experiment)


def _leave() -> None:
    st.session_state.welcome = False
    st.query_params.pop("welcome", None)
