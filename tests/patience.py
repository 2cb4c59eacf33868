"""How long tests wait for what has to happen: one limit for all of them, far beyond what a busy machine needs."""

import time

PATIENCE = 900.0  # s, for what takes a second or two on an idle machine


def wait_until(happened, every=0.01):
    """Call `happened()` every `every` seconds until it returns something true, and return that.

    AssertionError after PATIENCE seconds.
    """
    end = time.monotonic() + PATIENCE
    while not (result := happened()):
        assert time.monotonic() < end, f"still waiting after {PATIENCE:g} s"
        time.sleep(every)
    return result
