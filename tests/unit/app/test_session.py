"""The session: who a reader is."""

import os

from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import XSRF_COOKIE_NAME

from app.browser.cookies import browser, reader
from experiments.jobs import turns


def test_all_tabs_of_a_browser_are_one_reader_and_another_browser_is_another():
    ada, bob = os.urandom(16), os.urandom(16)
    tabs = [generate_xsrf_token_string(ada) for _ in range(5)]
    assert len(set(tabs)) == 5  # each answer masks the token anew
    (reader,) = {browser({XSRF_COOKIE_NAME: one}) for one in tabs}
    assert len(reader) == 16 and ada.hex() not in reader  # the token is a secret
    assert browser({XSRF_COOKIE_NAME: generate_xsrf_token_string(bob)}) != reader


def test_a_browser_without_cookies_or_with_a_forged_one_has_no_name_to_share():
    for text in ("", "2|", "2|zz|00|1", "nonsense", "2|00000000||1", "2||00|1", "a:b/c"):
        assert browser({XSRF_COOKIE_NAME: text}) == "", text
    assert browser({}) == ""


def test_all_who_keep_no_cookies_at_one_address_are_one_reader_and_browsers_there_are_several():
    ada, bob = ({XSRF_COOKIE_NAME: generate_xsrf_token_string(os.urandom(16))} for _ in range(2))
    home, hall = "2001:db8::1", "203.0.113.7"
    given = [({}, hall), ({}, home), ({}, None), (ada, hall), (bob, hall), (ada, None)]
    readers = [reader(*one) for one in given]
    assert len(set(readers)) == len(given) and reader({}, hall) == readers[0]
    assert [turns.reader(f"{one}:tab/place") for one in readers] == readers  # an address has colons of its own
    assert len({turns.address(reader(cookies, hall)) for cookies in ({}, ada, bob)}) == 1
