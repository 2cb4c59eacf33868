"""The page of kernels, driven without a browser. What it shows as measured lies in the store already."""

import json
import time
from dataclasses import asdict, replace
from urllib.parse import urlencode

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import kernels
from app import charts
from app.kernel_pages import kernels as view
from experiments.measure import kernel_times, warps
from experiments.measure.kernel_times import Peaks, Report, Row
from experiments.specification.catalogue import KERNELS
from tests.patience import PATIENCE, wait_until
from tests.system.app.finish import finish

PEAKS = Peaks(5e10, ((4_000, 4e10), (8_000, 2e10), (2**28, 1e10)), (("L1 cache", 4_000), ("L2 cache", 64_000)))


def script():
    from app.kernel_pages import kernels

    kernels.page()


@pytest.fixture
def page(folders):
    """page(name=value, ...) is the page as it opens with that link."""

    def opened(**link):
        test = AppTest.from_function(script, default_timeout=PATIENCE)
        for name, value in link.items():
            test.query_params[name] = str(value)
        return test.run()

    return opened


def report(*names, gpu=None):
    rows = [Row(name, "updates", 1000, 2000.0, 12000.0, 8000.0, numpy=4e-6, cpu=1e-6, torch=2e-6) for name in names]
    return Report(tuple(rows), PEAKS, gpu, "a machine", "2026-01-01T12:00+00:00")


@pytest.fixture
def watched(folders):
    """watched(name, n) puts a kernel's launches where the page finds them."""
    return lambda name, n: warps.job_spec(name, n).perform(folders)


@pytest.fixture
def measured(folders, watched):
    """measured(names, n) puts a report where the page finds it."""

    def put(names, n, measurement=1, **differently):
        if len(names) == 1:
            watched(names[0], warps.SIZES[1])
        job_spec = kernel_times.job_spec(names, n, measurement)
        made = report(*names)
        rows = tuple(replace(row, cpu=differently.get("cpu", row.cpu)) for row in made.rows)
        text = json.dumps(asdict(replace(made, rows=rows, cpu=differently.get("peaks", made.cpu))))
        return job_spec.keep(folders, lambda folder: (folder / kernel_times.FILE).write_text(text))

    return put


def table(page) -> str:
    return next(element.value for element in page.get("html") if "<table>" in element.value)


@pytest.mark.parametrize("name", kernel_times.names())
def test_the_parts_of_a_kernel_are_its_whole_file(name):
    source = view.read.__wrapped__(name)
    text = KERNELS[name].source
    assert source.reference.startswith("def reference(")
    assert "def cpu(" in source.cpu + source.shared and "def gpu(" in source.gpu + source.shared
    assert "Price" in source.theory and ("FLOPS" in source.price or "def price(" in source.price)
    shown = "".join((source.price, source.reference, source.shared, source.cpu, source.gpu))
    assert shown.count("def ") == text.partition('"""\n\n')[2].count("def ")


def test_a_formula_that_both_implementations_share_is_shown_once():
    adam = view.read.__wrapped__("adam")
    assert "def element(" in adam.shared and "def element(" not in adam.cpu + adam.gpu + adam.reference
    assert "@cuda.jit\ndef _launch(" in adam.gpu


def test_a_kernel_is_shown_with_its_source_its_price_and_its_times(page, measured):
    measured(["adam"], 1000)
    opened = page(kernel="adam", numbers=1000)
    assert not opened.exception and not opened.error
    assert any("def cpu(w, m, v, g, t" in element.value for element in opened.code)
    (formula,) = opened.latex
    assert r"m \leftarrow b_{1}\,m" in formula.value and r"\frac" in formula.value
    assert r"\eta" in formula.value
    assert "η is the learning rate, rate in the code" in [one.value for one in opened.caption]
    assert not any("m <- b1 m" in element.value for element in opened.code)
    assert "<td>1 µs</td><td>4 ×</td><td>2</td><td>12</td><td>60.0 %</td>" in table(opened)
    assert any("2,000 FLOPs and 12 kB per call" in element.value for element in opened.caption)
    assert any(element.value.endswith("a machine, 1 January 2026, 12:00.") for element in opened.caption)
    assert len(opened.get("plotly_chart")) == 1


def test_a_newcomer_is_told_what_a_kernel_is_and_asked_a_first_question(page, measured):
    measured(["sgd"], kernel_times.SIZE)
    assert any("A first question" in one.value for one in page(kernel="sgd").markdown)


def test_the_roof_says_what_it_is_and_where_the_numbers_lie(page, measured):
    measured(["adam"], 1000)
    (said,) = [element.value for element in page(kernel="adam", numbers=1000).caption if "roof" in element.value]
    assert said.startswith("Its working set is 8 kB, in L2 cache.") and "is the 20 GB/s that loops" in said


