"""Hostile input of the command line: whatever is typed, or is in a file, costs one short sentence and no traceback."""

import io
import itertools
import zipfile

LONG = "x" * 20_000
HEAD = "layer,forward,backward,activations,weights\n"

WORDS = [
    [LONG],
    ["run", LONG],
    ["run", "easgd", LONG],
    ["run", "easgd", f"--{LONG}", "1"],
    ["run", "easgd", "--workers", LONG],
    ["run", "easgd", "--workers", "٣" * 400],
    ["run", "easgd", "--network", LONG],
    ["run", "easgd", "--device", LONG],
    ["run", "easgd", "--device", "inf:inf:inf"],
    ["run", "easgd", "--device", "1e-320:1e-320:1e-320", "--steps", "2"],
    ["run", "easgd", "--bandwidth", "1e-320", "--steps", "2"],
    ["run", "easgd", "--rank-memory", "inf"],
    ["run", "easgd", "--rank-memory", "1e-320"],
    ["run", "easgd", "--learning-rate", "nan"],
    ["run", "easgd", "--steps", "1e400"],
    ["run", "easgd", "--crash", "0:nan"],
    ["run", "easgd", "--slow", LONG],
    ["run", "easgd", "--runs", LONG],
    ["run", "easgd", "--runs", "\0"],
    ["run", "--from", LONG],
    ["run", "--from", "?" + "a=b&" * 5000],
    ["run", "--from", "\0?="],
    ["run", "--from", "?algorithm=easgd&workers=%ff%fe"],
    ["sweep", "easgd", "--workers", LONG],
    ["sweep", LONG],
    ["tune", LONG],
    ["compare", LONG],
    ["replay", LONG],
    ["replay", "\0"],
    ["export", LONG, "--to", LONG],
    ["profile", LONG],
    ["kernels", LONG],
    ["add", LONG],
    ["add", "\0"],
    ["add", "."],
    ["schedule", LONG],
    ["schedule", "gpipe", "--ranks", LONG],
    ["schedule", "gpipe", "--ranks", "9" * 30],
    ["schedule", "gpipe", "--ranks", "0"],
    ["schedule", "gpipe", "--chunks", "-1"],
    ["schedule", "gpipe", "--latency", "1e-320"],
    ["schedule", "gpipe", "--latency", "inf"],
    ["schedule", "gpipe", "--costs", LONG],
    ["schedule", "--file", LONG],
    ["schedule", "--file", "\0"],
    ["schedule", "--file", "/"],
    ["partition", LONG],
    ["partition", "/"],
]
COSTS = ["F=1e-320", "F=5e-324,B=5e-324", "F=0,B=0", "F=nan", "F=-1", "F=", "=1", "F=1=2", "F=1e7", "٣F=3", "B=1,I=3"]
SCHEDULES = [
    "", " ", "+", "0F0", "0F0+", "0F0 +", "0F0 0F0", "0B0 0F0", "0X0", "-1F0", "²F0 0B0", "0F0 0B0\n0U0", "0F0 0I0 0B0",
    "0F0 0W0 0I0", "1F0 1B0", "0F99999999999999 0B99999999999999", "99999999999999F0", "\0", "0F0 0B0 " * 30_001,
    LONG, "0F0 0B0\n\n0F0 0B0", "0U0", "0F0 0F1 0B1", "1F0 1B0\n0B0 0F0",
]  # fmt: skip
ENTRIES = ["nan", "inf", "-1", "1e-320", "1e308", "", "x", LONG, "1e400", "0x10"]
BANDWIDTHS = ["0", "-1", "inf", "nan", "1e-320", "1e308", LONG, ""]


def refused(main, *words):
    code, _, err = main(*words)
    assert code == 2, [word[:40] for word in words]
    assert err.strip() and err.count("\n") == 1 and "Traceback" not in err, err[:300]
    assert len(err) < 1500 and LONG[:200] not in err, err[:300]


def test_whatever_is_typed_costs_one_sentence(main):
    for words in WORDS:
        refused(main, *words)
    for costs in COSTS:
        refused(main, "schedule", "gpipe", "--costs", costs)


def test_no_schedule_profile_or_archive_in_a_file_costs_more_than_one_sentence(main, tmp_path):
    own, profile, archive = tmp_path / "own.txt", tmp_path / "profile.csv", tmp_path / "run.zip"
    for content in (*(text.encode() for text in SCHEDULES), b"\xff\xfe\0"):
        own.write_bytes(content)
        refused(main, "schedule", "--file", own)
    own.write_text("0F0 0B0 0U0")
    for costs in ("0F0=0,0B0=0", "0F0=1e-320", "F=1e-320,I=0,W=0", "0F=0 0B=0 0U=0"):
        refused(main, "schedule", "--file", own, "--costs", costs)
    for entry, column in itertools.product(ENTRIES, range(1, 5)):
        row = ["a", "1", "1", "1", "1"]
        row[column] = entry
        profile.write_text(HEAD + ",".join(row) + "\n")
        refused(main, "partition", profile, "--workers", "2")
    for content in (b"", b"\0", b"\xff\xfe", b"\n" * 99, HEAD.encode(), HEAD.encode() + f'{LONG},"'.encode()):
        profile.write_bytes(content)
        refused(main, "partition", profile)
    profile.write_text(HEAD + "a,1,2,3,4\nb,1,2,3,4\n")
    for bandwidth in BANDWIDTHS:
        refused(main, "partition", profile, "--workers", "2", "--bandwidth", bandwidth)
    for names in (
        [""],
        ["/"],
        ["run.json"],
        ["../../run.json"],
        [f"{n}/run.json" for n in range(50)],
        [LONG[:60_000]],
        ["\0"],
    ):
        archive.write_bytes(zipped(names))
        refused(main, "add", archive)
    for content in (b"PK", b"PK\3\4" + b"\0" * 30, zipped(["run.json"])[:-10], zipped(["run.json"])[10:]):
        archive.write_bytes(content)
        refused(main, "add", archive)


def zipped(names):
    """An archive of files with exactly these names, whatever they are."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            entry = zipfile.ZipInfo("x")
            entry.filename = name
            archive.writestr(entry, b"{}")
    return packed.getvalue()
