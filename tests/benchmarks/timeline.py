"""50,000 spans on the page: drawn, zoomed into, and played. `python -m tests.benchmarks.timeline`"""

import statistics

from experiments.specification.experiment import Experiment
from experiments.viewer.canvases.timeline import SPANS
from tests.benchmarks.browser import tab
from tests.benchmarks.load import served
from tests.benchmarks.measure import machine, row

ROUNDS = 3
EXPERIMENT = Experiment.of({"workers": 64, "steps": 197, "workload": "quadratic", "evaluations": 1})  # 49,872 spans
DRAWN = """() => {
    const find = root => root.querySelector('.timeline .status')
        ?? [...root.querySelectorAll('*')].map(e => e.shadowRoot && find(e.shadowRoot)).find(Boolean);
    return find(document)?.innerText.includes('Showing') && performance.now() - window.began;
}"""
ZOOM = """stage => new Promise(resolve => {
    const took = [];
    const step = n => {
        if (n === 20) return resolve(took);
        const key = n % 2 ? '+' : 'Home', begin = performance.now();
        stage.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
        requestAnimationFrame(() => setTimeout(() => { took.push(performance.now() - begin); step(n + 1); }));
    };
    step(0);
})"""
PLAY = """stage => new Promise(resolve => {
    const took = [];
    stage.dispatchEvent(new KeyboardEvent('keydown', {key: ' ', bubbles: true, cancelable: true}));
    const frame = before => requestAnimationFrame(now => {
        took.push(now - before);
        if (took.length === 60) return resolve(took.slice(10));
        frame(now);
    });
    requestAnimationFrame(frame);
})"""


def main() -> None:
    """Print the rows: 64 workers, whose every gradient, all-reduce and update is a span."""
    print(machine())
    opened, zoomed, played = [], [], []
    with served() as (address, _), tab() as page:
        page.goto(f"http://{address}/?{EXPERIMENT.query()}")
        page.locator(".timeline .status").filter(has_text="Showing").wait_for()
        for _ in range(ROUNDS):
            page.get_by_role("link", name="Schedules").click()
            page.locator(".figures tr", has_text="Makespan").wait_for()
            page.evaluate("window.began = performance.now()")
            page.get_by_role("link", name="Workbench").click()
            opened.append(page.wait_for_function(DRAWN).json_value() / 1000)
            stage = page.locator(".timeline .stage")
            zoomed += stage.evaluate(ZOOM)
            stage.press("Home")
            played += stage.evaluate(PLAY)
    drawn, step, frame = statistics.median(opened), statistics.median(zoomed) / 1000, statistics.median(played) / 1000
    row(f"{SPANS:,} spans, from the click that opens their page to their picture", f"{drawn:.2f} s", "< 1 s", drawn < 1)
    row("the same, from a key that zooms to the next picture", f"{1000 * step:.0f} ms", "< 1 s", step < 1)
    row(
        "the same, from frame to frame while the whole run is played", f"{1000 * frame:.0f} ms", "< 50 ms", frame < 0.05
    )


if __name__ == "__main__":
    main()
