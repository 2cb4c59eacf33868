"""From the slider to the first curve: the default, with more and more workers. `python -m tests.benchmarks.first_curve`

Two waits, the reader between them left out: from the key that moves the slider of the workers until the page says what
is not run yet, and from the press of Run until a curve of the new run is drawn, while it is under way or of its result.
"""

import statistics
import time

from tests.benchmarks.browser import tab
from tests.benchmarks.load import served
from tests.benchmarks.measure import machine, row

ROUNDS = 3
CURVE = """() => {
    const wait = document.querySelector('.stProgress'), title = document.querySelector('.st-key-title')?.innerText;
    const growing = wait?.innerText.includes('loss');
    const done = !wait && title && !title.includes('Not run yet') && document.querySelector('.st-key-loss');
    return (growing || done) && performance.now() - window.began;
}"""


def press(page, what: str, done: str) -> float:
    """Seconds from the press of a key or button until `done`, asked in every frame of the page, gives a time."""
    page.evaluate("window.began = performance.now()")
    if what == "Run":
        page.locator(".st-key-run button").click()
    else:
        page.locator(".st-key-workers input[type=range]").press(what)
    return page.wait_for_function(done).json_value() / 1000


def main() -> None:
    """Print the row."""
    print(machine())
    slides, runs = [], []
    with served() as (address, _), tab() as page:
        page.goto(f"http://{address}/")
        for _ in range(ROUNDS):
            page.locator(".st-key-loss canvas").wait_for()
            time.sleep(3)  # a reader looks at the result
            there = "() => document.body.innerText.includes('Not run yet') && performance.now() - window.began"
            slides.append(press(page, "ArrowRight", there))
            runs.append(press(page, "Run", CURVE))
    slide, curve = statistics.median(slides), statistics.median(runs)
    measured = f"{slide + curve:.2f} s (slider {slide:.2f} s, Run {curve:.2f} s; best {min(slides) + min(runs):.2f} s)"
    row("slider to the first curve of the default", measured, "< 0.5 s", slide + curve < 0.5)


if __name__ == "__main__":
    main()
