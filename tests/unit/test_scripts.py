"""The scripts that browsers get, judged by oxlint as whole pages: joined from files that use each other's names."""

import subprocess
import sysconfig
from pathlib import Path

import pytest

from app.browser.components import MOUNT
from experiments.viewer import canvases
from lessons import progress
from lessons.book import site
from tests.sources import ROOT

BROWSER, BOOK = ROOT / "app" / "browser", ROOT / "lessons" / "book"
LIVE = ROOT / "lessons" / "live" / "browser"
FOLDERS = {"progress.js": BOOK, **{path.name: LIVE for path in LIVE.glob("*.js")}}
CANVASES = ROOT / "experiments" / "viewer" / "canvases"
LINT = [str(Path(sysconfig.get_path("scripts")) / "oxlint"), "--config", str(ROOT / "oxlint.json")]
MODULE = "\nexport {};\n"  # so that a name which nothing on the page uses is found


def book(*names: str) -> str:
    ours = [name for name in (*site.SCRIPTS, *names) if not name.startswith("katex") and name != "canvases.js"]
    return "".join((FOLDERS.get(name, BOOK / "assets") / name).read_text("utf-8") for name in ours)


def canvas(name: str) -> str:
    """Return a canvas's script, which may leave unused what all canvases share; the timeline uses all of that."""
    js = canvases.parts(name)["js"] + MOUNT
    if name == "timeline":
        return js
    _, _, own = js.partition((CANVASES / "save.js").read_text("utf-8"))
    return f"/* oxlint-disable no-unused-vars */{js.removesuffix(own)}/* oxlint-enable no-unused-vars */{own}"


def workbench(name: str) -> str:
    before = progress.SCRIPT.read_text("utf-8") if name == "storage" else ""
    return before + (BROWSER / f"{name}.js").read_text("utf-8")


PAGES = {
    **{f"canvas {name}": canvas(name) for name in canvases.NAMES},
    **{f"workbench {path.stem}": workbench(path.stem) for path in sorted(BROWSER.glob("*.js"))},
    "book front": book("front.js", *site.AROUND) + MODULE,
    "book chapter": book(*site.CHAPTER) + MODULE,
    "book chapter that computes": book(*site.CHAPTER, *site.LIVE, "predict.js", "editor.js") + MODULE,
    "book playground": book(*site.AROUND, *site.LIVE, "playground.js") + MODULE,
    "book again": book("questions.js", "again.js", *site.AROUND) + MODULE,
}


def judge(script: str, folder: Path) -> subprocess.CompletedProcess:
    (folder / "page.js").write_text(script, "utf-8")
    return subprocess.run([*LINT, "page.js"], cwd=folder, capture_output=True, encoding="utf-8", check=False)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_name_that_is_undefined_or_unused_and_no_likely_mistake(page, tmp_path):
    judged = judge(PAGES[page], tmp_path)
    assert judged.returncode == 0, judged.stdout


@pytest.mark.parametrize("mistake", ["wrongName();", "function unused() {}"])
def test_a_wrong_and_an_unused_name_are_found(mistake, tmp_path):
    judged = judge(PAGES["canvas curve"] + mistake, tmp_path)
    assert judged.returncode == 1, judged.stdout
