"""torchrun: ranks that torchrun started join a run."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from cluster.real import launchers, torchrun
from tests.quotes import quote

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
    import json, os, signal, sys, time
    import numpy as np
    from cluster.devices import Device
    from cluster.faults import Faults
    from cluster.network import Link, Network
    from cluster.real import gpus, torchrun

    def program(comm):
        comm.event_log.step = 2
        comm.event_log.losses.append((2, 1, comm.event_log.clock(), 0.5))
        {work}
        x = comm.all_reduce(np.full(5, comm.rank + 1.0))
        if comm.rank == 0:
            comm.send((x, "extra" and 1.0), 1)
            comm.send(None, 1, tag=9)
        elif comm.rank == 1:
            x = comm.recv(0)[0]
        return comm.shared(x).read(), comm.split(comm.rank % 2).all_gather(comm.rank)

    if __name__ == "__main__":
        torchrun.LAST_WORDS = 100.0  # as long as a busy machine takes
        {before}
        outcome = torchrun.run(program, backend="{backend}", timeout=200, {emulated})
        if outcome is None:
            os.write(1, b"not rank 0\\n")  # whole lines, for ranks share the pipe
        else:
            trace = outcome.trace()
            told = json.dumps({{
                "results": [r and [r[0].tolist(), r[1]] for r in outcome.results],
                "error": [type(outcome.error).__name__, str(outcome.error)],
                "notes": outcome.notes,
                "losses": [len(j.losses) for j in outcome.event_logs],
                "arrived": bool((trace.messages["arrived"] > trace.messages["sent"]).all()),
                "bytes": trace.traffic().tolist(),
                "transit": float((trace.messages["arrived"] - trace.messages["sent"]).min()),
                "seconds": trace.seconds(),
            }})
            os.write(1, f"outcome {{told}}\\n".encode())
"""


