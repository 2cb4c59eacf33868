"""A real Chromium for tests, headless, where this machine keeps it; without one they are skipped."""

import shutil

import pytest

from lessons.book.paper import BROWSERS

CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
SWITCHES = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
NEEDED = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]


@pytest.fixture(scope="module")
def browser():
    """A browser for the tests of a file; what is shared by pages is what one context of it opens."""
    sync_api = pytest.importorskip("playwright.sync_api")
    sync_api.expect.set_options(timeout=240_000)  # ms, for what takes one or two seconds on a machine that is not busy
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        browser.close()
