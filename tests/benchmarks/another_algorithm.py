"""Another algorithm chosen in the box: until its curve, its timeline and *See it learn*.

python -m tests.benchmarks.another_algorithm

The clock starts with the key that takes the algorithm from the list; none of these runs is stored. Once the timeline is
drawn, the page scrolls to *See it learn*, which counts from that moment. Between them, the round to the server and back
of a page of Streamlit with nothing but such a box.
"""

import statistics
import tempfile
from pathlib import Path

from experiments.specification.catalogue import ALGORITHMS as CATALOGUE
from experiments.specification.catalogue import choice_label
from tests.benchmarks.browser import tab
from tests.benchmarks.first_curve import CURVE, PRESSED, SAID
from tests.benchmarks.load import served
from tests.benchmarks.measure import machine, row

ALGORITHMS = ("asgd", "easgd", "dpsgd", "local_sgd", "gpipe")
LABELS = {name: choice_label(CATALOGUE, name) for name in ("sync_sgd", *ALGORITHMS)}
BARE = f"""
import streamlit as st
with st.container(key="algorithm"):
    name = st.selectbox("Algorithm", {list(LABELS.values())})
st.markdown(f"chose {{name}}")
"""
PARTS = """
const lanes = () => [...window.lockstepTimelines ?? []].find((one) => one.stage.isConnected)?.run;
const learned = () => {
  const roots = [...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')].map((one) => one.shadowRoot);
  const place = roots.map((one) => one?.querySelector('.landscape')).find(Boolean);
  return place && !place.classList.contains('pending') && place.querySelector('.about').textContent;
};
const heading = () => [...document.querySelectorAll('h2')].find((one) => one.textContent.includes('See it learn'));
"""
"""The run in the timeline; what *See it learn* says of its picture, if it has one."""

WATCH = f"""() => {{ {PARTS}
  {PRESSED};
  window.times = [];
  const [run, path] = [lanes(), learned()], curve = {CURVE};
  const rest = [curve, () => lanes() && lanes() !== run, () => learned() && learned() !== path];
  const look = () => {{
    while (rest.length && rest[0]()) {{ times.push(performance.now() - began); rest.shift(); }}
    if (rest.length === 1) heading()?.scrollIntoView();
    if (rest.length) requestAnimationFrame(look);
  }};
  look();
}}"""
"""Notes, in every frame, when the curve, the timeline and the path of the next run are first there, in this order."""


def choose(page, name: str, watch: str) -> None:
    """Choose this algorithm in its box, and start the clock with the key that takes it."""
    box = page.locator(".st-key-algorithm").get_by_role("combobox")
    box.fill(LABELS[name])
    page.get_by_role("option", name=LABELS[name]).wait_for()
    page.evaluate(watch)
    box.press("Enter")


def ours(page, name: str) -> tuple[float, float, float]:
    """Seconds until the curve and the timeline of this algorithm, and from there until its path."""
    page.wait_for_timeout(2000)  # a reader looks at the result
    choose(page, name, WATCH)
    curve, lanes, path = page.wait_for_function("window.times.length === 3 && window.times").json_value()
    return curve / 1000, lanes / 1000, (path - lanes) / 1000


def bare(page, name: str) -> float:
    """Seconds until the page that does nothing says the name."""
    page.wait_for_timeout(1000)
    choose(page, name, f"() => {{ {PRESSED} }}")
    return page.wait_for_function(SAID.format(".stMain", f"chose {LABELS[name]}")).json_value() / 1000


def main() -> None:
    """Print the rows."""
    print(machine())
    times, floor = [], []
    script = Path(tempfile.mkdtemp(), "bare.py")
    script.write_text(BARE, "utf-8")
    with served() as (address, _), served(str(script)) as (other, _), tab() as page:
        plain = page.context.browser.new_page()
        plain.goto(f"http://{other}/")
        page.goto(f"http://{address}/?network=10GbE")
        page.locator(".st-key-lanes canvas").first.wait_for()
        page.wait_for_function(f"() => {{ {PARTS} heading()?.scrollIntoView(); return learned(); }}")
        for name in ALGORITHMS:
            times.append(ours(page, name))
            floor.append(bare(plain, name))
    curve, lanes, path = map(statistics.median, zip(*times, strict=True))
    nothing = f"a page that does nothing {statistics.median(floor):.2f} s"
    row("another algorithm to its first curve", f"{curve:.2f} s; {nothing}", "< 1 s", curve < 1)
    row("another algorithm to its timeline", f"{lanes:.2f} s; {nothing}", "", True)
    slowest = max(one[2] for one in times)
    row(
        "from there to *See it learn* of the run",
        f"{path:.2f} s, at most {slowest:.2f} s",
        "< 2 s",
        path < 2,
    )
    for name, one in zip(ALGORITHMS, times, strict=True):
        print(name, " ".join(f"{seconds:.2f}" for seconds in one))


if __name__ == "__main__":
    main()