def test_a_kernel_of_high_intensity_has_the_matrix_product_for_a_roof():
    row = Row("dense_forward", "layers", 1000, 1e6, 12000.0, 8000.0, cpu=1e-3)
    assert "is the 50 GFLOP/s of a matrix product" in view._roof(row, PEAKS)


def test_where_caches_are_unknown_the_roof_still_names_the_size():
    row = Row("sgd", "updates", 1000, 2000.0, 12000.0, 8000.0, cpu=1e-6)
    assert view._roof(row, Peaks(PEAKS.flops, PEAKS.streams)).startswith("Its working set is 8 kB. ")


def test_kernels_are_offered_by_title_and_stand_in_the_address_by_name(page, measured):
    measured(["dense_forward"], kernel_times.SIZE)
    measured(["adam"], kernel_times.SIZE)
    opened = page(kernel="dense_forward")
    assert "# Dense forward" in [one.value for one in opened.markdown]
    assert urlencode(opened.query_params, doseq=True) == "kernel=dense_forward"
    assert "Adam · adam" in opened.selectbox("kernel").options
    opened.selectbox("kernel").select("adam").run()
    assert urlencode(opened.query_params, doseq=True) == "kernel=adam" and not opened.exception


def test_every_kernel_has_a_title_of_its_own_from_its_file():
    titles = {name: KERNELS[name].title for name in KERNELS}
    assert titles["row_largest"] == "Row maximum" and titles["delay_compensated"] == "Delay compensation (DC-ASGD)"
    assert len({*titles.values()}) == len(titles) and max(map(len, titles.values())) < 45


def test_a_formula_with_words_in_it_stays_plain(page, measured):
    measured(["kth_largest"], kernel_times.SIZE)
    opened = page(kernel="kth_largest")
    assert not opened.latex and any("cut <- the k-th of |v|" in element.value for element in opened.code)


def test_another_kernel_is_another_measurement(page, measured):
    measured(["adam"], 1000)
    measured(["sgd"], 1000)
    opened = page(kernel="adam", numbers=1000)
    opened.selectbox("kernel").select("sgd").run()
    assert opened.markdown[0].value != "" and any("def cpu(w, g, learning_rate)" in e.value for e in opened.code)
    assert not opened.exception


def test_once_all_kernels_are_measured_they_are_all_in_the_picture(page, measured):
    measured(kernel_times.names(), 10_000)
    opened = page(kernel="adam", numbers=10_000)
    spec = json.loads(opened.get("plotly_chart")[0].proto.spec)
    numba = next(trace for trace in spec["data"] if trace["name"] == "Numba")
    assert len(numba["customdata"]) == len(kernel_times.names())
    assert not [button for button in opened.button if button.key == "all"]


def test_what_was_measured_again_is_shown_with_how_far_the_measurements_differ(page, measured):
    measured(["ema"], 1000)
    assert not any("measurements" in one.value for one in page(kernel="ema", numbers=1000).caption)
    measured(["ema"], 1000, 2, cpu=8e-6)
    opened = page(kernel="ema", numbers=1000)
    assert "<td>8 µs</td><td>0.5 ×</td>" in table(opened)
    (said,) = [one.value for one in opened.caption if "measurements" in one.value]
    assert said == "The newest of 2 measurements: in Numba a call took 1 µs to 8 µs."
    measured(["ema"], 1000, 3, peaks=Peaks(PEAKS.flops, tuple((size, 2 * rate) for size, rate in PEAKS.streams)))
    (said,) = [one.value for one in page(kernel="ema", numbers=1000).caption if "measurements" in one.value]
    assert "The roof itself differed by 100.0 % between these" in said


@pytest.mark.slow
def test_a_kernel_is_measured_again_by_the_pool_while_its_last_times_stay(page, measured):
    measured(["clip"], 1000)
    opened = page(kernel="clip", numbers=1000)
    opened.button("measure-again").click().run()
    while not any("The newest of 2 measurements" in one.value for one in opened.caption):
        assert not opened.exception and not opened.error and table(opened)
        time.sleep(0.2)
        opened.run()
    wait_until(lambda: not opened.run().button("measure-again").disabled)


def test_what_is_not_measured_yet_is_measured_by_the_pool(page):
    opened = finish(page(kernel="forget", numbers=1000))
    assert opened.get("plotly_chart") and "Numba" in table(opened) and not opened.error


@pytest.mark.parametrize("link", [{"kernel": "../../etc/passwd"}, {"kernel": "<b>"}, {"numbers": 10**12}])
def test_a_link_to_a_kernel_that_is_not_there_opens_the_first(page, measured, link):
    measured(["sgd"], kernel_times.SIZE)
    opened = page(**link)
    assert not opened.exception and opened.selectbox("kernel").value == kernels.FAMILIES["updates"][0]


def test_the_roof_of_a_gpu_is_drawn_where_there_is_one():
    one = charts.roofline(report("sgd"), "sgd")
    two = charts.roofline(report("sgd", gpu=Peaks(5e13, ((8_000, 3e12), (2**28, 3e12)))), "sgd")
    assert len(two.data) == len(one.data) + 1  # where all is equally near, one roof says it
    assert any("GPU" in trace.name for trace in two.data)


