"""Constants of one's own GPU: the file between `fit --gpu` and `plan`, what is measured, and what the planner says."""

import json
from dataclasses import replace

import click
import pytest

from cluster.real import gpus
from experiments.cli import fit_gpu
from experiments.cli.main import main
from experiments.measure.gpu_file import CONSTANTS, read_gpu, write_gpu
from experiments.measure.gpu_times import GpuSizes, measure_gpu
from experiments.study import layouts
from experiments.study.layouts import Request
from tests.quotes import quote
from theory.planner.measured import MeasuredGpu
from theory.planner.measured import fit_gpu as fit
from theory.planner.setup import GPUS

PEAKS = GPUS["B200"].half, GPUS["B200"].bandwidth, GPUS["B200"].memory
B200 = MeasuredGpu("B200", *PEAKS, products=0.71, traffic=2.9, memory=0.8, errors={"products": 0.01, "traffic": 0.2})
LARGE = Request("llama-3-70b", gpus=64, batch="4M-tokens", device="B200")
OWN = 'device = "L40S"\n[peaks]\nhalf = 362e12\nbandwidth = 864e9\nmemory = 48e9\n[constants]\nproducts = 0.7\n'


@pytest.fixture
def write(tmp_path):
    def to_file(text):
        path = tmp_path / "gpu.toml"
        path.write_text(text, "utf-8")
        return str(path)

    return to_file


def words(request):
    return " ".join(layouts.remarks(layouts.find_layouts(request)))


def test_the_file_says_what_was_measured(write):
    full = replace(B200, attention=0.6, link=7e11, network=4e10, hop=5e-6, source="Measured on a machine.")
    assert read_gpu(write(write_gpu(full))) == replace(full, source="gpu.toml")
    assert read_gpu(write(write_gpu(B200))) == replace(B200, source="gpu.toml")


def test_two_numbers_written_by_hand_are_enough(write):
    one = read_gpu(write('device = "b200"\n[constants]\nproducts = 0.75\nmemory = 0.8\n'))
    assert one == MeasuredGpu("B200", *PEAKS, products=0.75, memory=0.8, source="gpu.toml")
    assert "[constants] with products = 0.75 and memory = 0.8" in fit_gpu.NO_GPU


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("device = ", "is not TOML; lockstep fit --gpu"),
        ("[constants]\nproducts = 1\n", "names no GPU"),
        ('device = "H100"\n', "has no constants; add a section [constants]"),
        ('device = "H100"\nproducts = 1\n', "has 'products'; use device, [peaks]"),
        ('device = "H100"\nconstants = 1\n', "constants is '1'; write a section [constants]"),
        ('device = "H100"\n[constants]\nproducts = 74\n', "products in [constants] is 74; write … from 0.001 to 1"),
        ('device = "H100"\n[constants]\nproducts = nan\n', "is nan; write"),
        ('device = "H100"\n[constants]\nproducts = true\n', "is True; write"),
        ('device = "H100"\n[constants]\nproducts = "0.7"\n', "is '0.7'; write"),
        ('device = "H100"\n[constants]\nlink = 400\n', "link in [constants] is 400; write … from 1e+06 … bytes/s"),
        ('device = "H100"\n[peaks]\nmemory = 80\n[constants]\nlink = 1e9\n', "memory in [peaks] is 80; write"),
        ('device = "H100"\n[constants]\nlink = 1e9\n' + "#" * 100_000 + "\nhop = 2", "more than 100,000 bytes"),
        ('device = "H100"\n[constants]\nspeed = 1\n', "[constants] has 'speed'; use products"),
        ('device = "H100"\n[constants]\nhop = 1\n[errors]\nhop = -1\n', "hop in [errors] is -1; write … at least 0"),
        (
            'device = "L40S"\n[constants]\nproducts = 0.7\n',
            "is for 'L40S', which … add a section [peaks] with half = ...",
        ),
    ],
    ids=lambda one: one[:40],
)
def test_a_file_that_makes_no_sense_is_refused_in_a_sentence(write, text, told):
    with pytest.raises(ValueError, match=quote(told)):
        read_gpu(write(text))


