"""Tally: how many of those who sit at this server said what, since it started.

Only counts are kept, so nobody can be told from anybody: that a session has answered a question is known to the
session alone. Of all questions, the ones that were asked most recently are remembered.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Hashable

import streamlit as st

QUESTIONS = 2000  # that are remembered
FEW = 2  # answers, below which a tally would tell a reader nothing but his own


class Tally:
    """Counts of answers, by question. Any thread may ask and answer."""

    def __init__(self, most: int = QUESTIONS):
        self.most = most
        self._counts: OrderedDict[Hashable, Counter] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, question: Hashable, answer: Hashable) -> None:
        """One more has answered."""
        with self._lock:
            self._counts.setdefault(question, Counter())[answer] += 1
            self._counts.move_to_end(question)
            while len(self._counts) > self.most:
                self._counts.popitem(last=False)

    def of(self, question: Hashable) -> Counter:
        """How many gave each answer; nothing where too few did."""
        with self._lock:
            counts = Counter(self._counts.get(question, ()))
        return counts if counts.total() >= FEW else Counter()


@st.cache_resource(show_spinner=False)
def here() -> Tally:
    """The one tally of this process."""
    return Tally()


def count(question: Hashable, answer: Hashable) -> None:
    """This session's answer: the first that it gives to a question is the one that counts."""
    answered = st.session_state.setdefault("answered", set())
    if question not in answered:
        answered.add(question)
        here().add(question, answer)


def counted(question: Hashable) -> Counter:
    """How many of all sessions gave each answer; nothing where too few answered."""
    return here().of(question)
