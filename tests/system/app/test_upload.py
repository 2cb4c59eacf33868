"""The page for what is one's own, driven without a browser; uploads go through the real pool."""

import io
import re
import tomllib
import zipfile

import pytest
from streamlit.testing.v1 import AppTest

from app.comparison import reference
from app.session import session
from experiments.jobs import upload
from experiments.runs import run_files
from experiments.specification.experiment import Experiment
from experiments.wording import naming
from tests.patience import PATIENCE
from tests.quotes import quote
from tests.sources import ROOT
from tests.system.app.finish import finish
from workloads import csv_idx

CSV = b"size,age,kind\n" + b"".join(b"%d,%d,%s\n" % (n, n % 7, (b"cat", b"dog")[n % 2]) for n in range(40))


def script():
    from app import upload

    upload.page()


@pytest.fixture
def page(folders, tmp_path_factory, monkeypatch):
    """page(name=value, ...) is the page as it opens with that link."""
    monkeypatch.setenv("LOCKSTEP_TABLES", str(tmp_path_factory.mktemp("tables")))
    monkeypatch.delenv("LOCKSTEP_MODULES", raising=False)

    def opened(**link):
        test = AppTest.from_function(script, default_timeout=PATIENCE)
        for name, value in link.items():
            test.query_params[name] = str(value)
        return test.run()

    return opened


@pytest.fixture
def packed(made, tmp_path):
    """The zip of a run."""
    run_files.write(made(Experiment(algorithm="easgd", seed=8)), tmp_path)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in tmp_path.iterdir():
            archive.write(path, f"run/{path.name}")
    return content.getvalue()


def bring(page, key, *files):
    """Put files into the field `key`, and wait until they have been read."""
    page.file_uploader(f"{key}_files").set_value([(name, content, "") for name, content in files]).run()
    return finish(page)


def link(page, name):
    """What the page's address says."""
    value = page.query_params[name]
    return value if isinstance(value, str) else value[0]


def said(page):
    return " ".join(element.value for element in (*page.warning, *page.error, *page.caption, *page.markdown))


def test_a_run_is_opened_and_marked_as_uploaded(page, packed, canvases):
    opened = bring(page(), "run", ("run.zip", packed))
    assert {metric.label: metric.value for metric in opened.metric}["Held-out accuracy"] == "95.5 ± 1.1 %"
    assert "uploaded" in said(opened)
    assert canvases(opened).keys() == {"loss", "accuracy", "uploaded"}
    name = link(opened, "run")
    again = page(run=name)
    assert {metric.label for metric in again.metric} == {metric.label for metric in opened.metric}


def test_an_uploaded_run_says_so_beside_others(page, packed):
    name = link(bring(page(), "run", ("run.zip", packed)), "run")
    session.st.session_state.clear()
    assert [shown.name for shown in reference.name_runs([(name, session.find(name))])] == ["EASGD, uploaded"]


def test_a_table_is_looked_at_and_trained_on(page, stored):
    opened = bring(page(), "table", ("pets.csv", CSV))
    assert re.search(quote("40 rows, 3 columns"), said(opened))
    assert re.search(quote("kind … 2 classes … 2 columns of numbers"), said(opened))
    name = link(opened, "table")
    opened.selectbox(f"label-{name}").select("age").run()
    assert re.search(quote("age … 7 classes … 3 columns of numbers … kind … 2 columns"), said(opened))
    assert "## The table “pets”: 40 rows" in said(opened)
    assert re.search(quote("batch of 8 … 32 rows"), said(opened))
    wanted = Experiment.of({"workload": "table", "table": name, "label": "age", "batch": 8})
    stored(wanted)
    opened.button("train-table").click().run()  # there is no workbench to go to in this test
    assert opened.session_state.asked == wanted
    assert naming.title(wanted) == "Synchronous SGD on the table “pets”"


def test_a_first_run_on_a_table_stays_on_the_network_that_the_reader_has_chosen(page, stored):
    opened = bring(page(), "table", ("pets.csv", CSV))
    wanted = {"workload": "table", "table": link(opened, "table"), "batch": 8, "network": "1GbE", "device": "A100"}
    stored(Experiment.of(wanted))
    opened.session_state["network"], opened.session_state["device"] = "1GbE", "A100"
    opened.button("train-table").click().run()
    assert (opened.session_state.asked.network, opened.session_state.asked.device) == ("1GbE", "A100")


def test_a_column_may_be_called_as_the_number_of_its_rows_is(page):
    opened = bring(page(), "table", ("pets.csv", CSV.replace(b"kind", b"rows")))
    opened.selectbox(f"label-{link(opened, 'table')}").select("rows").run()
    classes = opened.dataframe[0].value
    assert list(classes.columns) == ["rows", "rows of it"] and sorted(classes["rows"]) == ["cat", "dog"]


def test_a_table_with_missing_cells_is_repaired_as_the_reader_says(page, stored):
    damaged = CSV.replace(b"\n3,", b"\n?,").replace(b"\n5,", b"\n,")
    opened = bring(page(), "table", ("Pets.csv", damaged))
    assert re.search(quote("2 such cells … 2 of 40 rows"), said(opened)) and opened.button("missing-mean")
    assert "train-table" not in {button.key for button in opened.button}
    opened.button("missing-rows").click().run()
    assert re.search(quote("2 rows … left out"), said(opened))
    wanted = {"workload": "table", "table": link(opened, "table"), "missing": "rows", "batch": 4}
    stored(Experiment.of(wanted))
    opened.button("train-table").click().run()
    assert opened.session_state.asked.data["missing"] == "rows"


