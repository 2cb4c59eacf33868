"""Draw a single picture of the experiment or schedule that a query names, as a small page without a session.

If the run is not stored, the pool makes it first, and the page waits for it. A line below the picture links to the
workbench with the same query.
"""

import time
from html import escape
from urllib.parse import urlencode

from app.browser.text import sentence
from app.charts.words import legend_of
from app.comparison import reference
from app.session import pins, session, sharing
from experiments.exports.page import page, place
from experiments.exports.report import mark
from experiments.specification.experiment import Experiment
from experiments.study import schedules
from experiments.study.schedules import Plan
from experiments.viewer import curves, pictures, race
from experiments.viewer.canvases import curve, schedule, timeline
from experiments.viewer.saved import heading, labels_of_several

KINDS = ("timeline", "curves", "race", "schedule")
PATIENCE = 20.0  # s after which the page reports that the run is still in progress
AGAIN = 2  # s after which that page reloads
SPANS = 20_000  # most single spans of a timeline
PLAN = {
    "schedule_a": "schedule", "ranks": "ranks", "micro_batches": "chunks", "cost_f": "forward", "cost_i": "inputs",
    "cost_w": "weights", "link_takes": "latency", "other_costs": "costs", "own_schedule": "own",
}  # fmt: skip
"""The field of a plan that each parameter in the schedules page's address sets."""


def answer(kind: str, pairs: list[tuple[str, str]]) -> tuple[str, int]:
    """Return the page that shows this picture of the query's experiment or schedule, and its HTTP status."""
    back = urlencode([pair for pair in pairs if pair[0] not in ("embed", "size")])
    try:
        if kind not in KINDS:
            raise ValueError(f"there is no picture {kind[:40]!r} to embed; choose one of {', '.join(KINDS)}.")
        title, body, frames = _schedule(dict(pairs)) if kind == "schedule" else _runs(kind, pairs)
    except TimeoutError:
        text = f'<meta http-equiv="refresh" content="{AGAIN}"><p role="status">This run is in progress.</p>'
        return page("Lockstep", text, {}, "embed"), 202
    except (ValueError, OSError) as error:
        return page("Lockstep", f"<p>{escape(sentence(str(error)))}</p>", {}, "embed"), 400
    link = f'<a href="?{escape(back)}" target="_blank" rel="noopener">Lockstep</a>'
    return page(title, f'{body}<p class="credit">{escape(title)} · {link}</p>', frames, "embed"), 200


def _runs(kind: str, pairs: list[tuple[str, str]]) -> tuple[str, str, dict]:
    """Return the title, body and frames of a picture of the query's run. Except in a timeline, it also shows the runs
    that the query pins.
    """
    first = Experiment.from_query(urlencode(pairs))
    others = [Experiment.from_query(value) for name, value in pairs if name == "pin" and "=" in value]
    experiments = [first, *(one for one in others[: pins.MOST] if kind != "timeline")]
    folders = [_made(one) for one in experiments]
    runs = [(folder.rpartition("/")[2], session.load(folder)) for folder in folders]
    shown = reference.name_runs(runs, colours={name: n for n, (name, _) in enumerate(runs)})
    axis = next((value for name, value in pairs if name == "axis" and value in curves.AXES), "")
    log = ("log", "true") in pairs
    frames, parts, view = {}, [], sharing.read(dict(pairs))
    pinned = reference.of(shown[0], shown) if kind == "race" and len(shown) == 2 else None
    pair = [pinned, shown[0]] if pinned else []
    goal = race.finish([one.run for one in pair])
    if kind != "timeline":
        axis = axis or ("seconds" if kind == "race" else "step")
        drawn, told = pictures.loss(shown, axis, log), "Loss."
        if goal is not None:
            told = race.verdict(pair, goal)
            drawn = race.picture(pair, goal) if axis == "seconds" else drawn  # the finish line crosses them
            parts.append(f"<p>{escape(told)}</p>")
        frames["loss"] = ("curve", curve.frame(drawn, told, "", labels_of_several(shown, "loss")))
        parts.append(f"<div><h2>Loss</h2>{place('loss')}</div>")
    if kind == "curves" and any(len(curves.held_out(one.run, axis, "accuracy").x) for one in shown):
        called = labels_of_several(shown, "accuracy, %")
        frames["accuracy"] = ("curve", curve.frame(pictures.accuracy(shown, axis), "Accuracy.", "", called))
        parts.append(f"<div><h2>Held-out accuracy, %</h2>{place('accuracy')}</div>")
    parts = [f'<div class="two">{"".join(parts)}</div>'] if parts else []
    if len(shown) > 1:
        parts.insert(0, legend_of(shown, mark))
    if kind != "curves":
        clock = {"together": "race", "until": max(one.run.trace.seconds() for one in shown)} if len(shown) > 1 else {}
        for n, one in enumerate(shown):
            drawn = timeline.frame(one.run, str(n), most=SPANS // len(shown), view=view, **clock)
            frames[f"timeline-{n}"] = ("timeline", drawn)
            name = f'<h2><span class="run">{mark(one)} {escape(one.name)}</span></h2>' if len(shown) > 1 else ""
            parts.append(name + place(f"timeline-{n}"))
    titles = dict.fromkeys(heading(one.run.experiment) for one in shown)
    return "; ".join(titles), "".join(parts), frames


def _made(e: Experiment) -> str:
    """Return the folder of this experiment's run, which is started if needed. Raise TimeoutError while it runs, and
    ValueError if it fails.
    """
    if e.cluster != "simulated":
        raise ValueError("only runs on the simulated cluster can be embedded: a link never starts processes or GPUs.")
    pool, deadline = session.pool(), time.monotonic() + PATIENCE
    job = pool.submit(f"embed/{e.key()}", e)
    while (now := pool.state(job)).active:
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.03)
    if now.folder is None:
        raise ValueError(now.message)
    return str(now.folder)


def _schedule(given: dict[str, str]) -> tuple[str, str, dict]:
    """Return the title, body and frames of a picture of a schedule. `given` is a query like that in the schedules
    page's address.
    """
    values = {field: given[name] for name, field in PLAN.items() if name in given}
    name = values.setdefault("schedule", "1f1b")
    kinds = schedules.options(name) if name in schedules.NAMES else {}
    own = {option: given[f"{option}_a"] for option in kinds if f"{option}_a" in given}
    read = {"true": True, "false": False}
    values["options"] = {n: read.get(v.lower(), int(v) if v.isdigit() else v) for n, v in own.items()}
    plan = Plan.of(**values)
    if schedules.size(plan) > schedules.QUICK:
        raise ValueError("this schedule is too large to be embedded; use fewer ranks or micro-batches.")
    done = schedules.study(plan)
    return plan.title, place("schedule"), {"schedule": ("timeline", schedule.frame(done))}
