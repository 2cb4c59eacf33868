"""Canvases on a page of their own, read from the disk: no server, no Streamlit."""

import base64
import math
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.execution.run import run
from experiments.exports.report import report
from experiments.learning import replay
from experiments.specification.experiment import Experiment
from experiments.study import schedules
from experiments.study.schedules import Plan
from experiments.viewer import canvases, curves, pictures, race
from experiments.viewer.canvases import curve, figure, landscape, schedule, timeline
from experiments.viewer.column_codec import unpack
from experiments.viewer.look import Look
from experiments.viewer.pictures import Axis, Picture, Series, Shown
from experiments.wording import units
from tests.chromium import NEEDED
from tracing import KINDS

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

PAGE = """<!doctype html>
<meta charset="utf-8">
<style>:root { --st-text-color: rgb(1, 2, 3) } .stage { display: none }</style>
<div id="here"></div>
<script>CANVASES</script>
<script>lockstep.KIND(document.getElementById("here"), lockstep.bytes("FRAME"));</script>"""

pytestmark = NEEDED


@pytest.fixture
def drawn(browser, tmp_path):
    """drawn(kind, frame) is a page with that canvas; what its scripts complain of fails the test."""
    context, complaints = browser.new_context(offline=True), []

    def opened(kind: str, frame: bytes):
        words = {"CANVASES": canvases.script(), "KIND": kind, "FRAME": base64.b64encode(frame).decode()}
        path = tmp_path / "page.html"
        path.write_text(re.sub("CANVASES|KIND|FRAME", lambda word: words[word[0]], PAGE), "utf-8")
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri())
        return page

    yield opened
    context.close()
    assert not complaints


def pixels(page) -> str:
    """What stands on the canvas."""
    return page.locator("canvas").first.evaluate("canvas => canvas.toDataURL()")


@pytest.mark.slow
def test_a_card_covers_none_of_the_lanes_that_it_speaks_of(drawn):
    page = drawn("timeline", timeline.frame(run(Experiment.of({"slow": "2:5", "steps": 12})), "it"))
    stage, tip, seen = page.locator(".stage"), page.locator(".tip"), Counter()
    expect(page.locator(".why")).to_contain_text("of their time")
    box = stage.bounding_box()
    pitch = (box["height"] - 34 - 22) / 4
    for lane in range(4):
        for x in range(90, 500, 20):
            page.mouse.move(box["x"] + x, box["y"] + 34 + (lane + 0.4) * pitch)
            if not tip.is_visible():
                continue
            told, card = tip.inner_text(), tip.bounding_box()
            for rank in {*re.findall(r"worker (\d)", told)}:
                top = box["y"] + 34 + int(rank) * pitch
                assert card["y"] >= top + pitch - 1 or card["y"] + card["height"] <= top + 1, (told, card, top)
                seen[rank] += 1
    assert len(seen) == 4 and seen["2"] > 10


@pytest.mark.slow
def test_two_times_or_more_stand_on_the_axis_of_a_narrow_timeline_at_any_zoom(drawn):
    page = drawn("timeline", timeline.frame(run(Experiment.of({"steps": 30})), "it"))
    page.set_viewport_size({"width": 360, "height": 700})
    expect(page.locator(".headline")).to_contain_text("hardly ever waits for another")
    counts = page.evaluate("""() => {
      const [one] = [...lockstepTimelines], plot = 360 - 16 - 84 - 4, counts = [];
      for (let n = 1; n < 400; n++) {
        one.from = one.total * 0.3;
        one.to = one.from + one.total * 0.7 * 0.97 ** n;
        const { at } = one.marks(plot);
        counts.push(at.length, plot * (at[1] - at[0]) / (one.to - one.from));
      }
      return counts;
    }""")
    assert min(counts[0::2]) >= 2 and min(counts[1::2]) > 40  # px between two


def test_a_schedule_plays_on_a_page_without_a_server(drawn):
    page = drawn("timeline", schedule.frame(schedules.study(Plan.of(schedule="1f1b", ranks=4, chunks=8))))
    expect(page.locator(".stage")).to_have_attribute("aria-label", re.compile("^1F1B on 4 ranks"))
    expect(page.locator(".status")).to_contain_text(re.compile(r"Showing the schedule, [\d.]+ units of time"))
    expect(page.locator(".legend")).to_contain_text("critical path")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.locator(".status")).to_contain_text(re.compile(r"rank 0: (forward|backward)"))
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator(".status")).to_contain_text(re.compile(r"^At .* rank 0: "))
    expect(page.locator(".status")).to_have_attribute("aria-live", "polite")


@pytest.mark.slow
def test_ops_of_a_kind_that_take_equally_long_are_labelled_alike_at_any_width(drawn):
    page = drawn("timeline", schedule.frame(schedules.study(Plan.of(schedule="gpipe", ranks=2, chunks=12))))
    expect(page.locator(".status")).to_contain_text("units of time")
    widths = page.evaluate("""() => {
      const [one] = [...lockstepTimelines], widths = [];
      const g = document.createElement("canvas").getContext("2d");
      for (let width = 200; width < 1400; width += 10) {
        const words = [];
        g.fillText = (text) => words.push(text);
        one.draw(g, width, 34 + 2 * one.pitch + 22, 1);
        widths.push(words);
      }
      return widths;
    }""")
    seen = set()
    for words in widths:
        named = Counter(word[0] for word in words if re.fullmatch(r"[FB]\d+", word))
        assert set(named.values()) <= {24} and words.count("7") == words.count("11"), words  # all of them or none
        seen |= {*named, words.count("11")}
    assert seen == {"F", "B", 0, 2}


@pytest.mark.slow
def test_a_schedule_that_takes_one_unit_of_time_says_so(drawn):
    page = drawn(
        "timeline", schedule.frame(schedules.study(Plan.of(schedule="own", own="0F0 0B0", inputs=0, weights=0)))
    )
    expect(page.locator(".status")).to_contain_text("Showing the schedule, 1 unit of time.")


def test_a_timeline_gives_the_end_of_a_run_that_lost_a_worker_in_the_digits_of_its_sentences(drawn):
    lost = run(Experiment.of({"steps": 60, "crash": "2:0.0123456"}))
    assert lost.status == "failed"
    page = drawn("timeline", timeline.frame(lost, "it"))
    beyond = page.evaluate("() => { const [one] = lockstepTimelines; one.clock.set(one.total); return one.moment(); }")
    assert beyond == units.seconds(lost.summary["seconds"])


