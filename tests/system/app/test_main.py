"""The server, from its command to its end."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[3]
BROWSER = """import sys, time, urllib.request, pathlib
address = sys.argv[1]
for _ in range(3000):
    try:
        told = f"{address} {urllib.request.urlopen(address).status}"
        break
    except OSError:
        time.sleep(0.1)
pathlib.Path(sys.argv[2]).write_text(told)
"""


def test_its_command_opens_a_browser_and_does_the_first_pages_run_and_its_end_leaves_nothing(tmp_path):
    (tmp_path / "browser.py").write_text(BROWSER)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = ["streamlit", "run", "app/main.py", "--server.port", str(port), "--server.headless", "false"]
    places = {
        "LOCKSTEP_RUNS": str(tmp_path / "runs"),
        "BROWSER": f"{sys.executable} {tmp_path}/browser.py %s {tmp_path}/seen",
    }
    server = subprocess.Popen([sys.executable, "-m", *words], cwd=ROOT, env={**os.environ, **places})
    try:
        until = time.monotonic() + 300
        while time.monotonic() < until and not ((tmp_path / "seen").exists() and [*tmp_path.glob("runs/*/run.json")]):
            assert server.poll() is None
            time.sleep(0.05)
        family = psutil.Process(server.pid).children(recursive=True)
    finally:
        server.terminate()
        server.wait(120)
    assert (tmp_path / "seen").read_text() == f"http://localhost:{port}/ 200"
    assert len([*tmp_path.glob("runs/*/run.json")]) == 1
    assert not psutil.wait_procs(family, timeout=60)[1]
