"""The cards of the first screen, applied to the reader's own run. Each asks a question, makes two runs, and explains
them.

A card that makes no sense on the reader's run says so, and shows the standard one.
"""

from typing import NamedTuple

import streamlit as st

from app.browser.text import sentence
from app.guide import ask, verdicts
from app.guide.cards import CARDS, CardRuns
from app.session import background, session
from app.settings import chosen, feasible
from experiments.jobs import turns
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment


class AskedCard(NamedTuple):
    """A card that asks its question: `card` is its number, and `trial` has its two runs.

    `mine` is the reader's experiment, whose run takes `seconds`. The trial is based on `mine` if `own`, else on the
    standard experiment.
    """

    card: int
    trial: CardRuns
    mine: Experiment
    seconds: float
    own: bool


class CardAnswer(NamedTuple):
    """A reader's answer to a card; `said` is the index of the prediction that the reader chose."""

    said: int
    asked: AskedCard


def answers() -> dict[str, CardAnswer]:
    """Return the answers so far, by the key of the experiment that shows which prediction is right."""
    return st.session_state.setdefault("answers", {})


def is_answer(run: Run) -> bool:
    """Return True if a card has led to this run."""
    return run.experiment.key() in answers()


def draw(run: Run) -> bool:
    """Draw the cards, or only the card that asks; return True if a card has explained the result of `run`."""
    state = st.session_state
    asked = state.get("card") if state.get("card_over") == state.get("asked") else None  # another run closes it
    answer = answers().get(run.experiment.key())
    if asked is not None:
        _ask(asked)
        return answer is not None  # it was explained before
    place = st.empty()  # even without a finding; otherwise the cards would appear twice until the page is drawn
    if answer:
        with place:
            _say(answer, run)
    columns = st.columns(len(CARDS), gap="small")
    for n, (card, column) in enumerate(zip(CARDS, columns, strict=True)):
        mark = verdicts.mark(card.question)
        label = f"**{card.title}**{mark and f' {mark}'}" + ("" if answers() else f"  \n{card.about}")
        column.button(label, key=f"card-{n}", icon=card.icon, width="stretch", on_click=_open, args=(n,))
    return answer is not None


def _apply(n: int) -> AskedCard:
    """Return card `n` applied to the reader's own experiment, or else to the standard one.

    A card that follows another acts on the experiment before that one, so the changes of two cards do not add up.
    """
    card, run = CARDS[n], session.run_on_page()
    try:
        mine = chosen.experiment()
    except ValueError:
        mine = run.experiment if run else Experiment()
    seconds = run.summary["seconds"] if run else 0.0
    if answer := answers().get(mine.key()):
        mine, seconds = answer.asked.mine, answer.asked.seconds
    asked = AskedCard(n, card.standard, mine, seconds, own=mine == Experiment())
    if asked.own or not seconds or mine.cluster != "simulated" or turns.length(mine) > session.SHORT:
        return asked
    try:
        trial = card.trial(mine, seconds)
    except ValueError:  # the algorithm cannot have it
        return asked
    return asked if trial is None or any(map(feasible.refusal, trial)) else asked._replace(trial=trial, own=True)


def _ask(asked: AskedCard) -> None:
    """Ask for the prediction, and compute the runs in the meantime."""
    card = CARDS[asked.card]
    with st.container(key="prediction", border=True, gap="small"):
        st.markdown(f"**{card.title}.** {card.asks(asked.trial)}")
        ask.show_basis(asked.trial.reference, asked.trial.experiment)
        if not asked.own:
            st.caption(
                "This cannot be shown on your run, so it starts from the standard one. **Back** in the browser "
                "returns to yours."
            )
        elif asked.mine != Experiment():
            st.caption("This acts on your own settings.")
        with st.container(horizontal=True, gap="small"):
            for n, option in enumerate(card.options):
                st.button(option, key=f"option-{n}", on_click=_do, args=(asked, n))
            st.button("Not now", key="not-now", type="tertiary", on_click=_close)


def _say(answer: CardAnswer, run: Run) -> None:
    card, trial = CARDS[answer.asked.card], answer.asked.trial
    reference = background.ask(trial.reference, "card-reference")
    if reference.folder:
        before = session.load(str(reference.folder))
        right = answer.said == card.judge(run, before)
        found = f"{verdicts.BADGES[right]}{card.says(run, before)}"
    elif trial == card.standard:
        found = card.question.finds
    else:
        found = f"The run to compare it with cannot be shown: {sentence(reference.message)}"
    with st.container(key="finding", border=True):
        st.markdown(found)


def _open(n: int) -> None:
    ask.close()
    asked = _apply(n)
    st.session_state.card, st.session_state.card_over = asked, st.session_state.get("asked")
    background.ask(asked.trial.reference, "card-reference")
    background.ask(asked.trial.experiment, "card")


def _close() -> None:
    st.session_state.card = None


def _do(asked: AskedCard, said: int) -> None:
    """Record the prediction `said`, set all controls to the card's experiment, and start its run.

    Until that run has ended, show the reference if it is stored.
    """
    state, trial = st.session_state, asked.trial
    state.card = None
    state.answers = {**answers(), trial.experiment.key(): CardAnswer(said, asked)}
    card = CARDS[asked.card]
    if trial == card.standard:
        verdicts.record(card.question, said == card.right)
    chosen.put(trial.experiment)
    state.update(complaint="", axis=card.question.axis)
    reference = background.ask_soon(trial.reference, "card-reference")
    if reference.folder:
        state.shown = str(reference.folder)
    session.start(trial.experiment)
