"""The page of kernels, driven without a browser. What it shows as measured lies in the store already."""

import json
import time
from dataclasses import asdict

import pytest
from streamlit.testing.v1 import AppTest

import kernels
from app import charts
from app.views import kernels as view
from experiments.catalogue import KERNELS
from experiments.measure import kernel_times
from experiments.measure.kernel_times import Peaks, Report, Row


def script():
    from app.views import kernels

    kernels.page()


@pytest.fixture
def page(folders):
    """page(name=value, ...) is the page as it opens with that link."""

    def opened(**link):
        test = AppTest.from_function(script, default_timeout=300)
        for name, value in link.items():
            test.query_params[name] = str(value)
        return test.run()

    return opened


def report(*names, gpu=None):
    rows = [Row(name, "updates", 1000, 2000.0, 12000.0, numpy=4e-6, cpu=1e-6, torch=2e-6) for name in names]
    return Report(tuple(rows), Peaks(5e10, 1e10, 2e10), gpu, "a machine", "2026-01-01T12:00+00:00")


@pytest.fixture
def measured(folders):
    """measured(names, n) puts a report where the page finds it."""

    def put(names, n):
        job_spec = kernel_times.job_spec(names, n)
        text = json.dumps(asdict(report(*names)))
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
    assert any("m &lt;- b1 m" in element.value or "m <- b1 m" in element.value for element in opened.code)
    assert "<td>1 µs</td><td>4 ×</td><td>2</td><td>12</td><td>60.0 %</td>" in table(opened)
    assert any("2,000 FLOPs and 12 kB a call" in element.value for element in opened.caption)
    assert len(opened.get("plotly_chart")) == 1


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


def test_what_is_not_measured_yet_is_measured_by_the_pool(page):
    opened = page(kernel="forget", numbers=1000)
    until = time.monotonic() + 300
    while not opened.get("plotly_chart") and time.monotonic() < until:
        assert not opened.exception and not opened.error
        time.sleep(0.2)
        opened.run()
    assert "Numba" in table(opened)


@pytest.mark.parametrize("link", [{"kernel": "../../etc/passwd"}, {"kernel": "<b>"}, {"numbers": 10**12}])
def test_a_link_to_a_kernel_that_is_not_there_opens_the_first(page, measured, link):
    measured(["sgd"], kernel_times.SIZE)
    opened = page(**link)
    assert not opened.exception and opened.selectbox("kernel").value == kernels.FAMILIES["updates"][0]


def test_the_roof_of_a_gpu_is_drawn_where_there_is_one():
    one = charts.roofline(report("sgd"), "sgd")
    two = charts.roofline(report("sgd", gpu=Peaks(5e13, 3e12, 3e12)), "sgd")
    assert len(two.data) == len(one.data) + 2
    assert any("GPU" in trace.name for trace in two.data)
