"""The engine in the browser: answers the requests of a page, one after another.

A request is JSON, {"do": "run", "query": a link's settings}. The answer is [JSON, bytes, ...]: what was measured, and
frames for the page's canvases; or {"refused": one sentence} for a mistake of the reader's.
"""

import gc
import json
import math
import sys
from typing import Any

SAME_TIME, SAME_LOSS = 1e-9, 1e-4


def answer(request: str) -> list[Any]:
    """Answer a request of the page."""
    asked = json.loads(request)
    try:
        return DO[asked.pop("do")](**asked)
    except ValueError as error:
        return [json.dumps({"refused": str(error)})]
    finally:
        gc.collect()


def start() -> str:
    """Import what a first run needs, and return the versions it is computed with."""
    sys.modules["torch"] = None  # type: ignore[assignment]  # so that nobody looks for it in every folder
    import numpy

    import experiments.execution.run
    import experiments.viewer.pictures  # noqa: F401

    return f"Python {sys.version.split()[0]}, NumPy {numpy.__version__}"


def run(query: str, changes: dict[str, str] | None = None, recorded: dict[str, float] | None = None) -> list[Any]:
    """Run the experiment of a link, with `changes`: setting -> text.

    Return what it measured, the frame of its timeline, and that of its loss. If there is something `recorded`, the
    words say how far it is from that.
    """
    from experiments.execution.run import run
    from experiments.specification.experiment import Experiment
    from experiments.viewer import pictures
    from experiments.viewer.canvases import curve, timeline

    experiment = Experiment.from_query(query)
    done = run(experiment.change(**changes) if changes else experiment)
    link = done.experiment.query()
    lanes, said = timeline.lane_names(done), timeline.describe(done)
    frame = timeline.trace_frame(done.trace, lanes, said, link)
    picture = pictures.loss([pictures.Shown("this run", done, 0)], "seconds")
    curves = curve.frame(picture, "Loss of this run against time.", link)
    measured = {"seconds": done.trace.seconds(), "loss": float(done.evaluations["loss"][-1])}
    told = [words(measured, recorded), *([f"It ended early: {done.error}"] if done.error else []), *done.notes]
    finite = {name: value if math.isfinite(value) else None for name, value in measured.items()}
    facts = {"query": link, "values": done.experiment.in_force(), "words": " ".join(told), **finite}
    return [json.dumps(facts), frame, curves]


def words(measured: dict[str, float], recorded: dict[str, float] | None) -> str:
    """Return a sentence on what a run measured, next to what was recorded.

    >>> words({"seconds": 0.03, "loss": 0.5}, {"seconds": 0.02, "loss": 0.50001})
    'This run takes 30 ms, 1.5 times as long as recorded, and its held-out loss ends at 0.500, as recorded.'
    """
    from experiments.wording import units

    time, loss = units.seconds(measured["seconds"]), units.loss(measured["loss"])
    if recorded:
        time += f", {_times(measured['seconds'], recorded['seconds'])},"
        loss += f", {_higher(measured['loss'], recorded['loss'])}"
    return f"This run takes {time} and its held-out loss ends at {loss}."


def _times(seconds: float, recorded: float) -> str:
    if math.isclose(seconds, recorded, rel_tol=SAME_TIME):
        return "as recorded"
    return f"{seconds / recorded:.3g} times as long as recorded"


def _higher(loss: float, recorded: float) -> str:
    if math.isclose(loss, recorded, rel_tol=0, abs_tol=SAME_LOSS):
        return "as recorded"
    if not math.isfinite(loss):
        return f"and {recorded:.3g} was recorded"
    return f"{abs(loss - recorded):.2g} {'above' if loss > recorded else 'below'} the recorded one"


DO = {"run": run}