def test_a_canvas_refuses_two_parts_with_a_method_of_the_same_name(browser):
    parts = "class Whole {} class One { draw() {} get at() {} } class Other { draw() {} } mixin(Whole, One, Other);"
    script = (Path(canvases.__file__).parent / "canvas.js").read_text("utf-8") + parts
    page, complaints = browser.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_content(f"<script>{script}</script>")
    page.close()
    assert complaints == ["Whole gets draw of Other, and has one already"]


def test_a_timeline_tells_what_lies_under_the_pointer_on_a_page_without_a_server(drawn, made):
    page = drawn("timeline", timeline.frame(made(Experiment(algorithm="easgd", workers=3)), "it"))
    stage = page.locator(".stage")
    expect(stage).to_have_attribute("aria-label", re.compile("^Timeline of 4 ranks"))
    box = stage.bounding_box()
    page.mouse.move(box["x"] + 120, box["y"] + 34 + 45)
    expect(page.locator(".tip")).to_contain_text(re.compile("worker 1 · .*takes", re.DOTALL))


def test_a_wait_says_why_under_the_pointer_and_by_keys_and_is_walked_back(drawn):
    page = drawn("timeline", timeline.frame(run(Experiment.of({"slow": "2:5", "steps": 12})), "it"))
    stage, tip, why = page.locator(".stage"), page.locator(".tip"), page.locator(".why")
    expect(why).to_contain_text("of their time, all of that wait caused by worker 2.")
    stage.press("Home")
    box, plain = stage.bounding_box(), pixels(page)
    sentence = (
        "for worker 2, whose gradient takes 5 times as long as usual; "
        "with worker 2 as fast as usual, the step would take 428 µs"
    )
    for x in range(90, 200, 5):  # where a lane waits depends on how wide the page is
        page.mouse.move(box["x"] + x, box["y"] + 34 + 15)
        if "wait" in tip.inner_text():
            break
    expect(tip).to_contain_text(sentence)
    page.mouse.down()
    page.mouse.up()
    expect(why).to_contain_text(sentence)
    expect(tip).to_be_hidden()  # what stands below the lanes need not cover them
    page.mouse.move(0, 0)
    page.wait_for_function(
        "before => document.getElementById('here').shadowRoot.querySelector('canvas').toDataURL() !== before", arg=plain
    )
    page.get_by_role("button", name="Why is that?").click()
    expect(why).to_contain_text("Because in step 1, worker 2 is at work on its gradient")
    expect(why).to_contain_text("This is the root cause: worker 2 is set to compute 5 times slower (Trouble).")
    stage.press("Escape")
    expect(why).to_contain_text("Workers waited")
    stage.press("w")
    expect(why).to_contain_text(sentence)
    stage.press("c")
    expect(page.get_by_role("button", name="Critical path")).to_have_attribute("aria-pressed", "true")


@pytest.mark.slow
def test_what_is_said_of_runs_that_diverge_covers_no_cross_and_no_other_words(drawn):
    x, y = np.arange(20.0), np.geomspace(1, 1e30, 20)
    ended = [Series(x, y, "#000000", name=name, ended="diverged") for name in ("one", "other")]
    page = drawn("curve", curve.frame(Picture(ended, Axis("step", 0, 40), Axis("loss", 0, 5)), ""))
    expect(page.locator(".stage")).to_have_attribute("aria-label", re.compile("step"))
    places = page.evaluate("""() => {
      const [one] = [...lockstepCurves], boxes = [], g = document.createElement("canvas").getContext("2d");
      const fill = g.fillText.bind(g);
      g.fillText = (text, x, y) => {
        const wide = g.measureText(text).width;
        if (/diverged|off the chart/.test(text)) boxes.push([text, x, y, x + wide]);
        fill(text, x, y);
      };
      one.draw(g, 600, 260);
      const to = one.scales(600, 260);
      return { boxes, cross: to.x(19), top: one.edges(600, 260).top };
    }""")
    boxes, cross, top = places["boxes"], places["cross"], places["top"]
    assert sorted(text.split(",")[0] for text, *_ in boxes) == [
        "diverged",
        "diverged",
        "off the chart",
        "off the chart",
    ]
    for n, (_, left, y, right) in enumerate(boxes):
        assert right < cross - 7 or left > cross + 7 or abs(y - (top + 6)) > 12
        assert all(abs(y - other) >= 13 or right < a or left > b for _, a, other, b in boxes[:n])


@pytest.mark.slow
def test_the_legend_has_the_pattern_that_a_bar_has(drawn, made):
    page = drawn("timeline", timeline.frame(made(Experiment()), "it"))
    update = page.locator(".legend span", has_text="update").locator("i")
    assert "repeating-linear-gradient" in update.evaluate("one => getComputedStyle(one).backgroundImage")
    compute = page.locator(".legend span", has_text="compute").locator("i")
    assert compute.evaluate("one => getComputedStyle(one).backgroundImage") == "none"


def test_the_legend_has_what_is_in_the_run_and_nothing_else(drawn):
    for trouble, kinds in ({}, ["compute", "update", "communicate", "wait"]), ({"crash": "2:0.002"}, [*KINDS]):
        done = run(Experiment.of({"steps": 20, **trouble}))
        for most in (None, 60):  # of a long run, single spans of a window alone
            page = drawn("timeline", timeline.frame(done, "it", most=most))
            expect(page.locator(".legend span")).to_have_text(kinds)
            page.close()


def test_an_idle_slot_that_ends_with_a_link_names_the_link_and_what_it_takes(drawn):
    page = drawn("timeline", schedule.frame(schedules.study(Plan.of(schedule="1f1b", latency=1.0))))
    page.locator(".stage").press("w")
    said = re.compile(r"waits \d+ for rank \d, which is at work on \dB\d, and then 1 for the link from there\.")
    expect(page.locator(".why")).to_contain_text(said)
    page = drawn("timeline", schedule.frame(schedules.study(Plan.of(schedule="1f1b"))))
    page.locator(".stage").press("w")
    expect(page.locator(".why")).to_contain_text("which is at work on")
    expect(page.locator(".why")).not_to_contain_text("link")


