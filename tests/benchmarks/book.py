"""First contentful paint of the static book's chapters, read from the disk: beside that of a page of one word.

python -m tests.benchmarks.book
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from lessons import CHAPTERS, book
from lessons.book.paper import BROWSERS

TIMES = 3
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def main() -> None:
    """Print the size of the book, and the paint of every chapter in ms, the median of three visits."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        site = Path(folder) / "site"
        book.build(site)
        size = sum(file.stat().st_size for file in site.rglob("*") if file.is_file())
        (site / "word.html").write_text("<!doctype html><p>Word")
        print(f"{size / 1e6:.1f} MB")
        browser = driver.chromium.launch(
            executable_path=next(filter(None, map(shutil.which, BROWSERS))), args=["--no-sandbox"]
        )
        for name in ("word", "index", *CHAPTERS):
            paints = []
            for _ in range(TIMES):
                window = browser.new_context(offline=True)
                page = window.new_page()
                page.goto((site / f"{name}.html").as_uri())
                page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
                paints.append(page.evaluate(PAINT))
                window.close()
            print(f"{name:20} {statistics.median(paints):6.0f} ms")
        browser.close()


if __name__ == "__main__":
    main()
