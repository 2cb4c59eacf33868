"""What an address says of a setting, and what stands there for it."""

import pytest
import streamlit as st

from app.browser import address


@pytest.fixture
def page(monkeypatch):
    """page(key=text, ...) gives the session and the address of a page that opens with this address."""

    def opened(**asked):
        monkeypatch.setattr(st, "session_state", {})
        monkeypatch.setattr(st, "query_params", asked)
        return st.session_state, asked

    return opened


@pytest.mark.parametrize("text", ["0", "-1", "1e400", "nan", "1.5", "", "true", "9" * 30, "🍰"])
def test_a_number_that_cannot_be_is_the_default_and_leaves_the_address(page, text):
    state, there = page(ranks=text)
    address.hold("ranks", 4, address.number(1, 256))
    assert state == {"ranks": 4} and there == {}


def test_what_is_typed_is_in_the_address_while_it_is_not_the_default_and_outlives_an_address_without_it(page):
    state, there = page(ranks="3", cost="0.5", fused="FALSE", late="yes")
    for _ in range(2):
        address.hold("ranks", 4, address.number(1, 256))
        address.hold("cost", 1.0, address.number(0.01, 9.0))
        address.hold("fused", True, address.switch)
        address.hold("late", False, address.switch)
        address.hold("cap", None, address.number(1, 256))
        assert state == {"ranks": 3, "cost": 0.5, "fused": False, "late": False, "cap": None}
        assert there == {"ranks": "3", "cost": "0.5", "fused": "false"}
        there.clear()  # as another page leaves it
    state["ranks"] = 4
    address.hold("ranks", 4, address.number(1, 256))
    assert "ranks" not in there