def test_a_rank_is_chosen_and_its_spans_are_told_by_keys(drawn):
    page = drawn("timeline", schedule.frame(schedules.study(Plan.of(schedule="gpipe", ranks=2, chunks=2))))
    stage, status = page.locator(".stage"), page.locator(".status")
    stage.press("r")
    expect(status).to_contain_text(re.compile("^rank 0 is chosen: full stop"))
    stage.press("r")
    expect(status).to_contain_text(re.compile("^rank 1 is chosen"))
    stage.press(".")
    expect(status).to_contain_text(re.compile(r"^rank 1 · forward · 1F0 · at 1 · takes 1"))
    stage.press("R")
    expect(status).to_contain_text(re.compile("^rank 0 · forward · 0F1"))
    stage.press("Escape")
    expect(status).not_to_contain_text("rank 0 · forward")


@pytest.mark.slow
def test_escape_closes_the_card_under_a_pointer_that_stays(drawn):
    page = drawn("timeline", schedule.frame(schedules.study(Plan.of(schedule="gpipe", ranks=2, chunks=2))))
    page.locator(".stage").hover(position={"x": 120, "y": 45})
    expect(page.locator(".tip")).to_contain_text("rank 0 · forward")
    page.keyboard.press("Escape")
    expect(page.locator(".tip")).to_be_hidden()


@pytest.mark.slow
def test_escape_closes_the_keys_that_the_mouse_has_opened(drawn):
    page = drawn("timeline", schedule.frame(schedules.study(Plan.of(schedule="gpipe", ranks=2, chunks=2))))
    page.get_by_role("button", name="Keys", exact=True).click()
    keys = page.get_by_role("group", name="Keys")
    expect(keys).to_be_visible()
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()


