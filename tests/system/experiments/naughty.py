"""A job that misbehaves as the seed of its experiment says; started by test_pool.py in place of a job's worker."""

import json
import os
import signal
import subprocess
import sys
import time

from experiments.jobs import worker

spec = json.loads(sys.stdin.read())
tell = worker.StatusWriter()
worker.limit(spec)


def forever():
    while True:
        pass


def raises():
    raise RuntimeError("something is wrong here")


def segfaults():
    os.kill(os.getpid(), signal.SIGSEGV)


def eats_memory():
    hoard = []
    try:
        while True:
            hoard.append(bytearray(50_000_000))
    except MemoryError:
        hoard.clear()
        raise


def is_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def has_grandchildren():
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    families = [subprocess.Popen(sleep, stdout=out) for out in (None, subprocess.DEVNULL, None)]
    tell("progress", fraction=0.5, seconds=0, curve={"pids": [child.pid for child in families]}, tried={})
    time.sleep(600)


def floods():
    while True:
        os.write(tell.out.fileno(), b"x" * 100_000)


FOLLOWING = {"kind": "learning", "values": {"digest": "of the run before"}}


def continues():
    tell("result", status="finished", error="", folder="the run")
    tell("follows", job_spec=FOLLOWING)
    tell("progress", fraction=0.5, seconds=0, curve={}, tried={})
    time.sleep(600)


def continues_to_the_end():
    tell("result", status="finished", error="", folder="the run")
    tell("follows", job_spec=FOLLOWING)
    tell("result", status="finished", error="", folder="what follows")


def writes_nonsense():
    for line in ("{", "[]", "3", '{"kind": "progress"}', '{"kind": "result"}', "\0"):
        print(line, file=tell.out, flush=True)
    tell("error", error="it wrote nonsense and went on")
    sys.exit(1)


def forges_a_result():
    tell("error", error="the true end")
    print('{"kind": "result", "status": "finished", "error": "", "folder": "/"}', flush=True)
    sys.exit(1)


def is_deaf():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tell("progress", fraction=0.1, seconds=0, curve={}, tried={})
    forever()


def ends_without_a_word():
    print("the last words", file=sys.stderr)
    sys.exit(3)


def waits():
    tell("progress", fraction=0.25, seconds=1.5, curve={"step": [1, None], "loss": [2.0, 1.0]}, tried={"loss": []})
    time.sleep(600)


def shares_out_memory():
    hoard = "import time; hoard = b'x' * 150_000_000; print(flush=True); time.sleep(600)"
    families = [subprocess.Popen([sys.executable, "-c", hoard], stdout=subprocess.PIPE) for _ in range(4)]
    held = [child.stdout.readline() for child in families]
    tell("progress", fraction=len(held) / 4, seconds=0, curve={}, tried={})
    time.sleep(600)


TRICKS = (
    raises, segfaults, eats_memory, forever, is_killed, has_grandchildren, floods, writes_nonsense, is_deaf,
    ends_without_a_word, waits, forges_a_result, shares_out_memory,
    continues, continues_to_the_end,
)  # fmt: skip

try:
    TRICKS[spec["experiment"]["seed"]]()
except MemoryError:
    tell("error", error="this needs more memory.")
    sys.exit(1)
