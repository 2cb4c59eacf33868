"""The command line of partitioners: profiles of layers, and where to cut."""

import re

import pytest

from experiments.study.partitions import FORM_OF, communication, plan
from tests.quotes import quote
from tests.unit.theory.test_partition_pipedream import cases, published
from theory.profile import load, save

VGG = """layer,forward,backward,activations,weights
conv1,2,4,4,.1
conv2,2,4,2,.2
conv3,2,4,.5,.3
dense,.5,1.5,.1,20
"""
GRAPH = """node3 -- Head -- forward_compute_time=2.0, backward_compute_time=4.0, activation_size=1e3, parameter_size=4e5
node4 -- Conv2d(3, 64) -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=1e6, parameter_size=4000.
node2 -- ReLU -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=[6e5; 4e5], parameter_size=0.0
\tnode2 -- node3
\tnode4 -- node2
"""  # as PipeDream's profiler writes it


@pytest.fixture
def cut(main, tmp_path):
    """Partition VGG in miniature, or another table; gives what `main` gives."""

    def call(*words, table=VGG):
        (tmp_path / "p.csv").write_text(table)
        return main("partition", "p.csv", *words)

    return call


def figure(out, name):
    """What stands behind `name` in the list of figures."""
    return re.search(rf"^  {name} +(\S+( [µm]?s\b)?)", out, re.MULTILINE)[1]


# profile


def test_a_profile_is_printed_written_and_read_by_partition(main):
    code, out, err = main("profile", "--passes", 2, "--batch", 8, "--depth", 2, "--width", 16, "--out", "p.csv")
    assert (code, err) == (0, "")
    assert out.startswith("digits, model residual: 4 layers, mini-batches of 8, medians of 2 passes here\n\nlayer ")
    rows = [line.split() for line in out.splitlines() if re.match(r"\d ", line)]
    assert [row[:3] for row in rows] == [[str(i), *name] for i, name in enumerate(
        [["dense", "16"], ["residual", "16"], ["residual", "16"], ["dense", "10"]]
    )]  # fmt: skip
    assert load("p.csv").weights == (4 * 65 * 16, 4 * 17 * 16, 4 * 17 * 16, 4 * 17 * 10)
    assert main("partition", "p.csv")[0] == 0


def test_the_profiled_model_is_the_one_that_a_pipeline_trains(main):
    out = main("profile", "--device", "laptop")[1]
    assert "digits, model residual: 8 layers" in out and "6 residual 64" in out
    assert "Pipelines train this model; other methods train --model mlp." in out
    assert "train   lockstep run pipedream\n" in out
    out = main("profile", "--device", "laptop", "--model", "cnn", "--batch", 8)[1]
    assert "digits, model cnn:" in out and "Pipelines train this model" not in out, "it was asked for"
    assert "0 convolution 8x4x4" in out and "run pipedream --model cnn --batch 8\n" in out


def test_prices_on_a_device_are_the_same_every_time(main):
    first, again = (main("profile", "spirals", "--device", "P100") for _ in range(2))
    assert first == again and "prices on P100" in first[1]
    assert main("profile", "spirals", "--device", "laptop")[1] != first[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["quadratic"], "quadratic … no layers … digits, spirals"),
        (["digit"], "'digit' … digits?"),
        (["--batch", "5000"], "batch 5,000 … shard"),
        (["--batch", "0"], "batch … '0' … 1 to 65536"),
        (["--device", "abacus"], "'abacus'"),
        (["--depth", "0"], "depth … '0' … 1 to 256 blocks"),
        (["--period", "3"], "No such option '--period'"),
    ],
)
def test_what_cannot_be_profiled_is_refused_in_one_line(main, words, sentence):
    code, out, err = main("profile", *words)
    assert (code, out) == (2, "") and re.search(quote(sentence), err) and err.count("\n") == 1


def test_help_of_profile_shows_the_model_s_settings(main):
    code, out, _ = main("profile", "spirals", "--help")
    assert code == 0 and "Workload spirals:" in out and "--depth INT" in out and "--turns" in out and "--device" in out