@pytest.mark.slow
def test_the_key_of_a_presentation_is_turned_off_for_good_by_a_reader_who_does_not_want_it(browser, made, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(report([Shown("it", made(Experiment()), 0)]), "utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    large = page.locator("html[data-size=large]")
    for presses in (1, 0):
        page.keyboard.press("p")
        expect(large).to_have_count(presses)
        expect(page.get_by_role("button", name="Leave the large size")).to_be_visible(visible=bool(presses))
    page.keyboard.press("p")
    page.get_by_role("button", name="Leave the large size").click()
    expect(large).to_have_count(0)
    page.locator(".timeline .stage").press("?")
    page.get_by_label("presentation size").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    page.keyboard.press("p")
    page.locator(".timeline .stage").press("?")
    expect(page.get_by_label("presentation size")).not_to_be_checked()
    expect(large).to_have_count(0)
    page.close()


def test_a_page_that_changes_its_colours_has_its_canvases_drawn_in_them(drawn):
    page = drawn("timeline", schedule.frame(schedules.study(Plan.of(schedule="gpipe", ranks=2, chunks=2))))
    page.wait_for_function("() => document.getElementById('here').shadowRoot.querySelector('canvas').width > 300")
    before = pixels(page)
    page.evaluate("document.documentElement.style.setProperty('--st-text-color', 'rgb(250, 0, 0)'); lockstep.redraw()")
    page.wait_for_function(
        "before => document.getElementById('here').shadowRoot.querySelector('canvas').toDataURL() !== before",
        arg=before,
    )


@pytest.mark.slow
def test_reasons_of_waits_are_told_of_a_moment_and_not_while_it_plays(drawn):
    page = drawn("timeline", timeline.frame(run(Experiment.of({"slow": "2:5", "steps": 12})), "it"))
    status = page.locator(".status")
    page.get_by_role("button", name="Play", exact=True).click()
    page.evaluate(
        "() => { window.heard = []; const status = document.getElementById('here').shadowRoot.querySelector('.status');"
        " new MutationObserver(() => heard.push(status.textContent)).observe(status, { childList: true }); }"
    )
    page.wait_for_function("heard.some((words) => words.includes('wait'))")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(status).to_contain_text("At ")
    played = [words for words in page.evaluate("heard") if not words.startswith("At ")]
    assert played and not any("as long as usual" in words for words in played)


def test_a_slider_changes_what_is_drawn_by_hand_by_keys_and_by_playing(drawn):
    rows = [{"delay": d, "x": x, "y": x * d} for d in (1, 2, 3) for x in (0, 1, 2)]
    page = drawn("curve", figure.frame(rows, Look("x", ("y",), slider="delay"), (), "in words"))
    slider, said = page.get_by_role("slider", name="delay"), page.locator("output")
    expect(said).to_have_text("delay 1")
    page.wait_for_function("() => document.getElementById('here').shadowRoot.querySelector('canvas').width > 300")
    seen = {pixels(page)}
    for key, value in (("ArrowRight", 2), ("End", 3)):
        slider.press(key)
        expect(said).to_have_text(f"delay {value}")
        expect(slider).to_have_attribute("aria-valuetext", f"delay {value}")
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        seen.add(pixels(page))
    assert len(seen) == 3
    page.get_by_role("button", name="Play", exact=True).click()
    expect(said).to_have_text("delay 1")
    expect(said).to_have_text("delay 3")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()


def test_a_figure_is_read_by_keys(drawn):
    rows = [{"net": net, "loss": loss} for net, loss in (("smooth", 1.5), ("ReLU", 2.5))]
    page = drawn("curve", figure.frame(rows, Look("net", ("loss",), kind="bar"), (), "How far?"))
    stage = page.locator(".stage")
    expect(stage).to_have_attribute("aria-label", re.compile("^How far"))
    stage.press("ArrowRight")
    expect(page.locator(".heard")).to_have_text(re.compile("net (smooth: loss 1.5|ReLU: loss 2.5)"))


def saved_as(page, kind: str):
    """The file of a menu entry of the only canvas."""
    page.locator("#here").hover()
    page.get_by_role("button", name="Save", exact=True).click()
    with page.expect_download() as taking:
        page.get_by_role("menuitem", name=kind, exact=True).click()
    return taking.value


def test_a_picture_saved_as_svg_is_xml_with_a_bar_for_every_span_in_view(drawn):
    frame = schedule.frame(schedules.study(Plan.of(schedule="zb_h1", ranks=4, chunks=8)))
    page = drawn("timeline", frame)
    page.wait_for_function("() => document.getElementById('here').shadowRoot.querySelector('canvas').width > 300")
    file = saved_as(page, "SVG")
    assert file.suggested_filename == "zb-h1-4-ranks-8-micro-batches-schedule.svg"
    svg = ElementTree.parse(file.path()).getroot()
    header, columns = unpack(frame)
    kinds = Counter(header["kinds"][kind] for kind in unpack(columns["timeline"].tobytes())[1]["kind"].tolist())
    bars = Counter(one.get("fill") for one in svg.iter("{http://www.w3.org/2000/svg}rect"))
    words = [one.text for one in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert len(kinds) == 4
    for kind, count in kinds.items():
        assert bars[header["look"][kind]["colour"]] == count + 1  # and one in the legend
        assert kind in words
    assert "critical path" in words and "F0" in words
    assert "http" not in ElementTree.tostring(svg).decode().replace("http://www.w3.org/2000/svg", "")


@pytest.mark.slow
def test_the_axis_of_a_run_that_lost_a_rank_ends_with_the_run_though_others_wait_for_ever(drawn):
    done = run(Experiment.of({"crash": "2:0.02"}))
    page = drawn("timeline", timeline.frame(done, "it"))
    page.get_by_role("button", name="end", exact=True).click()
    root = ElementTree.parse(saved_as(page, "SVG").path()).getroot()
    times = [
        one.text for one in root.iter("{http://www.w3.org/2000/svg}text") if re.search(r"[\d.]+ ms$", one.text or "")
    ]
    axis = [float(re.search(r"[\d.]+", text)[0]) for text in times if "at" not in text]
    assert axis[-1] == max(axis) == pytest.approx(1e3 * done.trace.seconds(), abs=0.06) and times[-1].startswith(
        "end, "
    )


@pytest.mark.slow
def test_what_plays_is_saved_as_a_film_and_everything_as_pixels(drawn, made):
    page = drawn("timeline", timeline.frame(made(Experiment(algorithm="easgd", workers=3)), "it"))
    assert saved_as(page, "PNG").path().read_bytes().startswith(b"\x89PNG")
    page.get_by_role("button", name="Speed 1×").click()  # then it takes 5 s
    film = saved_as(page, "Film")
    assert film.suggested_filename == "easgd-digits-3-workers-timeline.webm"
    assert film.path().read_bytes().startswith(b"\x1a\x45\xdf\xa3")  # the mark of WebM


LATE = """() => {
  const button = () => document.getElementById("here").shadowRoot.querySelector(".save > button").textContent;
  window.said = [];
  window.MediaRecorder = class {
    static isTypeSupported() { return true; }
    mimeType = "video/webm";
    start() { this.state = "recording"; setTimeout(() => { said.push(button()); this.onstart(); }, 2500); }
    stop() { said.push(button()); this.ondataavailable({ data: new Blob(["film"]) }); this.onstop(); }
  };
}"""


@pytest.mark.slow
def test_a_film_begins_when_the_machine_records(drawn, made):
    page = drawn("timeline", timeline.frame(made(Experiment(algorithm="easgd", workers=3)), "it"))
    page.evaluate(LATE)
    page.get_by_role("button", name="Speed 1×").click()
    saved_as(page, "Film")
    assert page.evaluate("said") == ["■ 0 of 5 s", "■ 5 of 5 s"]


def follows(page) -> dict:
    """What every canvas shows of the page's clock, by kind of canvas."""
    told = page.evaluate("() => [...lockstepClock.listeners].map((heard) => heard.shows?.()).filter(Boolean)")
    return {one["canvas"]: one for one in told}


def test_curve_timeline_and_topology_show_one_moment(drawn, made):
    run = made(Experiment(algorithm="easgd", workers=3))
    messages, at = run.trace.messages, float(run.trace.messages["sent"][60]) + 1e-4
    page = drawn("timeline", timeline.frame(run, "it"))
    picture = curve.frame(pictures.loss([pictures.Shown("it", run, 0)], "step"), "words")
    page.evaluate(
        "bytes => { const two = document.createElement('div'); document.body.append(two);"
        " lockstep.curve(two, lockstep.bytes(bytes)); }",
        base64.b64encode(picture).decode(),
    )
    page.evaluate("at => lockstepClock.set(at)", at)
    seen = follows(page)
    assert seen["timeline"]["cursor"] == at and seen["timeline"]["from"] <= at <= seen["timeline"]["to"]
    smooth = curves.training(run, "step")[1]
    dots = {dot["name"]: dot["i"] for dot in seen["curve"]["dots"]}
    assert dots["training"] == (smooth.seconds <= at).sum() - 1
    machines = seen["timeline"]["topology"]
    flying = (messages["sent"] < at) & (messages["arrived"] > at)
    ends = sorted(zip(messages["src"][flying].tolist(), messages["dst"][flying].tolist(), strict=True))
    assert machines["seconds"] == at and machines["shape"] == "star" and ends
    assert sorted((bead["src"], bead["dst"]) for bead in machines["beads"]) == ends
    assert all(0 < bead["share"] < 1 for bead in machines["beads"])
    page.get_by_role("button", name="Step", exact=True).click()
    assert follows(page)["timeline"]["cursor"] > at
    page.locator(".status").get_by_text(re.compile("^At ")).wait_for()
    end = run.trace.seconds()
    page.evaluate("at => lockstepClock.set(at)", 0.97 * end)
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function("end => lockstepClock.seconds > 0.999 * end && !lockstepClock.playing", arg=end)
    last = follows(page)
    assert last["curve"]["dots"][0]["i"] == len(smooth.x) - 1
    assert last["timeline"]["to"] > 0.999 * end


def test_that_a_rank_is_lost_its_lane_says_once(drawn):
    page = drawn("timeline", timeline.frame(run(Experiment.of({"crash": "2:0.02"})), "it"))
    page.get_by_role("button", name="end", exact=True).click()
    assert written(page).count("lost") == 2  # the note below its name, and the flag


@pytest.mark.slow
def test_a_lane_says_that_its_rank_is_done_while_others_go_on(drawn):
    done = run(Experiment.of({"algorithm": "easgd", "slow": "2:3", "steps": 20}))
    page = drawn("timeline", timeline.frame(done, "it", view=timeline.View(window=(0, done.trace.seconds()))))
    assert written(page).count("done") == 3  # all workers but the slow one, and not the server, which waits for that
    page.get_by_role("button", name="typical step").click()
    assert "done" not in written(page)


def written(page) -> list[str]:
    """The words of the picture, as it is saved."""
    root = ElementTree.parse(saved_as(page, "SVG").path()).getroot()
    return [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]


def test_at_the_end_of_a_run_the_machines_do_what_the_words_say(drawn):
    page = drawn("timeline", timeline.frame(done := run(Experiment.of({"steps": 5})), "it"))
    page.evaluate("at => lockstepClock.set(at)", done.trace.seconds())
    expect(page.locator(".status")).to_contain_text("worker 0, worker 3: update (sgd) · worker 1, worker 2: nothing.")
    assert follows(page)["timeline"]["topology"]["doing"] == ["update", "nothing", "nothing", "update"]


@pytest.mark.slow
def test_a_timeline_that_plays_at_once_waits_until_the_curtain_before_it_has_opened(drawn):
    frame = timeline.frame(run(Experiment.of({"steps": 5})), "it", play=True)
    page = drawn("timeline", frame)
    page.wait_for_function("lockstepClock.playing")
    playing = page.evaluate(
        """frame => {
          const { documentElement: { classList }, body } = document;
          const close = () => classList.add("opening");
          const open = () => { classList.remove("opening"); dispatchEvent(new Event("opened")); };
          const draw = () => lockstep.timeline(body.appendChild(document.createElement("div")), lockstep.bytes(frame));
          lockstepClock.pause();
          close();
          draw().stop();
          open();
          const seen = [lockstepClock.playing];
          close();
          draw();
          seen.push(lockstepClock.playing);
          open();
          seen.push(lockstepClock.playing);
          lockstepClock.pause();
          close();
          open();
          return [...seen, lockstepClock.playing];
        }""",
        base64.b64encode(frame).decode(),
    )
    assert playing == [False, False, True, False]  # taken away before it opened; behind it; open; paused since


@pytest.mark.slow
def test_the_time_at_the_cursor_is_that_of_the_frame_it_is_drawn_in(drawn, made):
    page = drawn("timeline", timeline.frame(made(Experiment(algorithm="easgd", workers=3)), "it"))
    page.locator(".stage").press("Home")
    page.evaluate(
        """() => {
          const draw = CanvasRenderingContext2D.prototype.fillText, [shown] = lockstepTimelines;
          window.times = [];
          CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
            if (this.canvas.className === "overlay" && shown.clock.playing) times.push([text, shown.moment()]);
            return draw.call(this, text, ...place);
          };
        }"""
    )
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function("() => new Set(times.map(([text]) => text)).size > 5")
    page.get_by_role("button", name="Pause", exact=True).click()
    times = page.evaluate("times")
    assert all(text == moment for text, moment in times)


PLAYED = """() => {
  const [shown] = lockstepTimelines, draw = shown.drawCursor;
  window.frames = [];
  shown.drawCursor = function (...place) {
    draw.apply(this, place);
    const told = this.told(), { playing } = this.clock;
    queueMicrotask(() => playing && frames.push([this.status.textContent, told]));
  };
}"""


def test_the_words_below_a_film_are_those_of_the_frame_they_stand_under(drawn, made):
    page = drawn("timeline", timeline.frame(made(Experiment(algorithm="easgd", workers=3, steps=12)), "it"))
    page.get_by_role("button", name="start", exact=True).click()
    page.evaluate(PLAYED)
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function("() => new Set(frames.map(([words]) => words)).size > 3")
    frames = page.evaluate("frames")
    assert all(words == told for words, told in frames)
    assert any(words.startswith("server 0: ") for words, _ in frames)  # what it does; the cursor says when


def test_a_film_too_fast_to_read_says_how_to_see_what_each_rank_does(drawn, made):
    page = drawn("timeline", timeline.frame(made(Experiment(algorithm="easgd", workers=3)), "it"))
    page.locator(".stage").press("Home")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.locator(".status")).to_have_text("Pause, or zoom in and play, to see what each rank is doing.")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator(".status")).to_contain_text("At ")


def test_ranks_that_all_do_the_same_are_named_once(drawn, made):
    page = drawn("timeline", timeline.frame(made(Experiment(workers=3, steps=4)), "it"))
    page.evaluate("() => { const [shown] = lockstepTimelines; shown.see(0, shown.total / 2); shown.seek(0); }")
    expect(page.locator(".status")).to_contain_text("all 3 workers: ")


@pytest.mark.slow
def test_curves_against_time_and_the_timeline_show_one_window(browser, made, tmp_path):
    runs = [made(Experiment(workers=workers)) for workers in (2, 3)]
    path = tmp_path / "report.html"
    path.write_text(report([Shown(str(n), run, n) for n, run in enumerate(runs)]), "utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_function(
        "() => globalThis.lockstepTimelines?.size === 2 && [...lockstepTimelines].every((one) => one.run)"
    )

    def windows() -> tuple[list, list]:
        """The windows of all timelines, and of all curves, in s."""
        return page.evaluate(
            """() => [[...lockstepTimelines].map(({ from, to }) => [from, to]),
              [...lockstepCurves].map(({ window, frame }) => window && window.x.map((x) => x * frame.x.second))]"""
        )

    before, curves_before = windows()
    lanes = page.locator("#canvas-timeline-0 .stage")
    lanes.press("ArrowRight")
    assert windows()[1] == curves_before == [None, None], "who only moves on still sees the whole loss"
    page.locator("#canvas-loss .stage").scroll_into_view_if_needed()
    box = page.locator("#canvas-loss .stage").bounding_box()
    page.mouse.move(box["x"] + 80, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 160, box["y"] + 90, steps=3)
    page.mouse.up()
    lanes_now, curves_now = windows()
    assert before != lanes_now == [pytest.approx(curves_now[0])] * 2 and curves_now[0] == curves_now[1]
    lanes.press("+")
    assert curves_now != windows()[1] and windows()[1][0] == pytest.approx(windows()[0][0])
    lanes.press("ArrowLeft")
    assert windows()[1][0] == pytest.approx(windows()[0][0])
    shades = "() => [...lockstepCurves].map(({ shade, frame }) => shade && shade.map((x) => x * frame.x.second))"
    for _ in range(9):
        lanes.press("+")
    assert windows()[1] == [None, None], "two points of a line are no curve: it stays whole"
    assert page.evaluate(shades) == [pytest.approx(windows()[0][0])] * 2
    lanes.press("Home")
    assert windows()[1] == [None, None] == page.evaluate(shades)
    page.close()


@pytest.mark.slow
def test_a_timeline_opens_with_the_window_and_the_wait_that_it_is_given_and_tells_them_for_a_link(drawn):
    done = run(Experiment.of({"slow": "2:5", "steps": 12}))
    page = drawn("timeline", timeline.frame(done, "it"))
    page.locator(".stage").press("+")
    page.locator(".stage").press("w")
    page.locator(".stage").press("w")
    page.locator(".stage").press("c")
    why = page.locator(".why").inner_text()
    seen = page.evaluate("[...lockstepTimelines][0].view()")
    assert "Because" in why and seen["why"][2] == 1
    view = timeline.View((seen["from"], seen["to"]), timeline.Unfolded(*seen["why"]), critical=seen["critical"])
    again = drawn("timeline", timeline.frame(done, "it", view=view))
    expect(again.locator(".why")).to_have_text(page.locator(".why").text_content())
    expect(again.get_by_role("button", name="Critical path")).to_have_attribute("aria-pressed", "true")
    now = again.evaluate("(({ from, to }) => [from, to])([...lockstepTimelines][0])")
    assert now == pytest.approx([seen["from"], seen["to"]])
    assert "from" not in drawn("timeline", timeline.frame(done, "it")).evaluate("[...lockstepTimelines][0].view()")


@pytest.mark.slow
def test_the_picture_of_a_race_has_the_machines_of_both_runs(drawn):
    small = {"workload": "quadratic", "steps": 10}
    pair = [
        Shown(name, run(Experiment.of({"algorithm": name, **small})), n) for n, name in enumerate(("easgd", "asgd"))
    ]
    page = drawn("timeline", race.lanes(pair, "it", 0.0))
    page.wait_for_function("() => [...lockstepTimelines][0].topology.surface.width > 0")
    svg = page.evaluate("lockstep.timeline(document.getElementById('here')).svg()")
    words = Counter(one.text for one in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"))
    assert words["easgd"] == words["asgd"] == 1 and words["server 0"] == 2 and words["3"] == 2


@pytest.mark.slow
def test_two_schedules_have_one_clock_and_one_window(drawn):
    plans = [Plan.of(schedule=name, ranks=4, chunks=8) for name in ("1f1b", "zb_h1")]
    one, other = (schedule.frame(schedules.study(plan), 40.0, together="both") for plan in plans)
    page = drawn("timeline", one)
    page.evaluate(
        "bytes => { const two = document.createElement('div'); document.body.append(two);"
        " lockstep.timeline(two, lockstep.bytes(bytes)); }",
        base64.b64encode(other).decode(),
    )
    page.get_by_role("button", name="Zoom in").last.click()
    page.get_by_role("button", name="Step", exact=True).first.click()
    seen = page.evaluate("[...lockstepTimelines].map(({ from, to, cursor }) => [from, to, cursor])")
    assert seen[0] == seen[1] and seen[0][:2] == [10, 30] and seen[0][2] > 10


def test_a_schedule_on_the_axis_of_a_longer_one_is_said_to_be_as_long_as_it_is(drawn):
    study = schedules.study(Plan.of(schedule="zb_h1"))
    own = study.summary["makespan"]
    page = drawn("timeline", schedule.frame(study, 2 * own))
    expect(page.locator(".status")).to_contain_text(f"Showing the schedule, {own:g} units of time")


@pytest.mark.slow
def test_a_schedule_that_another_one_joins_shows_the_axis_of_both(drawn):
    long, short = (schedules.study(Plan.of(schedule=name)) for name in ("1f1b", "zb_interleaved"))
    end = long.summary["makespan"]
    alone, joined, other = (
        base64.b64encode(schedule.frame(study, until, together="both")).decode()
        for study, until in ((short, 0.0), (short, end), (long, end))
    )
    page = drawn("timeline", base64.b64decode(alone))
    page.get_by_role("button", name="Zoom in").click()
    page.evaluate(
        """([joined, other]) => {
          const two = document.body.appendChild(document.createElement("div")), show = lockstep.timeline;
          show(two, lockstep.bytes(other));
          show(document.getElementById("here"), lockstep.bytes(joined));
        }""",
        [joined, other],
    )
    windows = "[...lockstepTimelines].map(({ from, to }) => [from, to])"
    assert short.summary["makespan"] < end and page.evaluate(windows) == [[0, end]] * 2
    page.get_by_role("button", name="Zoom in").first.click()
    page.evaluate("bytes => lockstep.timeline(document.getElementById('here'), lockstep.bytes(bytes))", joined)
    assert page.evaluate(windows) == [[end / 4, 3 * end / 4]] * 2  # drawn again, it stays


def test_a_report_is_read_from_the_disk_without_a_network_on_a_phone_in_the_dark(browser, made, tmp_path):
    run = made(Experiment(workers=32, steps=1000))
    path = tmp_path / "report.html"
    path.write_text(report([Shown("SGD", run, 0)], "http://localhost:8501/"), "utf-8")
    assert path.stat().st_size < 1_000_000
    context = browser.new_context(offline=True, viewport={"width": 390, "height": 844}, color_scheme="dark")
    page, asked, complaints = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    for name in ("loss", "timeline-0"):
        expect(page.locator(f"#canvas-{name} canvas").first).to_be_attached()
    expect(page.get_by_role("link", name="Open it in the workbench")).to_be_visible()
    page.locator("#canvas-timeline-0").get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("menuitem", name="Film of all")).to_be_visible()  # the curves follow the same clock
    assert [one for one in asked if not one.startswith(("file:", "blob:", "data:"))] == [] and not complaints
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 22, 28)"
    context.close()


