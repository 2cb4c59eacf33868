"""From the slider to the first curve: the default, with more and more workers. `python -m tests.benchmarks.first_curve`

The wait from the key that moves the slider of the workers until a curve of the new run is drawn, while it is under way
or of its result: the run begins at once. Where it waits for Run there are two waits, the reader between them left out:
until the page says what is not run yet, and from the press of Run until the curve. After each the rounds to the server
and back of a page of Streamlit with a slider, a button and two words, one or two.
"""

import statistics
import tempfile
import time
from pathlib import Path

from tests.benchmarks.browser import tab
from tests.benchmarks.load import served
from tests.benchmarks.measure import machine, row

ROUNDS = 5
BARE = """
import streamlit as st
ran = st.container(key="run").button("Run")
with st.container(key="workers"):
    n = st.slider("workers", 1, 100)
st.markdown(f"turned to {n}, " + ("run" if ran else "not run"))
"""
SAID = "() => document.querySelector('{}')?.textContent.includes({!r}) && performance.now() - window.began"
"""Asked for with `textContent`: for `innerText` the browser would lay out the page in every frame."""
CURVE = """() => {
    const wait = document.querySelector('.stProgress'), title = document.querySelector('.st-key-title')?.textContent;
    const growing = wait?.textContent.includes('loss');
    const other = title && title !== window.before && !title.includes('Not run yet');
    const done = !wait && other && document.querySelector('.st-key-loss');
    return (growing || done) && performance.now() - window.began;
}"""
"""There is a curve of another run than when the key was pressed: of one under way, as none was then, or of one done."""
PRESSED = "window.before = document.querySelector('.st-key-title')?.textContent; window.began = performance.now()"


def press(page, what: str, done: str) -> float:
    """Seconds from the press of a key or button until `done`, asked in every frame of the page, gives a time."""
    page.evaluate(f"() => {{ {PRESSED} }}")
    if what == "Run":
        page.locator(".st-key-run button").click()
    else:
        page.locator(".st-key-workers input[type=range]").press(what)
    return page.wait_for_function(done).json_value() / 1000


def bare(page, number: int) -> tuple[float, float]:
    """The two waits of the page that does nothing."""
    slide = press(page, "ArrowRight", SAID.format(".stMain", f"turned to {number}, not run"))
    return slide, press(page, "Run", SAID.format(".stMain", f"turned to {number}, run"))


def main() -> None:
    """Print the row."""
    print(machine())
    at_once, slides, runs, floor = [], [], [], []
    script = Path(tempfile.mkdtemp(), "bare.py")
    script.write_text(BARE, "utf-8")
    with served() as (address, _), served(str(script)) as (other, _), tab() as page:
        for network, how in (("10GbE", "true"), ("1GbE", "false")):  # runs that are not stored yet
            page.goto(f"http://{address}/?network={network}&welcome=true")
            page.locator(".st-key-loss canvas").wait_for()
            if how == "false":
                page.get_by_text("Run at once").click()
            for _ in range(ROUNDS):
                page.locator(".st-key-loss canvas").wait_for()
                time.sleep(3)  # a reader looks at the result
                if how == "true":
                    at_once.append(press(page, "ArrowRight", CURVE))
                else:
                    slides.append(press(page, "ArrowRight", SAID.format(".st-key-title", "Not run yet")))
                    runs.append(press(page, "Run", CURVE))
        page.goto(f"http://{other}/")
        page.locator(".st-key-workers input[type=range]").wait_for()
        for turn in range(ROUNDS):
            time.sleep(1)
            floor.append(bare(page, turn + 2))
    once, slide, curve = map(statistics.median, (at_once, slides, runs))
    one, two = map(statistics.median, zip(*floor, strict=True))
    measured = f"{once:.2f} s; a page that does nothing {one:.2f} s"
    row("slider to the first curve of the default", measured, "< 0.5 s", once < 0.5)
    measured = (
        f"{slide + curve:.2f} s (slider {slide:.2f} s, Run {curve:.2f} s); a page that does nothing {one + two:.2f} s"
    )
    row("the same where it waits for Run", measured, "< 0.5 s", slide + curve < 0.5)


if __name__ == "__main__":
    main()
