"""Strands switch like greenlets, whatever runs them."""

import pytest
from greenlet import greenlet

from cluster.strands.threads import ThreadStrand


@pytest.mark.parametrize("kind", [greenlet, ThreadStrand])
def test_a_switch_to_a_strand_that_has_ended_continues_its_parent(kind):
    heard, hub = [], kind.getcurrent()
    ended = kind(lambda: heard.append("ended"), parent=hub)

    def program():
        ended.switch()
        heard.append("woken by nobody")

    strand = kind(program, parent=hub)
    ended.switch()
    strand.switch()
    heard.append("hub")
    assert heard == ["ended", "hub"]
    strand.throw(kind.GreenletExit)