@pytest.mark.slow
def test_a_small_picture_has_more_on_its_axes_than_a_zero(drawn):
    x = np.arange(1.0, 351.0)
    page = drawn(
        "curve", curve.frame(Picture([Series(x, x, "#1780C4")], Axis("time", 0, 350), Axis("loss", 0, 350)), "")
    )
    for count in (0.5, 1, 1.4, 2):
        marks = page.evaluate(f"[...lockstepCurves].map((one) => one.marks('x', {count}).map(({{ text }}) => text))")
        assert marks == [["0", "200"]], count


@pytest.mark.parametrize(("most", "said"), [(8, "0 2 4 6 8"), (75, "0 20 40 60")])
def test_a_figure_on_a_phone_has_four_numbers_or_more_below_it(drawn, most, said):
    rows = [{"backups": x, "loss": x + 1.0} for x in (0, 1, 2, 4, most)]
    page = drawn("curve", figure.frame(rows, Look("backups", ("loss",)), (), "How far?"))
    along = page.evaluate("""() => {
      const g = document.createElement("canvas").getContext("2d");
      return [...lockstepCurves][0].arrange(g, 358, 340).along.map(({ words }) => words[0]);
    }""")
    assert along == said.split()


def test_a_drag_zooms_both_pictures_along_x_and_a_divergence_has_powers_of_ten(browser, tmp_path):
    """On a page of their own: what is at the marks of an axis, and the windows after a drag on one of two pictures."""
    x = np.arange(1.0, 101.0)
    loss = Picture([Series(x, 10 ** (x / 5), "#1780C4", name="training", ended="diverged")],
                   Axis("step", 0, 100), Axis("loss", 1, 1e20, log=True), together="step")  # fmt: skip
    accuracy = replace(loss, y=Axis("accuracy", 0, 100, "%"), series=[Series(x, x, "#1780C4", name="accuracy")])
    frames = [base64.b64encode(curve.frame(one, "")).decode() for one in (loss, accuracy)]
    words = "".join(
        f'lockstep.curve(add("{name}"), lockstep.bytes("{data}"));' for name, data in zip("ab", frames, strict=True)
    )
    path = tmp_path / "two.html"
    path.write_text(
        f"""<!doctype html><meta charset="utf-8"><script>{canvases.script()}</script><body><script>
const add = (id) => Object.assign(document.body.appendChild(document.createElement("div")), {{ id }});
{words}</script>""",
        "utf-8",
    )
    page = browser.new_page()
    page.goto(path.as_uri())
    marks = "[...lockstepCurves].map((one) => one.marks('y', 5).map(({ text }) => text))"
    assert "10²⁰" in page.evaluate(marks)[0]
    box = page.locator("#a .stage").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 420, box["y"] + 160, steps=3)
    page.mouse.up()
    seen = page.evaluate(
        "[...lockstepCurves].map((one) => [one.axis('x'), one.axis('y')].map(({ from, to }) => [from, to]))"
    )
    (x0, x1), (y0, y1) = seen[1]
    assert seen[0][0] == [x0, x1] and 0 < x0 < x1 < 100
    assert y0 < math.ceil(x0) and y1 > math.floor(x1) and y1 - y0 < 1.3 * (x1 - x0)  # y fits what is seen
    page.close()