# partition


def test_the_best_plan_is_printed_with_its_stages_and_what_to_expect(cut):
    code, out, err = cut("--bandwidth", 1)
    assert (code, err) == (0, "")
    stages = [line.split() for line in out.splitlines() if re.match(r"\d  ", line)]
    assert stages == [
        ["0", "conv1", "3", "3", "6", "s", "533", "ms", "1", "s", "1"],  # 18/3; 4 (m-1) .6 / m / m; 2 .5; 1 ahead
        ["1", "dense", "1", "1", "2", "s", "–", "–", "0"],
    ]
    assert figure(out, "replicas") == "3-1" and figure(out, "cuts") == "3,1" and figure(out, "in flight") == "2"
    assert figure(out, "period") == "6 s" and figure(out, "speed-up") == "3.333"


def test_the_table_is_the_dynamic_program_s_and_marks_the_way_back(cut):
    rows = cut("--bandwidth", 1, "--table")[1].splitlines()
    at = next(n for n, line in enumerate(rows) if line.startswith("j  layer"))
    assert [row.split() for row in rows[at + 1 :]] == [
        ["0", "conv1", "6", "3", "2", "1.5"],
        ["1", "conv2", "12", "6", "4", "3"],
        ["2", "conv3", "18", "9", "6*", "4.5"],
        ["3", "dense", "20", "12", "1|1", "8", "1|1", "6", "2|1*"],
    ]


@pytest.mark.parametrize(
    ("method", "cuts"),
    [
        ("pipedream", "3,1"),
        ("ring", "3,1"),
        ("sosp", "3,1"),
        ("pipedream_code", "1,1,1,1"),
        ("dapple", "3,1"),
        ("min_max", "1,1,1,1"),
        ("variance", "1,1,1,1"),
        ("torchgpipe_time", "1,1,1,1"),
        ("torchgpipe_size", "1,1,1,1"),
        ("blocks", "1,1,1,1"),
    ],
)
def test_every_method_gives_cuts(cut, method, cuts):
    code, out, _ = cut("--bandwidth", 1, "--method", method)
    assert code == 0 and out.startswith(f"{method}: 4 layers, 4 workers, ") and figure(out, "cuts") == cuts


def test_some_methods_balance_times_and_one_balances_bytes(cut):
    rows = "\n".join(f"l{i},.5,.5,0,{weights}" for i, weights in enumerate([1, 1, 1, 1, 5, 5]))
    table = f"layer,forward,backward,activations,weights\n{rows}\n"
    found = {
        method: figure(cut("--workers", 2, "--method", method, table=table)[1], "cuts")
        for method in ("min_max", "variance", "torchgpipe_time", "torchgpipe_size")
    }
    assert found == {"min_max": "3,3", "variance": "3,3", "torchgpipe_time": "3,3", "torchgpipe_size": "5,1"}


def test_the_offset_of_torchgpipe_makes_cheap_layers_free(cut):
    rows = "\n".join(f"l{i},{cost},0,0,0" for i, cost in enumerate([5] * 9 + [6]))
    table = f"layer,forward,backward,activations,weights\n{rows}\n"
    with_offset, without = (
        figure(cut("--method", method, table=table)[1], "period") for method in ("torchgpipe_time", "blocks")
    )
    assert (with_offset, without) == ("21 s", "16 s")


def test_cuts_of_one_s_own_are_worth_what_their_slowest_stage_or_link_is(cut):
    out = cut("--cuts", "1,3", "--bandwidth", 1)[1]
    assert out.startswith("cuts 1,3: 4 layers, 2 workers, ")
    assert figure(out, "period") == "14 s" and "run pipedream --workers 2 --cuts 1,3" in out
    assert figure(cut("--cuts", "1,3", "--bandwidth", 0.5)[1], "period") == "16 s"


