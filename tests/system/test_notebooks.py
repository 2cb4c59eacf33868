"""The example notebooks run from their first cell to their last, in a kernel, and their pictures draw in a browser."""

import re
from pathlib import Path

import pytest

import lockstep
from experiments.specification.experiment import Experiment
from tests.chromium import CHROMIUM
from tests.patience import PATIENCE
from tests.tiers import slow_except

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
AT_ONCE = """
from experiments.cli import progress_bar
progress_bar.PATIENCE = progress_bar.OFTEN = 0"""
DRAWN = """name => {
  const inside = document.querySelector("iframe").contentDocument.querySelector(name).shadowRoot;
  return [...inside.querySelectorAll("canvas")].some((one) => {
    const blank = Object.assign(document.createElement("canvas"), {width: one.width, height: one.height});
    return one.width && one.toDataURL() !== blank.toDataURL();
  });
}"""


class Client(nbclient.NotebookClient):
    """Executes a notebook, and keeps what was drawn and drawn over."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.redrawn = []

    def process_message(self, msg, *rest):
        if msg["msg_type"] == "update_display_data":
            self.redrawn.append(msg["content"]["data"])
        return super().process_message(msg, *rest)


@pytest.fixture(scope="module", params=slow_except(1, sorted(FOLDER.glob("*.ipynb"))), ids=lambda path: path.stem)
def executed(request):
    """A notebook after all its cells, and what was drawn over."""
    notebook = nbformat.read(request.param, as_version=4)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    first.source += AT_ONCE
    client = Client(notebook, timeout=PATIENCE, startup_timeout=PATIENCE, resources={"metadata": {"path": str(FOLDER)}})
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)  # which pytest-xdist gives its workers; a cell has no edge
        client.execute()  # raises the error of a cell
    return request.param.stem, notebook, client.redrawn


def outputs(notebook, kind: str) -> list[str]:
    """All outputs of a kind, in order."""
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    return ["".join(out["data"][kind]) for cell in cells for out in cell.outputs if kind in out.get("data", {})]


@pytest.mark.slow
def test_a_notebook_shows_summaries_tables_pictures_and_progress(executed):
    name, notebook, redrawn = executed
    plain, html = outputs(notebook, "text/plain"), outputs(notebook, "text/html")
    assert [text for text in html if text.startswith("<iframe srcdoc=")]
    if name == "first_run":
        assert any("held-out loss" in text and "easgd" in text for text in plain)
        assert any("real processes" in text and "held-out loss" in text for text in plain)
    else:
        assert [text for text in html if text.startswith("<table>") and "<td>easgd</td>" in text]
        assert any("samples_per_second" in text for text in plain)
    drawn = [data["text/html"] for data in redrawn]
    assert [text for text in drawn if text.startswith("<progress")] and drawn[-1] == ""  # it is gone in the end


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
def test_the_pictures_of_a_notebook_draw_in_a_browser_at_their_full_height(executed, browser, tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    frames = [text for text in outputs(executed[1], "text/html") if text.startswith("<iframe")]
    (tmp_path / "outputs.html").write_text("<!doctype html><meta charset=utf-8>" + "".join(frames), "utf-8")
    page, complaints = browser.new_context(offline=True).new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((tmp_path / "outputs.html").as_uri())
    inside = page.frame_locator("iframe").first
    sync_api.expect(inside.locator("[aria-label^='Timeline of']").first).to_be_visible()
    for name in ("loss", "timeline-0"):
        page.wait_for_function(DRAWN, arg=f"#canvas-{name}")
    page.wait_for_function("() => !document.querySelector('iframe').style.height.startsWith('760')")
    page.wait_for_function(
        "() => { const f = document.querySelector('iframe');"
        " return f.clientHeight >= f.contentDocument.body.getBoundingClientRect().height }",
    )
    assert not complaints


def test_a_run_by_name_is_the_run_of_that_experiment():
    by_name = lockstep.run("easgd", workers=2, steps=12, evaluations=3)
    again = lockstep.run(Experiment.of({"algorithm": "easgd", "workers": 2, "steps": 12, "evaluations": 3}))
    assert by_name.summary["digest"] == again.summary["digest"]
    assert re.search(r"^EASGD on handwritten digits .*2 workers", repr(by_name))
    with pytest.raises(ValueError, match=r"no setting 'wrokers'.*workers"):
        lockstep.run("easgd", wrokers=2)
    with pytest.raises(ValueError, match="momentum has no effect"):
        lockstep.run("sync_sgd", momentum=0.5)


def test_a_sweep_has_a_row_for_each_combination_of_what_is_listed():
    made = lockstep.sweep(["sync_sgd", "easgd"], workers=[1, 2], steps=5, evaluations=1)
    assert [(row["algorithm"], row["workers"], row["status"]) for row in made.rows] == [
        ("sync_sgd", 1, "finished"), ("sync_sgd", 2, "finished"), ("easgd", 1, "finished"), ("easgd", 2, "finished"),
    ]  # fmt: skip
    assert made.arrow().to_pylist() == made.rows
    assert made._repr_html_().count("<tr>") == 5 and len(repr(made).splitlines()) >= 5
    with pytest.raises(ValueError, match="workers has no values"):
        lockstep.sweep("sync_sgd", workers=[])