@pytest.mark.slow
def test_a_run_that_diverges_opens_where_it_leaves_the_picture_and_says_so_afterwards(drawn):
    e = Experiment.of({"algorithm": "easgd", "pull": 2, "workload": "spirals", "points": 400, "hidden": "8"})
    done = run(e)
    learned = replay.learn(e, done.summary["digest"])
    page = drawn("landscape", landscape.frame(done, learned, "it"))
    said = page.locator(".status")
    expect(said).to_contain_text(re.compile(r"^At .* distance of the .* to the worker farthest from it: "))
    slider = page.get_by_role("slider", name="Moment of the run")
    assert 0 < int(slider.input_value()) < 1000
    slider.press("End")
    expect(said).to_contain_text(f"left this picture after {units.seconds(learned.blown)}")


def test_how_a_run_learned_is_scrubbed_by_the_clock_of_the_page(drawn):
    e = Experiment.of({"algorithm": "easgd", "workload": "spirals", "points": 400, "hidden": "8", "steps": 12})
    done = run(e)
    page = drawn("landscape", landscape.frame(done, replay.learn(e, done.summary["digest"]), "it"))
    expect(page.locator(".stage")).to_have_attribute("aria-label", re.compile("Springs tie each replica to the centre"))
    slider, said = page.get_by_role("slider", name="Moment of the run"), page.locator(".status")
    expect(said).to_contain_text(f"accuracy {100 * done.summary['accuracy']:.1f} %")  # it opens at the end
    assert page.evaluate("[...lockstepCanvases].map((one) => one.moves > 0)") == [True]  # so it is in a film of all
    end = pixels(page)
    slider.press("Home")
    expect(said).to_contain_text(f"At 0 s · held-out loss {done.evaluations['loss'][0]:.3g}")
    assert page.evaluate("lockstepClock.seconds") == 0
    page.wait_for_function(
        "before => document.getElementById('here').shadowRoot.querySelector('canvas').toDataURL() !== before", arg=end
    )
    page.evaluate(f"lockstepClock.set({done.summary['seconds']})")
    expect(said).to_contain_text(f"accuracy {100 * done.summary['accuracy']:.1f} %")
    page.get_by_role("button", name="Step back").click()
    expect(slider).not_to_have_attribute("aria-valuetext", re.compile("^0 s"))


