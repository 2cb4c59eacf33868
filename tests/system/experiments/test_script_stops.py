"""A script is ended with one sentence: by Ctrl-C whatever it does, and by the watchdog if it blocks."""

import os
import signal
import subprocess
import sys

import pytest

from experiments.runs import store
from installation import ROOT

SCRIPTS = {
    "computes": "import torch\nprint('begun')\nx = torch.ones(9)\nwhile True: x @ x\n",
    "catches": "import torch\nprint('begun')\nwhile True:\n  try: torch.ones(9) @ torch.ones(9)\n  except: pass\n",
    "spins": "print('begun')\nwhile True: pass\n",
    "blocks": "import threading\nprint('begun')\nthreading.Event().wait()\n",
    "starts none": "import torch.multiprocessing as mp\nimport sys\nprint('begun', flush=True)\n"
    "while True: pass\nmp.spawn(print)\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_ctrl_c_ends_a_script_with_one_sentence_and_exit_code_130(tmp_path, name):
    path = tmp_path / "train.py"
    path.write_text(SCRIPTS[name], "utf-8")
    command = [sys.executable, "-m", "experiments", "script", path, "--ranks", "2", "--runs", tmp_path / "runs"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, cwd=tmp_path, **pipes) as job:
        try:
            while "begun" not in (line := job.stdout.readline()):
                assert line, job.stderr.read()
            job.send_signal(signal.SIGINT)
            _, err = job.communicate()
        finally:
            job.kill()
    assert job.returncode == 130 and "Traceback" not in err and err.splitlines()[-1].startswith("cancelled"), err
    (folder,) = store.recent(tmp_path / "runs")
    assert store.load_script(folder).status == "cancelled"


BLOCKS = """
import sys, threading
from cluster.torch.launch import run
from cluster.torch.machines import SimulatedMachines

def block():
    threading.Event().wait()

def catch():
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass

try:
    run(catch if "catch" in sys.argv else block, SimulatedMachines(2, patience=0.5), stop=lambda: "stop" in sys.argv)
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.slow
def test_a_rank_that_blocks_in_c_or_catches_everything_is_ended_with_its_line(tmp_path):
    path = tmp_path / "blocks.py"
    path.write_text(BLOCKS, "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for arguments, words in (
        ((), "Blocked rank 0 (line 7 of blocks.py) blocks in C++"),
        (("catch",), "Blocked rank 0 (line 1"),
        (("stop",), "Cancelled cancelled while rank 0 (line 7 of blocks.py) blocks"),
    ):
        done = subprocess.run([sys.executable, path, *arguments], env=environment, capture_output=True, text=True)
        assert done.stdout.startswith(words) and len(done.stdout.splitlines()) == 1, done.stdout
        assert ("catches the exception that should end it" in done.stdout) == ("catch" in arguments), done.stdout
