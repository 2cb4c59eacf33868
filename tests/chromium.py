"""A real Chromium for tests, headless, where this machine keeps it; without one they are skipped."""

import shutil

import pytest

from lessons.book.paper import BROWSERS
from tests.patience import PATIENCE

CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
SWITCHES = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
NEEDED = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]
JOURNEY = [*NEEDED, pytest.mark.slow]


class Browser:
    """Open windows in which a test waits as long for a click or a page as it does for what it expects."""

    def __init__(self, browser):
        self._browser = browser

    def new_context(self, **how):
        """Return a window with storage of its own."""
        context = self._browser.new_context(**how)
        context.set_default_timeout(1000 * PATIENCE)  # ms
        return context

    def new_page(self, **how):
        """Return the only page of a window of its own."""
        page = self._browser.new_page(**how)
        page.set_default_timeout(1000 * PATIENCE)  # ms
        return page


@pytest.fixture(scope="module")
def browser():
    """A browser for the tests of a file; what is shared by pages is what one context of it opens."""
    sync_api = pytest.importorskip("playwright.sync_api")
    sync_api.expect.set_options(timeout=1000 * PATIENCE)  # ms
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield Browser(browser)
        browser.close()


COMPUTED = """box => new Promise((done) => {
  box.addEventListener("computed", ({ detail }) => done(detail), { once: true });
  (box.querySelector("[type=submit]") ?? box.querySelector("button")).click();
})"""
"""Press the button of a box of the book that computes, and wait for what it computed."""
