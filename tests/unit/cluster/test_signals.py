"""The first signal that ends a run is noted by who looks for it, and ends what does not look."""

import os
import signal

import pytest

from cluster.real.signals import catch_signals, interrupt_at_once


def test_the_first_signal_is_noted_and_the_second_interrupts():
    with catch_signals(signal.SIGTERM) as stopped:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopped()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_where_nobody_looks_the_first_signal_interrupts_at_once(number):
    with catch_signals(number), pytest.raises(KeyboardInterrupt), interrupt_at_once():
        os.kill(os.getpid(), number)


def test_after_that_signals_are_noted_again():
    with catch_signals(signal.SIGTERM) as stopped:
        with interrupt_at_once():
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopped()
