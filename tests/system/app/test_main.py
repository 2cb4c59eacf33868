"""The server, from its command to its end."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil

from tests.patience import PATIENCE, wait_until
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[3]
BROWSER = """import sys, time, urllib.request, pathlib
address = sys.argv[1]
while True:
    try:
        told = f"{address} {urllib.request.urlopen(address).status}"
        break
    except OSError:
        time.sleep(0.1)
pathlib.Path(sys.argv[2]).write_text(told)
"""


def test_its_command_opens_a_browser_and_does_the_first_pages_run_and_its_end_leaves_nothing(tmp_path):
    (tmp_path / "browser.py").write_text(BROWSER)
    port = free_port()
    words = ["streamlit", "run", "app/main.py", "--server.port", str(port), "--server.headless", "false"]
    places = {
        "LOCKSTEP_RUNS": str(tmp_path / "runs"),
        "BROWSER": f"{sys.executable} {tmp_path}/browser.py %s {tmp_path}/seen",
    }
    server = subprocess.Popen([sys.executable, "-m", *words], cwd=ROOT, env={**os.environ, **places})
    try:
        seen, run = tmp_path / "seen", partial(tmp_path.glob, "runs/*/run.json")
        wait_until(lambda: server.poll() is not None or (seen.exists() and any(run())))
        assert server.poll() is None
        family = psutil.Process(server.pid).children(recursive=True)
    finally:
        server.terminate()
        server.wait()
    assert (tmp_path / "seen").read_text() == f"http://localhost:{port}/ 200"
    assert len([*tmp_path.glob("runs/*/run.json")]) == 1
    assert not psutil.wait_procs(family, timeout=PATIENCE)[1]


FIRST_PAGE = """import sys
from streamlit.testing.v1 import AppTest
from tests.patience import PATIENCE

for _ in range(2):  # the second time its run lies in the store, and is read
    page = AppTest.from_file(sys.argv[1], default_timeout=PATIENCE).run()
    while not any(one.label == "Held-out accuracy" and one.value != "\N{EN DASH}" for one in page.metric):
        page.run()
print(len(page.exception), *("button" == one.label for one in page.button))
print(*sorted({name for name in sys.modules if name in ("pandas", "app.textbook.page", "app.schedules.page")}))
"""


def test_a_first_page_imports_neither_pandas_nor_other_pages_and_leaves_no_element_behind(tmp_path):
    (tmp_path / "first.py").write_text(FIRST_PAGE, "utf-8")
    said = subprocess.run(
        [sys.executable, str(tmp_path / "first.py"), str(ROOT / "app" / "pages.py")],
        cwd=ROOT, env={**os.environ, "LOCKSTEP_RUNS": str(tmp_path / "runs"), "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told, imported = said.stdout.splitlines()
    assert told.split()[0] == "0" and "True" not in told
    assert not imported
