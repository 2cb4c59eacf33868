"""The command line of schedules: pictures, measures, comparisons, and schedules of one's own."""

import re

import pytest

from experiments.study.schedules import idea, options
from tests.quotes import quote
from theory.schedules import SCHEDULES

INTERLEAVED = (
    "0F0,0F1,0F2,0F3,4F0,4F1,4F2,4F3,0F4,0F5,,,,,0F6,4B0,0F7,4B1,4F4,4B2,4F5,4B3,4F6,"
    "0B0,4F7,0B1,,0B2,,0B3,,4B4,,4B5,,4B6,,4B7,,0B4,,0B5,,0B6,,0B7\n"
    ",1F0,1F1,1F2,1F3,5F0,5F1,5F2,5F3,,,,1F4,5B0,1F5,5B1,1F6,5B2,1F7,5B3,5F4,1B0,"
    "5F5,1B1,5F6,1B2,5F7,1B3,,5B4,,5B5,,5B6,,5B7,,1B4,,1B5,,1B6,,1B7\n"
    ",,2F0,2F1,2F2,2F3,6F0,6F1,,,6F2,6B0,6F3,6B1,2F4,6B2,2F5,6B3,2F6,2B0,2F7,"
    "2B1,6F4,2B2,6F5,2B3,6F6,6B4,6F7,6B5,,6B6,,6B7,,2B4,,2B5,,2B6,,2B7\n"
    ",,,3F0,3F1,3F2,3F3,,7F0,7B0,7F1,7B1,7F2,7B2,7F3,7B3,3F4,3B0,3F5,3B1,"
    "3F6,3B2,3F7,3B3,7F4,7B4,7F5,7B5,7F6,7B6,7F7,7B7,,3B4,,3B5,,3B6,,3B7\n"
)  # `_dump_csv` of torch.distributed.pipelining: Interleaved1F1B, 4 ranks of 2 stages, 8 micro-batches
STUCK = "0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0\n"


@pytest.fixture
def schedule(main, tmp_path):
    """Run the command, on a file of this text if there is one; gives what `main` gives."""

    def call(*words, text=None):
        if text is not None:
            (tmp_path / "mine.txt").write_text(text)
            words = (*words, "--file", "mine.txt")
        return main("schedule", *words)

    return call


def figures(out):
    """The figures in the list, by name."""
    return dict(re.findall(r"^  (\w[\w ]*?)  +(\S+(?: %)?)", out, re.MULTILINE))


def columns(out):
    """The figures in a comparison, by schedule and name."""
    head, *rows = [re.split(r"  +", line) for line in out.splitlines()]
    return {name: {row[0]: row[1 + n] for row in rows} for n, name in enumerate(head[1:])}


def test_without_a_name_all_schedules_are_listed_with_their_idea(schedule):
    code, out, err = schedule()
    words = " ".join(re.sub(r"-\n +", "-", out).split())
    assert (code, err) == (0, "") and max(map(len, out.splitlines())) <= 80
    assert all(f"{name} {' '.join(idea(name).split())}" in words for name in SCHEDULES)


def test_a_schedule_is_found_in_any_case(schedule):
    assert schedule("1F1B") == schedule("1f1b") and schedule("1F1B")[0] == 0


def test_ideas_are_those_of_files_and_variants():
    assert idea("gpipe").startswith("GPipe streams the micro-batches of one mini-batch")
    assert idea("gpipe_late").startswith("GPipe that stores only inputs")
    assert idea("dapple_pb").startswith("1F1B with policy PB (DAPPLE) sends")
    assert idea("naive").startswith("Naive model parallelism")
    assert len({idea(name) for name in SCHEDULES}) == len(SCHEDULES)


