"""Polls: how many sessions of this server gave each answer to a question, since the server started.

Only counts are stored, not who answered; each session remembers whether it has answered. Old questions are forgotten.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Hashable

import streamlit as st

QUESTIONS = 2000  # questions that are remembered
FEW = 2  # answers below which counts would show readers only their own


class Poll:
    """Thread-safe counts of answers, by question."""

    def __init__(self, most: int = QUESTIONS):
        self.most = most
        self._counts: OrderedDict[Hashable, Counter] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, question: Hashable, answer: Hashable) -> None:
        with self._lock:
            self._counts.setdefault(question, Counter())[answer] += 1
            self._counts.move_to_end(question)
            while len(self._counts) > self.most:
                self._counts.popitem(last=False)

    def of(self, question: Hashable) -> Counter:
        """Return how often each answer was given. The result is empty if there are too few answers."""
        with self._lock:
            counts = Counter(self._counts.get(question, ()))
        return counts if counts.total() >= FEW else Counter()


@st.cache_resource(show_spinner=False)
def here() -> Poll:
    return Poll()


def count(question: Hashable, answer: Hashable) -> None:
    """Count this session's answer; only its first answer to a question counts."""
    answered = st.session_state.setdefault("answered", set())
    if question not in answered:
        answered.add(question)
        here().add(question, answer)


def tally(question: Hashable) -> Counter:
    """Return how many sessions gave each answer. The result is empty if too few have answered."""
    return here().of(question)
