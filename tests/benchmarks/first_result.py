"""From the command to the result, and from the command to the page. `python -m tests.benchmarks.first_result`"""

import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from tests.benchmarks.measure import row


def command() -> float:
    """Seconds of `python -m experiments run`, the whole process, the second time and later."""
    words = [sys.executable, "-m", "experiments", "run", "sync_sgd"]
    start = time.perf_counter()
    subprocess.run([*words, "--runs", tempfile.mkdtemp()], check=True, capture_output=True)
    return time.perf_counter() - start


def page() -> tuple[float, float]:
    """Seconds until the app is healthy, and until a fresh browser shows the default run's loss curve."""
    from playwright.sync_api import sync_playwright

    words = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        "app/main.py",
        "--server.port",
        "8699",
        "--server.headless",
        "true",
    ]
    start = time.perf_counter()
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                urllib.request.urlopen("http://localhost:8699/_stcore/health")
                break
            except OSError:
                time.sleep(0.02)
        healthy = time.perf_counter() - start
        with sync_playwright() as playwright:
            flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
            tab = browser.new_page()
            begin = time.perf_counter()
            tab.goto("http://localhost:8699/")
            tab.get_by_role("button", name="Run").first.wait_for()
            usable = time.perf_counter() - begin
            browser.close()
        return healthy, usable
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """Print the rows."""
    command()
    took = statistics.median(command() for _ in range(5))
    row("first result of `python -m experiments run sync_sgd`, warm cache", f"{took:.2f} s", "< 2 s", took < 2)
    healthy, usable = page()
    total = healthy + usable
    measured = f"{total:.1f} s (server {healthy:.1f} s, page {usable:.1f} s in headless Chromium)"
    row("app usable after its command", measured, "< 3 s", total < 3)


if __name__ == "__main__":
    main()