def test_the_solid_roof_is_that_of_the_chosen_kernel_and_no_kernel_lies_above_the_nearest_cache():
    drawn = charts.roofline(report("sgd", "adam"), "sgd").data
    roofs = {trace.line.dash: trace for trace in drawn if trace.mode == "lines" and "memory" not in trace.name}
    assert roofs["solid"].name == "roof of the CPU, 8 kB in L2 cache"
    assert roofs["dot"].name == "roof of the CPU, 4 kB in L1 cache"
    assert all(roofs["solid"].y <= roofs["dot"].y)
    (numba,) = [trace for trace in drawn if trace.name == "Numba"]
    assert list(numba.text) == ["60.0 % of its roof"] * 2


def test_the_chosen_kernel_and_the_extremes_are_named_in_the_picture_and_no_other():
    known = {"sgd": (2e3, 1e-6), "adam": (8e3, 1e-6), "ema": (3e3, 9e-6), "dot": (9e3, 3e-6), "clip": (4e3, 2e-6)}
    row = report("sgd").rows[0]
    rows = [replace(row, kernel=name, flops=flops, cpu=cpu) for name, (flops, cpu) in known.items()]
    drawn = charts.roofline(replace(report("sgd"), rows=tuple(rows)), "clip")
    named = {one.text: (one.x, one.y) for one in drawn.layout.annotations}
    titles = {"clip", "adam", "ema", "dot", "sgd"}  # chosen, highest, lowest, rightmost, leftmost
    assert {*named} == {KERNELS[name].title for name in titles}
    more = replace(row, kernel="momentum", flops=5e3, cpu=2e-6)
    drawn = charts.roofline(replace(report("sgd"), rows=(*rows, more)), "clip")
    assert {one.text for one in drawn.layout.annotations} == {*named}
    assert named["Adam"] == pytest.approx((np.log10(8 / 12), np.log10(8)))


def block(page) -> str:
    return "".join(element.value for element in page.get("html") if "watched-" in element.value)


def test_a_reader_steps_through_a_block_thread_by_thread(page, measured):
    measured(["norms"], kernel_times.SIZE)
    opened = page(kernel="norms")
    assert "<b>Warps 0…7</b>: 32 threads read edges[0], 1 segment of 128 bytes, the same number for all." in block(
        opened
    )
    assert '<div class="at"><b>warps 0…7</b><code>        for i in range(edges[r]' in block(opened)
    (moment,) = [slider for slider in opened.slider if slider.label == "Moment"]
    opened = moment.set_value(6).run()
    assert not opened.exception
    assert "<b>Warp 0</b>: 16 threads read scratch[0…15], in shared memory" in block(opened)
    assert "16 wait at another line: the warp has diverged." in block(opened)
    assert "<b>Warps 1…7</b>: 32 threads at the barrier." in block(opened)
    row = block(opened).partition("<span>warp 0</span>")[2].partition("</div>")[0]
    assert (row.count("does-reads"), row.count("does-elsewhere")) == (16, 16)
    assert "scratch in shared memory" in block(opened)


def test_a_warp_that_is_done_is_told_from_one_that_never_had_anything_to_do(page, measured):
    measured(["sgd"], kernel_times.SIZE)
    assert "<b>Warps 4…7</b>: nothing to do in this launch." in block(page(kernel="sgd"))
    measured(["norms"], kernel_times.SIZE)
    opened = page(kernel="norms")
    (moment,) = [slider for slider in opened.slider if slider.label == "Moment"]
    opened = moment.set_value(moment.max).run()
    assert "<b>Warps 1…7</b>: nothing left to do." in block(opened) and not opened.exception


def test_the_size_of_a_call_has_separators_on_its_slider_and_none_in_the_address(page, measured):
    measured(["sgd"], 1_000_000)
    opened = page(kernel="sgd", numbers=1_000_000)
    (sizes,) = opened.select_slider
    assert sizes.value == 1_000_000 and "100,000" in sizes.options
    assert opened.query_params["numbers"] == "1000000"


def test_a_launch_among_several_and_another_size_can_be_watched(page, measured, watched):
    watched("threshold", 33)
    measured(["threshold"], kernel_times.SIZE)
    opened = page(kernel="threshold")
    (launch,) = [box for box in opened.selectbox if box.label == "Launch"]
    assert launch.options == ["1 of 2: _count", "2 of 2: _write"] and "def _count(" in block(opened)
    opened = opened.button_group(key="watched-numbers").set_value(33).run()
    assert "<b>Warp 1</b>: 1 thread reads v[32], 1 segment" in block(opened)
    opened = opened.selectbox(key="launch-threshold").select_index(1).run()
    assert not opened.exception and "def _write(" in block(opened) and "def scan(" in block(opened)
