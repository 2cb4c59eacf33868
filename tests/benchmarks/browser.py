"""A browser for what is measured on a page: headless Chromium, where Debian keeps it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

SWITCHES = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE = 240_000  # ms


@contextlib.contextmanager
def tab(script: str = "") -> Iterator:
    """A page of a fresh browser, which runs `script` before those of any site."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=SWITCHES)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE)
        page.add_init_script(script)
        yield page
        browser.close()