def test_a_schedule_is_drawn_and_measured(schedule, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = schedule("zb_h1", "--ranks", 4, "--chunks", 8)
    assert (code, err) == (0, "")
    assert out.startswith("zb_h1: 4 ranks, 8 micro-batches, F 1, I 1, W 1, B 2\n\ntime ")
    assert "rank 3  ......F0I0F1I1F2I2F3I3W0F4I4W1F5I5W2F6I6W3F7I7W4W5W6W7\n" in out
    assert figures(out) == {
        "makespan": "27",
        "idle": "3",
        "bubble of total": "11.1 %",
        "bubble of ideal": "12.5 %",
        "bubble of span": "11.1 %",
        "throughput": "0.2963",
        "in flight": "4",
        "held": "4",
        "copies": "1",
        "versions": "1",
        "delay": "0",
    }
    assert "   3    24     3    24          1     4       1         1      0\n" in out
    assert "critical path: 27 ops, " in out and max(map(len, out.splitlines())) <= 80
    told = " ".join(out.split())
    assert told.endswith("micro-batch, as in 0F0: F forward, I backward of inputs, W backward of weights")


def test_the_three_bubbles_of_gpipe_have_their_closed_forms(schedule):
    found = figures(schedule("gpipe", "--ranks", 4, "--chunks", 8)[1])
    assert found["bubble of total"] == f"{100 * 3 / 11:.1f} %" and found["bubble of ideal"] == f"{100 * 3 / 8:.1f} %"


def test_stale_schedules_show_their_delays_and_versions(schedule):
    rows = [line.split() for line in schedule("pipedream", "--chunks", 12)[1].splitlines() if re.match(r" +\d ", line)]
    assert [row[-3:] for row in rows] == [[str(n), str(n), str(n - 1)] for n in (4, 3, 2, 1)]
    assert figures(schedule("pipemare", "--chunks", 12)[1])["versions"] == "1"


def test_names_are_compared_side_by_side_on_the_same_work(schedule):
    code, out, _ = schedule("gpipe", "zb_h1", "interleaved", "zb_v", "pipedream")
    found = columns(out)
    assert code == 0 and [*found] == ["gpipe", "zb_h1", "interleaved", "zb_v", "pipedream"]
    assert {name: figures["makespan"] for name, figures in found.items()} == {
        "gpipe": "33",
        "zb_h1": "27",
        "interleaved": "28.5",
        "zb_v": "25.5",
        "pipedream": "33",
    }
    assert found["gpipe"]["in flight"] == "8" and found["pipedream"]["delay"] == "3"


def test_more_schedules_than_fit_beside_each_other_go_on_below(schedule, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    folds = schedule("1f1b", "zb_h1", "interleaved", "chimera", "zb_v", "v_half", "v_min", "dualpipe")[1].split("\n\n")
    assert len(folds) == 2 and max(len(line) for fold in folds for line in fold.splitlines()) <= 80
    found = {name: figures["makespan"] for fold in folds for name, figures in columns(fold).items()}
    assert len(found) == 8 and found["1f1b"] == "33" and found["dualpipe"] == "26"


def test_costs_are_of_kinds_stages_ops_and_pairs(schedule):
    assert figures(schedule("zb_h1", "--costs", "F=10,I=11,W=6")[1])["makespan"] == "261"
    assert figures(schedule("1f1b", "--costs", "F=1 B=1")[1])["makespan"] == "22"
    assert figures(schedule("dualpipe", "--costs", "F+B=3")[1])["makespan"] == "26"
    slow = schedule("1f1b", "--costs", "2F=3")[1]
    assert "B 2, 2F=3\n" in slow and float(figures(slow)["makespan"]) > 33


def test_of_a_backward_and_its_halves_one_follows_from_the_others(schedule):
    head = schedule("1f1b", "--costs", "B=3,I=1")[1].splitlines()[0]
    assert head.endswith("F 1, I 1, W 2, B 3")
    assert schedule("1f1b", "--costs", "B=3")[1].splitlines()[0].endswith("F 1, I 1.5, W 1.5, B 3")
    code, _, err = schedule("1f1b", "--costs", "B=3,I=1,W=1")
    assert code == 2 and "halves I=1 and W=1" in err


def test_a_cost_that_one_of_the_schedules_uses_is_a_cost(schedule):
    found = columns(schedule("1f1b", "interleaved", "--costs", "7F=9")[1])
    assert found["1f1b"]["makespan"] == "33" and float(found["interleaved"]["makespan"]) > 28.5
    repeated = (figures(schedule("gpipe_early", "--costs", cost)[1])["makespan"] for cost in ("R=1", "R=2"))
    assert len({*repeated}) == 2
    assert schedule("gpipe", "--costs", "W=2,U=0,3B7=4")[0] == 0


def test_options_of_a_schedule_are_options_of_the_command(schedule):
    out = schedule("interleaved", "--pieces", 4, "--chunks", 16)[1]
    assert figures(out)["makespan"] == "50.25"
    assert "16 stages: an op on one stage costs 0.25 times" in out
    found = columns(schedule("1f1b", "dapple_pb", "gpipe", "--policy", "PB", "--latency", 1)[1])
    assert found["1f1b"] == found["dapple_pb"] != found["gpipe"]
    same = [figures(schedule(*words, "--chunks", 12)[1]) for words in (["systolic", "--no-fused"], ["pipemare"])]
    assert same[0]["delay"] == same[1]["delay"] == "7"


def test_help_of_a_schedule_shows_its_theory_and_its_options(schedule):
    out = schedule("interleaved", "--help")[1]
    assert idea("interleaved") in out and "Schedule interleaved:\n  --pieces INT  more stages on each rank" in out
    assert all(one.label and one.about for name in SCHEDULES for one in options(name).values())
    out = schedule("--help")[1]
    assert "An op is written as stage, kind, micro-batch" in out and "--pieces" not in out


def test_reasons_say_why_each_slot_is_idle(schedule):
    out = schedule("1f1b", "--latency", 0.5, "--reasons")[1]
    assert re.search(r"^rank 1 +0 to 1 +1F0 waits for 0F0 of rank 0$", out, re.MULTILINE)
    assert re.search(r"^rank 1 +1 to 1.5 +1F0 waits for 0F0 to come over the link from rank 0$", out, re.MULTILINE)
    assert re.search(r"^rank 3 +\S+ to \S+ +nothing left to do$", out, re.MULTILINE)
    assert "waits for" not in schedule("1f1b", "--latency", 0.5)[1]


def test_slots_that_are_only_rounding_are_not_told(schedule):
    spans = re.findall(r"^rank \d +(\S+) to (\S+) ", schedule("zb_h1", "--latency", 0.1, "--reasons")[1], re.MULTILINE)
    assert spans and all(start != end for start, end in spans)


@pytest.mark.parametrize("name", SCHEDULES)
def test_what_lists_prints_file_reads(schedule, name):
    code, text, _ = schedule(name, "--lists")
    assert code == 0 and len(text.splitlines()) == 4
    again = schedule("--lists", text=f"# mine\n\n{text}")
    assert again == (0, text, "")


def test_a_schedule_of_one_s_own_is_timed_and_compared(schedule):
    out = schedule(text="0F0 0F1 0B0 0B1 0U0\n1F0 1B0 1F1 1B1 1U0\n")[1]
    assert out.startswith("mine.txt: 2 ranks, 2 micro-batches, ") and figures(out)["makespan"] == "9"
    assert "rank 0  F0 F1 .. .. B0    .. B1\n" in out
    found = columns(
        schedule("gpipe", "--ranks", 2, "--chunks", 2, text="0F0 0F1 0B1 0B0 0U0\n1F0 1F1 1B1 1B0 1U0\n")[1]
    )
    assert found["mine.txt"] == found["gpipe"]


def test_a_table_that_torch_dumps_is_the_schedule_that_it_shows(schedule):
    found = figures(schedule(text=INTERLEAVED.replace("\n", "\r\n"))[1])
    assert (found["makespan"], found["bubble of total"]) == ("28.5", "15.8 %")
    ours = columns(schedule("interleaved", "--ranks", 4, "--chunks", 8, text=INTERLEAVED)[1])
    assert ours["mine.txt"] == {**ours["interleaved"], "delay": "–"}, "torch writes no updates"
    joined = "0F0,0F1,(0F2;0B0)OVERLAP_F_B,,0B1,0B2\n"
    assert schedule("--lists", text=joined)[1] == "0F0 0F1 0F2+0B0 0B1 0B2\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (STUCK, "mine.txt: … rank 0 … 0B0 … 1B0 … rank 1 … 1F1 … 0F1"),
        ("0F0 0B0\n1F0\n", "mine.txt: 1B0 … missing"),
        ("0B0 0F0\n", "mine.txt: 0B0 … before 0F0 … rank 0"),
        ("0F0 0F0 0B0\n", "mine.txt: 0F0 … twice"),
        (
            "0F0 hello\n",
            "mine.txt: 'hello' … F, R, B, I, W, U … 2F0",
        ),
        ("# nothing\n", "mine.txt: … no op … line for each rank"),
    ],
)
def test_a_file_that_is_no_schedule_is_refused_with_op_and_rule(schedule, text, sentence):
    code, out, err = schedule(text=text)
    assert (code, out) == (2, "") and re.match(quote(sentence), err) and err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["zb_h3"], "'zb_h3' … zb_h2?"),
        (["own"], "'own' … naive, gpipe"),
        (["chimera", "--ranks", "3"], "3 ranks … Chimera … even number"),
        (["interleaved", "--chunks", "9"], "4 ranks … 2 equal groups … 8 or 10"),
        (["gpipe", "--ranks", "0"], "ranks … '0' … 1 to 256"),
        (["gpipe", "--ranks", "256", "--chunks", "4096"], "at most 60,000"),
        (["gpipe", "--pieces", "2"], "No such option '--pieces'"),
        (["interleaved", "--pieces", "0"], "pieces … '0' … 1 to 64"),
        (["1f1b", "--policy", "PC"], "policy … 'PC' … PA or PB"),
        (["gpipe", "--costs", "X=1"], "'X=1' is not a cost; write"),
        (["gpipe", "--costs", "F=-1"], "'F=-1' is not a cost; write"),
        (["1f1b", "--costs", "4F=3"], "4F=3 … 0 to 3 … 0 to 7"),
        (["1f1b", "--costs", "3F8=3"], "3F8 … 0 to 3 … 0 to 7 … F, B, U"),
        (["gpipe", "--costs", "R=2"], "R=2 … R"),
        (["gpipe", "--costs", "F+B=2"], "F+B=2 … F+B"),
        (["zb_h1", "1f1b", "--costs", "9I=2"], "0 to 3 … 0 to 7 … F, B, I, W, U"),
        (["dapple"], "'dapple' … dapple … 1f1b, dapple_pb"),
        (["zb_auto"], "'zb_auto' … zb_auto … zb_1p, zb_2p"),
        (["gpipe", "--latency", "-1"], "latency … '-1.0' … 0 to"),
        (["gpipe", "1f1b", "--lists"], "--lists … --reasons … single schedule"),
        (["--file", "nope.txt"], "nope.txt … No such file"),
        (["--file", "."], ". … Is a directory"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(schedule, words, sentence):
    code, out, err = schedule(*words)
    assert (code, out) == (2, "") and re.search(quote(sentence), err) and err.count("\n") == 1


def test_a_file_of_bytes_is_refused(main, tmp_path):
    (tmp_path / "bytes").write_bytes(bytes(range(256)))
    assert re.match(quote("bytes … text … line for each rank"), main("schedule", "--file", "bytes")[2])


def test_colours_are_for_terminals_only(schedule, monkeypatch):
    assert "\x1b[" not in schedule("gpipe")[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in schedule("gpipe")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in schedule("gpipe")[1]