def test_a_plan_for_a_step_with_a_flush_says_how_long_the_step_takes(cut):
    out = cut("--method", "dapple", "--workers", 2, "--chunks", 4, "--straight", "--bandwidth", 1e9)[1]
    assert figure(out, "step") == "14 s"  # (3 times 12 of the slower stage, and 20 of both) / 4
    assert "of 4 micro-batches, with fill and drain" in out and "in flight" not in out
    assert "run dapple --chunks 4 --workers 2 --cuts 2,2" in out
    assert figure(cut("--method", "dapple", "--chunks", 1)[1], "replicas") == "4"


def test_a_step_s_gradients_are_summed_by_a_ring_and_its_stages_run_ahead_as_in_1f1b(main, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    save(published(), tmp_path / "vgg.csv")
    out = main("partition", "vgg.csv", "--bandwidth", 1e9, "--method", "dapple")[1]
    assert figure(out, "replicas") == "3-1"
    assert re.search(r"^0 .* 9\.26 ms .* 1$", out, re.MULTILINE)  # 2 (3-1)/3 of 6.94 MB
    assert "an upper bound if links are free" in out and max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("method", "compression"), [*((method, None) for method in FORM_OF), *(("pipedream_code", c) for c in (0.2, 1))]
)
def test_what_sets_the_period_stands_in_the_table(method, compression):
    for p, workers, bandwidth in cases(200, 7):
        found = plan(p, [(workers, bandwidth)], method, compression=compression)
        longest = []
        for stage, both in zip(found.stages, communication(p, found, method, bandwidth, compression), strict=True):
            computes, (gradients, link) = sum(p.times[stage.first : stage.last + 1]) / stage.replicas, both
            longest += [computes + gradients if method == "pipedream_code" else max(computes, gradients), link]
        assert max(longest) == pytest.approx(found.period)


def test_a_link_that_costs_the_authors_program_something_is_shown(cut):
    words = ("--bandwidth", 1, "--method", "pipedream_code")
    first = {"1": "4 s", "2": "2 s"}
    for compression, takes in first.items():
        out = cut(*words, "--straight", "--compression", compression)[1]
        assert re.search(rf"^1 .* {takes} +2$", out, re.MULTILINE)  # 2 times 2 bytes after conv2
    assert re.search(r"^1 .* – +– +2$", cut(*words)[1], re.MULTILINE)


def test_machines_of_workers_are_levels(cut):
    table = "layer,forward,backward,activations,weights\na,4,4,.5,0\nb,1,1,.1,9\n"
    out = cut("--workers", "2,2", "--bandwidth", "10,1", "--method", "sosp", table=table)[1]
    assert "2 times (2 workers, 10 B/s between them), 1 B/s between these" in out
    assert figure(out, "period") == "4 s" and figure(out, "replicas") == "2-2" and figure(out, "cuts") == "1,1"


def test_the_network_may_have_a_name(cut):
    assert "4 workers, 365 GB/s between them" in cut("--bandwidth", "NVLink")[1]
    assert "4 workers, 1.17 GB/s between them" in cut()[1]