@pytest.mark.parametrize("name", ["none.toml", ".", ""])
def test_a_file_that_cannot_be_read_is_refused_in_a_sentence(tmp_path, monkeypatch, name, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["plan", "--constants", name]) == 2
    assert "cannot be read: " in (told := capsys.readouterr().err) and "lockstep fit --gpu" in told


def test_a_file_may_begin_with_a_byte_order_mark(write):
    assert read_gpu(write('\ufeffdevice = "H100"\n[constants]\nlink = 1e11\n')).link == 1e11


def test_a_gpu_that_the_planner_does_not_list_is_named_in_any_case():
    own = MeasuredGpu("L40S", 362e12, 864e9, 48e9, products=0.7, link=2.5e10, network=1e10)
    assert layouts.find_layouts(Request("llama-3-8b", gpus=16, device="l40s", constants=own)).device == "L40S"


@pytest.mark.parametrize("name", ["missing/gpu.toml", "."])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(tmp_path, name):
    with pytest.raises(click.ClickException, match="cannot be written"):
        fit_gpu.check_file(tmp_path / name)
    fit_gpu.check_file(tmp_path / "new.toml")
    assert not [*tmp_path.iterdir()]


def test_a_peak_that_operations_exceed_is_refused_since_it_is_not_this_gpus():
    fit_gpu.check_shares(B200)
    with pytest.raises(
        click.ClickException, match=quote("rate of memory is 1.20 times the peak of … with --bandwidth")
    ):
        fit_gpu.check_shares(replace(B200, memory=1.2))


@pytest.mark.parametrize("words", [["plan", "--price", "nan"], ["plan", "--price", "inf"], ["fit", "--peak", "nan"]])
def test_a_number_that_is_none_is_refused(words, capsys):
    assert main(words) == 2
    assert f"{words[2]!r} is not a number; allowed: " in capsys.readouterr().err


def test_constants_of_a_known_clock_are_found_again_from_the_operations_that_are_timed():
    small = GpuSizes(((8, 8, 8), (8, 16, 8), (16, 16, 8)), (4, 8), 32, ((1, 8), (2, 8)), 2, 4)
    half, bandwidth = 1e12, 1e11
    clock = [2 * m * n * q / (0.7 * half) + 2.5 * 2 * (m * n + n * q + m * q) / bandwidth for m, n, q in small.products]
    clock += [arrays * 2 * rows * 32 / (0.8 * bandwidth) for rows in (4, 8) for arrays in (3, 2, 2)]
    clock += [4 * sequences * 8**2 / 2 * (2 * 4) / (0.6 * half) for sequences in (1, 2)]
    done, waiting = [], iter(clock)

    def timer(once):
        done.append(once())
        return next(waiting)

    timings = measure_gpu("cpu", timer, timer, small)
    assert [tuple(out.shape) for out in done[:3]] == [(8, 8), (8, 16), (16, 16)] and len(done) == len(clock)
    found = fit("own", half, bandwidth, timings)
    assert (found.products, found.traffic, found.memory, found.attention) == pytest.approx((0.7, 2.5, 0.8, 0.6))
    assert found.link is None


def test_a_plan_says_which_constants_were_measured_and_no_longer_that_the_gpu_is_outside_the_data():
    assert "Outside the data: the constants were fitted to A100 and H100, not to the B200" in words(LARGE)
    told = words(replace(LARGE, constants=replace(B200, source="b200.toml")))
    assert "Outside the data" not in told
    assert "Measured (b200.toml): 71 % of the peak in large matrix products, 80 % of the bandwidth" in told
    assert "From published runs on A100 and H100: the rate of attention and how much communication overlaps" in told
    only = MeasuredGpu("B200", *PEAKS, products=0.71, source="b200.toml")
    assert "Outside the data" in words(replace(LARGE, constants=only))


