"""The values that a timeline predicts while a box is dragged. `python -m tests.benchmarks.drag`"""

import base64
import statistics

from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from experiments.viewer import canvases
from experiments.viewer.canvases import timeline
from tests.benchmarks.browser import tab
from tests.benchmarks.measure import machine, row

ROUNDS = 5
NEAR = 1000  # ms that a pointer is near before it drags
DRAG = """() => {
    const [shown] = [...lockstepTimelines].filter(one => one.stage.isConnected), took = [];
    for (let value = 15; value < 25; value++) {
        const begin = performance.now();
        shown.trouble.foresee({ kind: 'slow', rank: 1, value: value / 10 });
        took.push(performance.now() - begin);
    }
    return took;
}"""


def drag(frame: bytes, near: bool) -> tuple[float, float]:
    """Return what the first value takes, and a later one (median), in ms, in a fresh browser."""
    with tab() as page:
        page.set_content(f'<div id="here" style="width: 900px"></div><script>{canvases.script()}</script>')
        show = "frame => { lockstep.timeline(here, lockstep.bytes(frame), { tell: () => {} }); }"
        page.evaluate(show, base64.b64encode(frame).decode())
        if near:
            page.mouse.move(300, 150)
        page.wait_for_timeout(NEAR)
        first, *later = page.evaluate(DRAG)
        return first, statistics.median(later)


def main() -> None:
    """Print the rows: a value takes from the move of the pointer to the table that is drawn next."""
    print(machine())
    for workers in (8, 16):
        frame = timeline.frame(run(Experiment.of({"workers": workers})), "it", touchable=True)
        for near in (True, False):
            taken = [drag(frame, near) for _ in range(ROUNDS)]
            first, later = (statistics.median(column) for column in zip(*taken, strict=True))
            what, measured = f"first value that a dragged box predicts, {workers} workers", f"{first:.0f} ms"
            if near:
                row(what, f"{measured}, later ones {later:.0f} ms", "< 50 ms", first < 50)
            else:
                print(f"| the same, of a pointer that has just come | {measured}, later ones {later:.0f} ms | | |")


if __name__ == "__main__":
    main()