def test_options_of_the_program_reach_it(cut):
    assert figure(cut("--bandwidth", 1, "--straight")[1], "replicas") == "1-1-1-1"
    assert figure(cut("--bandwidth", 1e-3, "--fewer")[1], "replicas") == "1"
    assert figure(cut("--bandwidth", 1, "--memory", 45)[1], "period") == "6 s"
    assert figure(cut("--bandwidth", 1, "--method", "pipedream_code", "--compression", 1)[1], "period") == "6.3 s"
    sizes = ["--workers", 2, "--method", "torchgpipe_size", "--copies", 0]
    assert figure(cut(*sizes)[1], "cuts") != figure(cut(*sizes, "--copies", 2)[1], "cuts")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--workers", "5", "--straight"],
            "5 workers … 4 … at most 4",
        ),
        (["--workers", "5", "--method", "min_max"], "4 layers … 5 parts … 1 to 4."),
        (["--workers", "0"], "0 workers … at least 1."),
        (["--workers", "two"], "workers … 'two' … whole numbers"),
        (["--workers", "2,2"], "give one of each per level"),
        (["--workers", "2,2", "--bandwidth", "1,1", "--method", "variance"], "one number of workers … sosp"),
        (["--workers", "2,2", "--bandwidth", "1,1", "--memory", "9"], "a memory limit works with one level of workers"),
        (["--bandwidth", "0"], "bandwidth … '0' … bytes per second … 1e9 … ideal, 1GbE, 10GbE"),
        (["--bandwidth", "fast"], "bandwidth … 'fast' … bytes per second"),
        (["--memory", "10"], "4 workers … 10 bytes … smallest"),
        (
            ["--memory", "10", "--method", "dapple"],
            "4 workers … 10 bytes … smallest",
        ),
        (["--fewer", "--method", "dapple"], "--fewer … pipedream, pipedream_code, sosp, ring … dapple"),
        (["--memory", "-1"], "--memory … -1.0"),
        (["--method", "guess"], "'guess' … pipedream, pipedream_code, sosp, ring, dapple"),
        (
            ["--method", "min_max", "--straight"],
            "--straight … pipedream, pipedream_code, sosp, ring, dapple",
        ),
        (["--copies", "2"], "--copies … torchgpipe_size … pipedream"),
        (["--compression", "2"], "--compression … pipedream_code … pipedream"),
        (["--method", "variance", "--table"], "variance … pipedream, pipedream_code, sosp, ring"),
        (["--cuts", "2,3"], "cuts 2,3 … 4 layers … 4 in total"),
        (["--cuts", "4,0"], "cuts 4,0 … 4 layers"),
        (["--cuts", "a"], "cuts … 'a' … whole numbers"),
        (["--cuts", "2,2", "--workers", "3"], "cuts 2,2 … 2 stages … --workers 3"),
    ],
)
def test_what_cannot_be_cut_is_refused_in_one_line(cut, words, sentence):
    code, out, err = cut(*words)
    assert (code, out) == (2, "") and re.search(quote(sentence), err) and err.count("\n") == 1


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (VGG.replace("conv2,2", "conv2,"), "p.csv: forward … conv2 … missing"),
        (VGG.replace("conv2,2", "conv2,-2"), "p.csv: forward … conv2 … -2.0 … number"),
        (VGG.replace("weights", "mass"), "p.csv: … no column 'weights' … layer, forward"),
        ("layer,forward,backward,activations,weights\na,0,0,1,1\n", "p.csv: … time"),
        ("", "p.csv: … no column 'layer'"),
    ],
)
def test_a_table_that_is_wrong_is_refused_with_its_name(cut, table, sentence):
    code, out, err = cut(table=table)
    assert (code, out) == (2, "") and re.search(quote(sentence), err) and err.count("\n") == 1


def test_pipedream_s_own_profile_is_cut_as_the_same_table_is(cut):
    words = "--workers", 2, "--straight", "--bandwidth", 1e9
    code, out, err = cut(*words, table=GRAPH)
    assert (code, err) == (0, "") and "3 layers" in out
    assert figure(out, "cuts") == "2,1" and figure(out, "period") == "6 ms"
    header = "layer,forward,backward,activations,weights"
    same = [header, '"Conv2d(3, 64)",.001,.002,1e6,4000', "ReLU,.001,.002,1e6,0", "Head,.002,.004,1000,4e5"]
    assert cut(*words, table="\n".join(same)) == (code, out, err)


def test_a_model_with_branches_is_refused_by_the_layer_that_branches(cut):
    code, out, err = cut(table=f"{GRAPH}\tnode4 -- node3\n")
    assert (code, out) == (2, "") and "p.csv: node4 (Conv2d(3, 64)) leads to node2 and node3; only a chain" in err


def test_help_says_what_leaving_compression_out_means(main):
    assert "without this option links cost nothing" in " ".join(main("partition", "--help")[1].split())


def test_a_file_that_is_no_table_is_refused(main, tmp_path):
    (tmp_path / "p.csv").write_bytes(bytes(range(256)))
    assert main("partition", "p.csv")[2].startswith("p.csv is not a text table")
    assert main("partition", "q.csv") == (2, "", "q.csv cannot be read: No such file or directory.\n")
    assert main("partition", ".") == (2, "", ". cannot be read: Is a directory.\n")