@pytest.mark.slow
def test_workers_that_stand_on_the_model_are_said_to_and_words_stand_beside_a_picture_that_has_room(drawn):
    e = Experiment.of({"steps": 6})
    done = run(e)
    page = drawn("landscape", landscape.frame(done, replay.learn(e, done.summary["digest"]), "it"))
    page.set_viewport_size({"width": 1600, "height": 900})
    expect(page.locator(".status")).to_contain_text("on this plane all workers stand where the model does.")
    expect(page.locator(".about")).to_contain_text("Dots at the same point are spread around it")
    stage, words = (page.locator(one).bounding_box() for one in (".stage", ".about"))
    assert words["x"] > stage["x"] + stage["width"] and words["y"] < stage["y"] + stage["height"]


SPY = """() => {
  const pen = CanvasRenderingContext2D.prototype, { fillText, arc, fillRect } = pen;
  window.spied = { texts: [], begins: [], squares: [], below: [] };
  pen.fillText = function (...all) {
    spied.texts.push(all[0]);
    if (!spied.squares.length) spied.below.push(all);
    return fillText.apply(this, all);
  };
  pen.arc = function (...all) { if (all[2] === 2.5) spied.begins.push(all.slice(0, 2)); return arc.apply(this, all); };
  pen.fillRect = function (...all) {
    if (all[2] === all[3] && all[2] > 100) spied.squares.push(all);
    return fillRect.apply(this, all);
  };
}"""
"""Note the words that canvases draw, those before a lens with their places, where paths begin, and squares as large as
a lens."""


def spied(page, seconds: float) -> dict:
    """Return what SPY noted while the page was drawn again, for this moment."""
    expect(page.locator(".status")).to_contain_text("At ")
    page.evaluate(SPY)
    page.evaluate(f"lockstepClock.set({seconds})")
    page.wait_for_function("spied.texts.some((text) => text.startsWith('→'))")
    return page.evaluate("spied")


