"""From a press to a sign of it, and to what was asked for. `python -m tests.benchmarks.first_answer`

Of Run, of a card and of a page's link: ms until the first frame in which the page looks otherwise, as the browser times
its own events, and ms until what was asked for has begun to show. Beside them, in turn, the button of a page of
Streamlit that does nothing but say that it was pressed.
"""

import statistics
import tempfile
from pathlib import Path

from tests.benchmarks.browser import tab
from tests.benchmarks.load import served
from tests.benchmarks.measure import machine, row

ROUNDS = 5
BARE = """
import streamlit as st
st.session_state.n = st.session_state.get("n", 0) + st.button("Run", key="bare")
st.markdown(f"pressed {st.session_state.n}")
"""
FRAMES = """
window.frames_ = [];
new PerformanceObserver((list) => frames_.push(
  ...list.getEntries().filter((one) => one.name === "click").map((one) => one.duration),
)).observe({ type: "event", durationThreshold: 16 });
document.addEventListener("click", () => { window.began = performance.now(); }, true);
"""
ANSWER = "(there) => window.began && new Function(`return ${there}`)() && performance.now() - window.began"
IDLE = """() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'
    && !document.querySelector('.stProgress')"""


def press(page, what: str, there: str) -> tuple[float, float]:
    """ms from a click until the next frame, which is 16 or less where the browser does not tell; and until `there`."""
    page.wait_for_function(IDLE)
    page.wait_for_timeout(1000)  # a reader looks at it
    page.evaluate("() => { frames_.length = 0; window.began = 0; }")
    page.locator(what).first.click()
    answer = page.wait_for_function(ANSWER, arg=there).json_value()
    page.wait_for_timeout(300)
    return max(page.evaluate("frames_"), default=16), answer


def ours(page, address: str, turn: int) -> dict[str, tuple[float, float]]:
    """What each press took."""
    page.goto(f"http://{address}/")
    page.locator(".st-key-card-0 button").wait_for()
    title = "document.querySelector('.st-key-prediction')"
    found = {"a card": press(page, ".st-key-card-0 button", title)}
    page.goto(f"http://{address}/?seed={turn + 100}&at_once=false")
    page.locator(".timeline canvas").first.wait_for()
    page.locator(".st-key-workers input[type=range]").press("ArrowRight")
    page.get_by_text("Not run yet").wait_for()
    found["Run"] = press(page, ".st-key-run button", "!document.body.innerText.includes('Not run yet')")
    heading = "document.querySelector('.st-key-first-question')"
    found["a page's link"] = press(page, "a[href$='/schedules']", heading)
    return found


def main() -> None:
    """Print the rows."""
    print(machine())
    script = Path(tempfile.mkdtemp(), "bare.py")
    script.write_text(BARE, "utf-8")
    times: dict[str, list[tuple[float, float]]] = {}
    with served() as (address, _), served(str(script)) as (other, _), tab(FRAMES) as page:
        for turn in range(ROUNDS):
            for name, took in ours(page, address, turn).items():
                times.setdefault(name, []).append(took)
            page.goto(f"http://{other}/")
            page.locator(".st-key-bare button").wait_for()
            floor = press(page, ".st-key-bare button", "document.body.innerText.includes('pressed 1')")
            times.setdefault("bare", []).append(floor)
    middle = {name: [statistics.median(side) for side in zip(*took, strict=True)] for name, took in times.items()}
    frame, answer = middle.pop("bare")
    for name, (sign, there) in middle.items():
        floor = f"a page that does nothing {frame:.0f} and {answer:.0f} ms"
        measured = f"{sign:.0f} ms, what was asked for {there:.0f} ms; {floor}"
        row(f"from a press of {name} to a sign of it", measured, "< 100 ms", sign < 100)


if __name__ == "__main__":
    main()