def launch(tmp_path, ranks, backend="gloo", work="pass", emulated="", before=""):
    """What rank 0 tells of a run of SCRIPT under torchrun, and what all ranks wrote."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT).format(work=work, backend=backend, emulated=emulated, before=before))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", str(script)]
    told = subprocess.run(command, capture_output=True, text=True, env=environment)
    lines = [line for line in told.stdout.splitlines() if line.startswith("outcome ")]
    assert len(lines) == 1, told.stdout + told.stderr
    return json.loads(lines[0].removeprefix("outcome ")), told


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["gloo", "sockets"])
def test_ranks_of_torchrun_run_a_program_and_rank_0_has_the_outcome_of_all(tmp_path, backend):
    outcome, told = launch(tmp_path, 3, backend)
    assert told.returncode == 0 and told.stdout.count("not rank 0") == 2
    assert outcome["error"] == ["NoneType", "None"]
    assert outcome["results"] == [[[6.0] * 5, [0, 2]], [[6.0] * 5, [1]], [[6.0] * 5, [0, 2]]]
    assert outcome["losses"] == [1, 1, 1] and outcome["arrived"]
    assert outcome["bytes"][0][1] >= 48 and outcome["bytes"][2][0] > 0
    assert outcome["notes"] == ["rank 1 never read 1 message from rank 0, tag 9"]


@pytest.mark.slow
def test_ranks_of_torchrun_emulate_a_network_and_a_device_on_top_of_the_real_ones(tmp_path):
    link = "Link(0.02, 1e9)"
    emulated = f"network=Network({link}, {link}), device=Device(1e9, 1e9, 0.1), faults=Faults(slow={{1: 2.0}})"
    outcome, _ = launch(tmp_path, 3, work="__import__('kernels').scale(np.ones(3), 2.0)", emulated=emulated)
    assert outcome["error"] == ["NoneType", "None"] and outcome["results"][0] == [[6.0] * 5, [0, 2]]
    assert outcome["transit"] >= 0.02 and outcome["seconds"] >= 0.1 * 2 + 0.02


@pytest.mark.slow
def test_a_planned_crash_under_torchrun_kills_the_rank_and_keeps_what_it_recorded(tmp_path):
    outcome, told = launch(tmp_path, 3, work="time.sleep(100 * comm.rank)", emulated="faults=Faults(crash={2: 1.0})")
    assert outcome["error"][0] in ("RankLost", "Cancelled") and told.returncode, outcome["error"]
    assert "Signal 9 (SIGKILL)" in told.stderr
    assert outcome["losses"][0] == 1 and outcome["losses"][2] == 1


@pytest.mark.slow
def test_a_rank_that_fails_under_torchrun_is_named_and_nothing_recorded_is_lost(tmp_path):
    outcome, _ = launch(tmp_path, 3, work="if comm.rank == 2: raise ValueError('no data')")
    assert outcome["error"] == ["RankFailed", "rank 2 failed at step 2: ValueError: no data"]
    assert outcome["losses"] == [1, 1, 1] and outcome["results"] == [None] * 3


@pytest.mark.slow
def test_a_rank_that_is_killed_under_torchrun_is_named(tmp_path):
    outcome, told = launch(tmp_path, 2, work="if comm.rank == 1: os.kill(os.getpid(), signal.SIGKILL)")
    assert outcome["error"][0] == "RankLost" and outcome["error"][1].startswith("rank 1 was lost at ")
    assert outcome["losses"] == [1, 0] and told.returncode != 0


@pytest.mark.slow
def test_a_rank_with_a_gpu_warms_up_on_the_cpu_where_another_has_none(tmp_path):
    before = 'warm = []; gpus.place_of = lambda _, local: ("cpu", "cuda:0")[local]'
    work = "comm.barrier(); return np.ones(2), (comm.device, warm)"
    outcome, _ = launch(tmp_path, 2, "nccl", work, emulated="warm_up=warm.append", before=before)
    assert outcome["error"] == ["NoneType", "None"] and "only 1 of 2 ranks have a CUDA GPU" in outcome["notes"][0]
    assert outcome["results"] == [[[1.0, 1.0], ["cpu", ["cpu"]]]] * 2


UNREADABLE = """
    class Word:
        def __reduce__(self):
            return int, ("seven",)

    comm.barrier()
    return Word() if comm.rank == 1 else None
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "sentence"),
    [
        (UNREADABLE, "rank 1 … ValueError: invalid literal for int()"),
        ("comm.barrier(); return (lambda: 1) if comm.rank == 1 else None", "rank 1 … step 2"),
    ],
)
def test_a_result_that_cannot_be_passed_on_under_torchrun_is_the_failure_of_its_rank(tmp_path, work, sentence):
    outcome, told = launch(tmp_path, 3, work=work.strip())
    assert outcome["error"][0] == "RankFailed" and re.search(quote(sentence), outcome["error"][1])
    assert outcome["losses"] == [1, 1, 1] and outcome["results"] == [None] * 3
    assert told.returncode == 0 and "Traceback" not in told.stderr


FINISHED_FIRST = """
    if comm.rank == 0:
        comm.send(os.getpid(), 1)
        return None
    other = int(comm.recv(0))
    time.sleep(2)  # in which rank 0 begins to wait for the records of the others
    for number in (other, os.getpid()):
        os.kill(number, signal.SIGTERM)
    time.sleep(600)
"""


@pytest.mark.slow
def test_a_rank_0_that_has_finished_is_told_to_stop_and_keeps_what_the_others_have_recorded(tmp_path):
    outcome, _ = launch(tmp_path, 2, "sockets", work=FINISHED_FIRST.strip())
    assert outcome["error"] == ["Cancelled", "cancelled"] and outcome["losses"] == [1, 1]


TOLD_WHILE_COLLECTING = """
    from cluster.real.links import Links
    abort = Links.abort
    if comm.rank == 0:
        Links.abort = lambda links: (os.kill(os.getpid(), signal.SIGTERM), abort(links))
    if comm.rank == 1:
        raise ValueError("no data")
"""


@pytest.mark.slow
def test_a_rank_0_that_is_told_to_stop_while_it_collects_the_records_of_others_goes_on_collecting(tmp_path):
    outcome, _ = launch(tmp_path, 2, "sockets", work=TOLD_WHILE_COLLECTING.strip())
    assert outcome["error"] == ["RankFailed", "rank 1 failed at step 2: ValueError: no data"]
    assert outcome["losses"] == [1, 1]


def test_a_process_that_nobody_started_as_a_rank_is_told_so(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    assert not launchers.variables()
    with pytest.raises(ValueError, match="Start it with torchrun"):
        torchrun.run(print)
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    assert launchers.variables()