def test_a_number_is_estimated_or_each_of_its_values_is_a_class_as_the_reader_says(page):
    many = b"a,b\n" + b"".join(b"%d,%d\n" % (n, n % 3) for n in range(150))
    opened = bring(page(), "table", ("many.csv", many))
    name = link(opened, "table")
    opened.selectbox(f"label-{name}").select("a").run()
    assert re.search(quote("150 different values … estimated as a number"), said(opened))
    opened.toggle(f"regression-{name}-a").set_value(False).run()
    assert re.search(quote("a … 150 different values … regression on"), said(opened))


def test_a_column_that_is_left_out_and_a_number_far_from_the_rest_are_named_with_the_reason(page):
    odd = b"a,b,c,kind\n" + b"".join(
        b"nan,%d,%d,%s\n" % (-9999 if n < 3 else n, n % 7, b"pq"[n % 2 :][:1]) for n in range(40)
    )
    opened = bring(page(), "table", ("odd.csv", odd))
    told = said(opened)
    assert re.search(quote("a … left out … number"), told)
    assert re.search(quote("b … -9999 … 3 rows"), told) and opened.button("train-table")


def test_the_page_shows_what_a_table_looks_like(page):
    example = page().code[0].value
    rows = [line.split(",") for line in example.strip().splitlines()]
    assert len(rows) > 2 and len({len(row) for row in rows}) == 1 and rows[0][0].isalpha()


@pytest.mark.parametrize(
    ("key", "name", "content", "words"),
    [
        ("run", "x.zip", b"PK\x03\x04nothing", "x.zip … unpacked"),
        ("run", "x.zip", b"nothing", "x.zip … unpacked"),
        ("run", "x.exe", b"MZ", "no run.json … x.exe"),
        ("run", "x.csv", b"a,b\n1,2\n", "x.csv … not a run … “Train on a table”"),
        ("table", "x.npy", b"\x93NUMPY", "x.npy … NumPy … CSV"),
        ("table", "x.csv", b"a,b\n1,2\n3\n", "line 3: 1 … first row has 2"),
        ("table", "<b>.csv", b"\xff\xfe", "UTF-8"),
    ],
)
def test_a_file_that_is_none_is_refused_in_a_sentence(page, key, name, content, words):
    opened = bring(page(), key, (name, content))
    assert re.search(quote(words), said(opened).replace("\\", ""))
    assert key not in opened.query_params


@pytest.mark.parametrize(
    "link",
    [
        {"run": "../../etc/passwd"},
        {"run": "0123456789abcdef-upload01234567"},
        {"run": "0123456789abcdef-01234567"},
        {"table": "../../etc/passwd"},
        {"table": "0123456789abcdef"},
        {"run": "", "table": ""},
    ],
)
def test_a_link_to_what_is_not_there_opens_the_page_all_the_same(page, link):
    opened = page(**link)
    assert not opened.exception and not opened.metric
    assert any(link.values()) == bool(opened.warning)


def test_a_run_that_was_done_here_is_not_shown_as_uploaded(page, stored):
    folder = stored(Experiment(seed=77))
    assert "no longer on this machine" in said(page(run=folder.name))


def test_networks_are_off_unless_the_machine_says_otherwise(page, tmp_path, monkeypatch):
    assert "module_file" not in {field.key for field in page().file_uploader}
    monkeypatch.setenv("LOCKSTEP_MODULES", str(tmp_path))
    opened = page()
    opened.file_uploader("module_file").set_value(("net.py", b"net = loss = train = test = 1", "")).run()
    assert opened.button("train-module").label == "Train net"
    opened.file_uploader("module_file").set_value(("net.py", b"net = 1", "")).run()
    assert "not define loss, train, test" in said(opened).replace("\\", "")
    opened.file_uploader("module_file").set_value(("net.py", b"net = (", "")).run()
    assert "is not valid Python" in said(opened) and not opened.exception
    assert len(list(tmp_path.iterdir())) == 1


def test_only_where_networks_are_on_the_page_says_that_a_file_of_theirs_is_executed(page, tmp_path, monkeypatch):
    assert "nothing in them is executed." in page().sidebar.markdown[0].value
    monkeypatch.setenv("LOCKSTEP_MODULES", str(tmp_path))
    assert "except for a network's Python file" in page().sidebar.markdown[0].value


def test_the_server_takes_what_is_read_and_no_more():
    config = tomllib.loads((ROOT / "app" / ".streamlit" / "config.toml").read_text())
    assert config["server"]["maxUploadSize"] * 1_000_000 == upload.MOST_BYTES == csv_idx.MOST_BYTES


def test_files_beyond_the_bound_are_refused_before_they_are_kept(page, folders, monkeypatch):
    monkeypatch.setattr(upload, "MOST_BYTES", 100)
    opened = bring(page(), "table", ("pets.csv", CSV))
    assert "at most 100 are accepted" in said(opened)


def test_an_example_is_tried_as_if_it_had_been_uploaded(page):
    opened = page()
    opened.button("try-example").click().run()
    finish(opened)
    assert link(opened, "table").startswith("example_")
    assert any("240 rows, 4 columns" in one.value for one in opened.markdown)
    assert any("cat, dog and horse" in one.value or "3 classes" in one.value for one in opened.caption)
    assert opened.button("train-table").label == "Train on it"