@pytest.mark.slow
def test_a_lens_hides_no_beginning_and_no_number_and_magnifies_no_rounding_difference(drawn):
    e = Experiment.of({"algorithm": "easgd", "slow": "1:5", "steps": 60, "network": "1GbE"})
    done = run(e)
    learned = replay.learn(e, done.summary["digest"])
    seen = spied(drawn("landscape", landscape.frame(done, learned, "it")), done.trace.seconds() * 0.9)
    ((left, top, size, _),) = {tuple(square) for square in seen["squares"]}
    assert any(text.startswith("× ") for text in seen["texts"]) and len(seen["begins"]) > 4
    whole = seen["begins"][: len(seen["begins"]) // 2]  # the others are seen through the lens
    assert not [at for at in whole if left < at[0] < left + size and top < at[1] < top + size]
    numbers = [(x, y) for text, x, y, *_ in seen["below"] if re.fullmatch(r"[\d.]+", text)]  # of contours
    assert numbers and not [
        (x, y) for x, y in numbers if left - 20 < x < left + size + 20 and top - 7 < y < top + size + 7
    ]
    e = Experiment(workload="quadratic")  # it converges to the last digits
    done = run(e)
    learned = replay.learn(e, done.summary["digest"])
    seen = spied(drawn("landscape", landscape.frame(done, learned, "it")), done.trace.seconds() * 0.9)
    assert not seen["squares"] and not any(text.startswith("× ") for text in seen["texts"])


def at(page, seconds: float):
    """Set the clock of the page's timeline."""
    page.evaluate("seconds => [...lockstepTimelines][0].clock.set(seconds)", seconds)


def test_a_guess_is_a_question_mark_then_wrong_then_right_as_the_clock_moves(drawn):
    done = run(Experiment.of({"steps": 200}))
    found, seconds = done.guesses, done.evaluations["seconds"][done.guesses.model]
    right = found.guess == found.answer
    turned = next(n for n in range(9) if not right[0, n] and right[-1, n])  # a digit that is learned later
    page = drawn("timeline", timeline.frame(done, "it"))
    cell = page.locator(".guess").nth(turned)
    at(page, 0)
    expect(cell).to_have_text("?")
    at(page, seconds[0] * 1.0001)
    expect(cell).to_have_text(f"✗ {found.guess[0, turned]}")
    expect(page.locator(".said")).to_contain_text(f"{right[0].sum()} of these 9")
    expect(page.locator(".said")).to_contain_text(f"{found.answer[turned]} is taken for {found.guess[0, turned]}")
    at(page, done.trace.seconds())
    expect(cell).to_have_text(f"✓ {found.answer[turned]}")
    expect(page.locator(".said")).to_contain_text(f"{right[-1].sum()} of these 9")


def test_while_it_plays_the_words_of_learning_are_those_of_the_moment_however_busy_the_machine_is(drawn):
    done = run(Experiment.of({"steps": 200}))
    page = drawn("timeline", timeline.frame(done, "it"))
    page.evaluate("""() => {
      const [t] = [...lockstepTimelines], { said } = t.learned;
      window.noted = [];
      const look = () => {
        if (lockstepClock.playing) {
          const now = t.learned.now(), { at } = t.learned.frame, until = performance.now() + 60;
const text = said.textContent.replaceAll("\\u00a0", " ");
          noted.push(text.startsWith(`Evaluated at ${t.inTime(at[now])}: `) && at[now] <= t.cursor + t.total * 1e-6);
          while (performance.now() < until); // busy
        }
        requestAnimationFrame(look);
      };
      look();
    }""")
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function("noted.length > 15")
    assert all(page.evaluate("noted")[1:])  # the first is noted before the clock has started


def test_below_the_machines_stands_what_fills_them(drawn):
    page = drawn("timeline", timeline.frame(done := run(Experiment.of({"steps": 5})), "it"))
    assert "colours: shares of the time in view" in written(page)
    page.evaluate("at => lockstepClock.set(at)", done.trace.seconds() / 2)
    assert "filled: how much of its present work a worker has done" in written(page)


def test_the_text_that_a_model_writes_changes_with_the_clock(drawn):
    done = run(Experiment.of({"workload": "text", "steps": 6, "workers": 2, "evaluations": 3}))
    page = drawn("timeline", timeline.frame(done, "it"))
    for model, seconds in zip(done.guesses.guess[:, 0], done.evaluations["seconds"][done.guesses.model], strict=True):
        at(page, seconds * 1.0001)
        expect(page.locator(".guesses b")).to_have_text(model.replace("\n", "↵"), use_inner_text=False)


def test_the_line_of_learning_is_a_slider_on_the_clock(drawn):
    done = run(Experiment.of({"steps": 40}))
    tried = done.evaluations["seconds"]
    page = drawn("timeline", timeline.frame(done, "it"))
    line = page.get_by_role("slider")
    expect(line).to_have_attribute("aria-valuetext", re.compile("^At the end of the run: "))
    line.focus()
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert page.evaluate("[...lockstepTimelines][0].cursor") == pytest.approx(tried[3], rel=1e-5)
    expect(line).to_have_attribute("aria-valuetext", re.compile(r"held-out digits right, held-out loss "))
    box = line.bounding_box()
    page.mouse.move(box["x"] + 84 + (box["width"] - 88) / 2, box["y"] + 20)
    page.mouse.down()
    assert page.evaluate("[...lockstepTimelines][0].cursor") == pytest.approx(done.trace.seconds() / 2, rel=0.01)
    page.mouse.up()
    page.keyboard.press("Escape")
    expect(page.locator(".said")).to_contain_text("At the end of the run: ")


@pytest.mark.slow
def test_below_the_lanes_nothing_moves_while_the_clock_does(drawn):
    done = run(Experiment.of({"steps": 40}))
    page = drawn("timeline", timeline.frame(done, "it"))
    for width in (1100, 860, 390):
        page.set_viewport_size({"width": width, "height": 700})
        heights = set()
        for share in np.linspace(0, 1, 12):
            at(page, share * done.trace.seconds())
            heights.add(page.locator(".learned").bounding_box()["height"])
        assert len(heights) == 1, width


def test_points_are_drawn_with_the_classes_around_them_as_they_are_learned(drawn):
    done = run(Experiment.of({"workload": "spirals", "steps": 60}))
    page = drawn("timeline", timeline.frame(done, "it"))
    pictures = set()
    for share in (0, 0.3, 1):
        at(page, share * done.trace.seconds())
        pictures.add(page.locator(".guesses canvas").evaluate("canvas => canvas.toDataURL()"))
    assert len(pictures) == 3