def test_a_measured_network_is_inside_the_data():
    slow = replace(LARGE, device="H100", network="25G")
    assert "no published configuration has a network as slow" in words(slow)
    h100 = GPUS["H100"]
    measured = MeasuredGpu("H100", h100.half, h100.bandwidth, h100.memory, network=0.8 * 25e9 / 8, source="a.toml")
    own = layouts.find_layouts(replace(slow, network="", constants=measured))
    assert "Outside the data" not in " ".join(layouts.remarks(own))
    assert own.found.time.seconds[0] == pytest.approx(layouts.find_layouts(slow).found.time.seconds[0], rel=1e-12)


def test_a_faster_gpu_is_planned_to_be_faster():
    def rate(**constants):
        return layouts.find_layouts(replace(LARGE, constants=replace(B200, **constants))).found.rates[0]

    assert rate(products=0.9) > rate() and rate(memory=1.0) > rate() and rate(attention=0.7) > rate()


@pytest.mark.parametrize(
    ("request_", "constants", "told"),
    [
        (replace(LARGE, device="H100"), B200, "constants of the B200, not of the H100; leave the device out"),
        (replace(LARGE, network="400G"), replace(B200, network=4e10), "leave the network out"),
        (LARGE, replace(B200, device="L40S"), "GPUs of the B200" and "of the L40S, not of the B200"),
        (
            replace(LARGE, device="L40S"),
            replace(B200, device="L40S"),
            "GPUs of the L40S; below [constants], add link = ..., in bytes/s and network = ..., in bytes/s",
        ),
        (replace(LARGE, device="L40S", precision="fp8"), replace(B200, device="L40S", link=1e10, network=1e9), "8-bit"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_constants_that_do_not_match_the_request_are_refused(request_, constants, told):
    with pytest.raises(ValueError, match=quote(told)):
        layouts.find_layouts(replace(request_, constants=replace(constants, source="gpu.toml")))


def test_a_gpu_that_the_planner_does_not_list_is_planned_from_its_file(write, capsys):
    path = write(OWN + "link = 2.5e10\n")
    assert main(["plan", "--model", "llama-3-8b", "--gpus", "8", "--batch", "64", "--constants", path, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 10
    assert main(["plan", "--model", "llama-3-8b", "--gpus", "8", "--batch", "64", "--constants", path]) == 0
    assert "on 8 L40S" in capsys.readouterr().out


def test_without_a_gpu_one_sentence_says_what_to_do(capsys, monkeypatch):
    monkeypatch.setattr(gpus, "count", lambda: 0)
    assert main(["fit", "--gpu"]) != 0
    assert "no CUDA GPU was found on this machine" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["--gpu", "--anyway"], "--anyway is for the fit of a CPU"), (["--peak", "1e15"], "for the fit of a GPU; add")],
)
def test_options_of_the_other_fit_are_refused(arguments, told, capsys):
    assert main(["fit", *arguments]) != 0
    assert told in capsys.readouterr().err


def test_the_planner_knows_a_gpu_by_the_name_that_torch_gives_it():
    names = {
        "NVIDIA H100 80GB HBM3": "H100",
        "NVIDIA H200": "H200",
        "NVIDIA A100-SXM4-40GB": "A100-40GB",
        "NVIDIA A100-SXM4-80GB": "A100",
        "NVIDIA B200": "B200",
    }
    for torch_name, name in names.items():
        assert fit_gpu.find_peaks(torch_name, None, None) == (name, GPUS[name].half, GPUS[name].bandwidth)
    for other in ("NVIDIA L40S", "NVIDIA H100 PCIe", "NVIDIA GH200 480GB", "NVIDIA H100 NVL"):
        with pytest.raises(click.ClickException, match="give those of its data sheet"):
            fit_gpu.find_peaks(other, None, None)
    assert fit_gpu.find_peaks("NVIDIA L40S", 362e12, 864e9) == ("L40S", 362e12, 864e9)


def test_the_report_has_a_line_for_each_constant_and_doubts_uncertain_ones(capsys):
    fit_gpu.report(replace(B200, link=7e11, hop=5e-6, errors={"products": 0.2, "traffic": 0.1, "link": 1e9}))
    told = capsys.readouterr().out
    assert all(name in told for name in CONSTANTS if name not in ("attention", "network"))
    assert "The standard error of products is above 10 %" in told
