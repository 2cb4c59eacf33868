"""The book that computes in the browser: its size, and how long a first and a second run take.

python -m tests.benchmarks.live       needs Pyodide in the cache (lockstep book build --live) and python3.12
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path

import psutil
from playwright.sync_api import sync_playwright

from lessons import book
from lessons.book.paper import BROWSERS
from lessons.live import distribution
from tests.chromium import COMPUTED

RUNS = 4
WATCH = """() => {
  window.longest = 0;
  new PerformanceObserver((seen) => seen.getEntries().forEach((task) => {
    window.longest = Math.max(window.longest, task.duration);
  })).observe({ type: "longtask" });
}"""


def cpu() -> float:
    """Return the CPU time of all processes of the browser, s."""
    times = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return sum(one.user + one.system for one in times)


def main() -> None:
    """Print size, seconds from the press to the curve, CPU seconds, and the longest task of the page."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        site = Path(folder) / "site"
        book.build(site, pyodide=distribution.load())
        browser = driver.chromium.launch(
            executable_path=next(filter(None, map(shutil.which, BROWSERS))), args=["--no-sandbox"]
        )
        page = browser.new_context(offline=True).new_page()
        page.goto((site / "playground.html").as_uri() + "#algorithm=sync_sgd&workers=4&steps=50&learning_rate=0.1")
        print(f"{page.evaluate('reader.data.live.bytes') / 1e6:.2f} MB compressed")
        page.evaluate(WATCH)
        box = page.locator("[data-playground]")
        for number in range(1, RUNS + 1):
            began, busy = time.perf_counter(), cpu()
            answer = box.evaluate(COMPUTED)
            page.wait_for_function("document.querySelector('[data-playground] .plot').shadowRoot")
            print(
                f"run {number}: {time.perf_counter() - began:.1f} s, {cpu() - busy:.1f} s of CPU, "
                f"memory {page.evaluate('lockstep.live.heap()') / 1e6:.0f} MB, "
                f"longest task of the page {page.evaluate('window.longest'):.0f} ms"
            )
        print(json.dumps(answer)[:200])
        browser.close()


if __name__ == "__main__":
    main()
