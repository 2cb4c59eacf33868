"""Scripts: as for torchrun, with mp.spawn, with mp.Process, and files that are none."""

import os
import textwrap

import pytest
import torch

from cluster.comm import ClusterError, RankFailed
from cluster.torch import simulate
from cluster.torch.process_state import OwnModules
from tests.quotes import quote


@pytest.fixture
def script(tmp_path):
    def write(text, name="train.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text), "utf-8")
        return path

    return write


def test_a_script_runs_once_per_rank_with_globals_and_modules_of_its_own(script):
    script("COUNT = 0\n", "state.py")
    path = script(
        """
        import os, sys
        import torch.distributed as dist
        import state
        dist.init_process_group()
        state.COUNT += 1
        dist.barrier()
        result = state.COUNT, dist.get_rank(), sys.argv[1:], __name__
        """
    )
    results = simulate(path, 3, args=("--lr", 0.1)).results
    assert [names["result"] for names in results] == [(1, r, ["--lr", "0.1"], "__main__") for r in range(3)]


def test_installed_packages_are_shared_by_ranks_even_below_the_folder_of_the_script():
    """A virtual environment often lies next to the script."""
    finder = OwnModules(os.path.dirname(os.path.dirname(os.path.dirname(torch.__file__))))
    assert finder.find_spec("torch.nn", torch.__path__) is None and not finder.files


def test_a_simulated_script_shows_itself_in_a_line_and_leaves_the_names_that_it_defined(script):
    done = simulate(script("import time\nanswer = 42\ntime.sleep(0.25)\n"), 2)
    assert [set(names) for names in done.results] == [{"time", "answer"}] * 2
    assert repr(done) == "<2 ranks, 0 steps, 0.25 s of virtual time>"


def test_a_script_that_starts_its_ranks_itself_decides_their_number(script):
    body = """
        import torch, torch.distributed as dist, torch.multiprocessing as mp
        def work(rank, size, results=None):
            dist.init_process_group("gloo", init_method="tcp://localhost:1234", rank=rank, world_size=size)
            x = torch.ones(1) * rank
            dist.all_reduce(x)
            print("sum", x.item())
        if __name__ == "__main__":
    """
    spawn = "        mp.spawn(work, args=(3,), nprocs=3, join=True)\n"
    by_hand = """
            mp.set_start_method("spawn")
            started = []
            for rank in range(3):
                process = mp.Process(target=work, args=(rank, 3))
                process.start()
                started.append(process)
            for process in started:
                process.join()
    """
    for name, rest in (("spawn.py", "    " + spawn), ("processes.py", by_hand)):
        outcome = simulate(script(textwrap.dedent(body) + textwrap.indent(textwrap.dedent(rest), "    "), name), 5)
        assert sorted(outcome.output) == [(r, "sum 3.0") for r in range(3)], name
        assert "starts 3 ranks" in outcome.notes[0]


def test_a_script_gets_values_from_its_ranks_by_a_queue_or_a_manager(script):
    path = script(
        """
        import multiprocessing as mp
        def work(rank, queue, found):
            queue.put(rank)
            found[rank] = rank * 10
        if __name__ == "__main__":
            queue, found = mp.Queue(), mp.Manager().dict()
            for rank in range(2):
                mp.Process(target=work, args=(rank, queue, found)).start()
            assert sorted([queue.get(), queue.get()]) == [0, 1] and dict(found) == {0: 0, 1: 10}
            queue.get()
        """
    )
    with pytest.raises(ClusterError, match=quote("a queue is empty (line 11 of train.py)")):
        simulate(path, 2)


def test_a_script_whose_ranks_have_failed_does_not_continue(script):
    path = script(
        """
        import torch.multiprocessing as mp
        def work(rank):
            raise KeyError(rank)
        if __name__ == "__main__":
            mp.spawn(work, nprocs=2)
            raise OSError("it went on")
        """
    )
    with pytest.raises(RankFailed, match="rank 0 failed"):
        simulate(path, 2)


def test_a_file_that_is_no_script_is_named(script, tmp_path):
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    for path, words in (
        (tmp_path / "missing.py", "no script … missing.py"),
        (script("def broken(:\n", "broken.py"), "broken.py is not Python … line 1"),
        (tmp_path / "binary.py", "binary.py is not a text file"),
        (
            script("import torch.multiprocessing as mp\ndef main():\n    mp.spawn(print)\n", "idle.py"),
            "ended without starting any ranks",
        ),
    ):
        with pytest.raises(ValueError, match=quote(words)):
            simulate(path, 2)


def test_the_files_that_a_script_imports_or_reads_in_its_folder_are_known(script, tmp_path):
    script("import torch\nRATE = 1\n", "rates.py")
    (tmp_path / "data").mkdir()
    for name in ("points.txt", "more.txt", "other.txt"):
        script("1 2\n", f"data/{name}")
    torch.save(torch.ones(2), tmp_path / "weights.pt")
    path = script(
        f"""
        import os, rates, torch
        from pathlib import Path
        folder = Path({str(tmp_path)!r})
        open(folder / "data" / "points.txt").read()
        (folder / "data" / "more.txt").read_text()
        torch.load(folder / "weights.pt")
        open(folder / f"out-{{os.environ['RANK']}}.txt", "w").write("out")
        os.path.exists(folder / "data" / "other.txt")
        """
    )
    files = simulate(path, 2, on_line=print).recorded.files
    assert [os.path.relpath(file, tmp_path) for file in files] == [
        *("data/more.txt", "data/points.txt", "rates.py", "weights.pt")
    ]
    open(tmp_path / "data" / "other.txt", encoding="utf-8").close()  # the hook stays, and looks no more
    assert simulate(script("x = 1\n"), 2).recorded.files == ()
