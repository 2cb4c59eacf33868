"""What a timeline predicts of trouble, in a browser, beside the run that has it."""

import base64
import math

import pytest

from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from experiments.viewer import canvases
from experiments.viewer.canvases import recurrence, timeline
from tests.chromium import NEEDED
from tests.tiers import slow_except

pytest.importorskip("playwright.sync_api")

pytestmark = NEEDED

SHORT = {"steps": 20, "evaluations": 2}
CLOSE = {  # by how much a prediction may miss: hardly where times alone decide, more where messages wait
    "sync_sgd": 0.02, "local_sgd": 0.02, "zero3": 0.03, "tensor": 0.03, "overlap": 0.06, "dpsgd": 0.02,
    "asgd": 0.03, "easgd": 0.06, "downpour": 0.03, "gpipe": 0.05, "zb_h1": 0.15, "pipedream": 0.25,
}  # fmt: skip


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page()
    page.set_content(f'<div id="here" style="width: 900px"></div><script>{canvases.script()}</script>')
    yield page
    page.close()


@pytest.fixture
def foresee(page):
    """foresee(run, trouble) is what the timeline of a run says of this trouble: its effect, and when each rank ends."""

    def foreseen(done, **trouble):
        frame = base64.b64encode(timeline.frame(done, done.experiment.key(), touchable=True)).decode()
        return page.evaluate(
            """([frame, trouble]) => {
              const here = document.getElementById("here");
              const canvas = lockstep.timeline(here, lockstep.bytes(frame), { tell: () => {} });
              const [t] = [...lockstepTimelines].filter((one) => one.stage.isConnected), { foreseen } = t.trouble;
              const run = foreseen.run(trouble), said = foreseen.effect(trouble, run), past = foreseen.past;
              canvas.stop();
              here.shadowRoot.innerHTML = "";
              return { said, ends: run?.ends.map((end) => Number.isFinite(end) ? end : null), past: past?.ends };
            }""",
            [frame, trouble],
        )

    return foreseen


@pytest.mark.parametrize("algorithm", slow_except(("sync_sgd", "easgd", "gpipe", "pipedream"), CLOSE))
def test_a_slower_rank_and_a_longer_latency_take_as_long_as_predicted(foresee, algorithm):
    base = Experiment.of({"algorithm": algorithm, **SHORT})
    before, last = run(base), base.ranks - 1
    for now, trouble in (
        (base.change(slow=f"{last}:4"), {"kind": "slow", "rank": last, "value": 4}),
        (base.change(slow=f"{last}:1.5"), {"kind": "slow", "rank": last, "value": 1.5}),
        (base.change(latency=0.0001), {"kind": "latency", "value": 0.0001}),
    ):
        found = foresee(before, **trouble)
        workers = slice(base.servers, None)
        ratio = max(found["ends"][workers]) / max(found["past"][workers])
        assert ratio == pytest.approx(run(now).summary["seconds"] / before.summary["seconds"], rel=CLOSE[algorithm])


def test_a_prediction_starts_from_the_trouble_that_is_there(foresee):
    base = Experiment.of({**SHORT, "slow": "1:2,3:4", "jitter": "cloud"})
    before, now = run(base), run(base.change(slow="1:2,3:8"))
    found = foresee(before, kind="slow", rank=3, value=8)
    assert max(found["ends"]) == pytest.approx(now.summary["seconds"], rel=0.04)
    eased = foresee(before, kind="slow", rank=3, value=1)
    assert max(eased["ends"]) == pytest.approx(run(base.change(slow="1:2")).summary["seconds"], rel=0.04)


@pytest.mark.parametrize(
    "algorithm",
    slow_except(("sync_sgd", "gpipe", "asgd"), ["sync_sgd", "local_sgd", "dpsgd", "gpipe", "asgd", "easgd"]),
)
def test_those_who_wait_for_a_lost_rank_forever_are_those_that_stop(foresee, algorithm):
    base = Experiment.of({"algorithm": algorithm, **SHORT})
    before, last = run(base), base.ranks - 1
    at = float(f"{before.summary['seconds'] / 2:.2g}")
    now, found = run(base.change(crash=f"{last}:{at}")), foresee(before, kind="lost", rank=last, value=at)
    others = found["ends"][base.servers : last]
    assert found["ends"][last] is None
    if now.status == "failed":
        assert None in others and "wait for it forever" in found["said"]
    else:
        assert None not in others and found["said"] == "the others go on without it"
    assert (now.status == "failed") == (base.servers == 0)


def test_a_rank_cannot_be_lost_after_it_has_finished(foresee):
    before = run(Experiment.of({"algorithm": "sync_sgd", **SHORT}))
    said = foresee(before, kind="lost", rank=3, value=before.summary["seconds"])["said"]
    assert said == "it has finished by then: choose an earlier moment"


def test_the_effect_is_told_in_words_by_whom_it_concerns(foresee):
    together, apart = (run(Experiment.of({"algorithm": name, **SHORT})) for name in ("sync_sgd", "asgd"))
    assert foresee(together, kind="slow", rank=3, value=4)["said"] == "a step takes about 2.0 times as long"
    assert foresee(together, kind="slow", rank=3, value=1)["said"] == "a step takes no longer"
    said = foresee(apart, kind="slow", rank=4, value=10)["said"]
    assert said == "its steps take about 4.0 times as long, those of the others no longer"


@pytest.mark.parametrize("algorithm", ["hogwild", "adpsgd", "ssp"])
def test_what_cannot_be_predicted_is_left_to_the_run(foresee, algorithm):
    found = foresee(run(Experiment.of({"algorithm": algorithm, **SHORT})), kind="slow", rank=1, value=4)
    assert found["said"] == "what comes of it, the run shows" and found["ends"] is None


def test_a_recurrence_repeats_its_run_for_a_part_of_a_long_one(foresee, monkeypatch):
    monkeypatch.setattr(recurrence, "MOST", 1_000)
    before = run(Experiment.of({"steps": 300, "evaluations": 2}))
    found = foresee(before, kind="slow", rank=3, value=4)
    assert found["said"] == "a step takes about 2.0 times as long"
    assert max(found["past"]) < before.summary["seconds"] / 2 and math.isfinite(max(found["ends"]))


def test_what_the_first_prediction_needs_is_executed_when_a_pointer_comes_near_and_not_before(page):
    frame = base64.b64encode(timeline.frame(run(Experiment.of(SHORT)), "it", touchable=True)).decode()
    page.mouse.move(0, 0)
    page.evaluate(
        """(frame) => {
          const here = document.getElementById("here");
          here.style.marginTop = "40px";
          globalThis.canvas = lockstep.timeline(here, lockstep.bytes(frame), { tell: () => {} });
          globalThis.shown = [...lockstepTimelines].find((one) => one.stage.isConnected);
        }""",
        frame,
    )
    page.evaluate("() => new Promise((done) => requestIdleCallback(() => requestIdleCallback(done)))")
    assert page.evaluate("shown.trouble.made === null"), "no pointer has come near"
    page.mouse.move(300, 150)
    page.wait_for_function("shown.trouble.made?.before && shown.trouble.made.talks")
    executed = page.evaluate(
        """() => {
          const { recurrence } = shown.trouble.made, { execute } = recurrence;
          let count = 0;
          recurrence.execute = (...given) => { count++; return execute.apply(recurrence, given); };
          shown.trouble.foresee({ kind: "slow", rank: 1, value: 3 });
          return count;
        }"""
    )
    assert executed == 1, "with the trouble; without it, the recurrence had been executed before"
