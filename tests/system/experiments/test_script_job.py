"""A reader's script as a job: refused where scripts are off, and ended, with what it recorded, whatever it does."""

import re

import pytest

from experiments.jobs import script
from experiments.jobs.pool import Pool
from experiments.runs import store
from tests.patience import wait_until
from tests.quotes import quote

GROUP = "import torch\nimport torch.distributed as dist\ndist.init_process_group('gloo')\n"
FOREVER = f"{GROUP}x = torch.ones(9)\nwhile True:\n    dist.all_reduce(x)\n"


@pytest.fixture
def allowed(monkeypatch):
    monkeypatch.setenv(script.SETTING, "1")


def run(text, root, said=lambda *progress: None, **settings):
    """The run of a script in this process."""
    spec = script.job_spec(text, "train.py", {"ranks": 3, **settings})
    return store.load_script(spec.perform(root, said))


@pytest.mark.parametrize("value", [None, "", "0", "yes"])
def test_a_job_with_a_script_is_refused_unless_the_owner_of_the_machine_says_1(tmp_path, monkeypatch, value):
    monkeypatch.delenv(script.SETTING, raising=False)
    if value is not None:
        monkeypatch.setenv(script.SETTING, value)
    with pytest.raises(ValueError, match=quote(f"scripts are off … set {script.SETTING}=1")):
        run("print('executed')", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_pool_on_a_host_executes_no_script_whoever_submits_it(tmp_path, monkeypatch):
    monkeypatch.delenv(script.SETTING, raising=False)
    mark = tmp_path / "executed"
    pool = Pool(tmp_path / "runs")
    try:
        job = pool.submit("ada", script.job_spec(f"open({str(mark)!r}, 'w')", "train.py", {}))
        wait_until(lambda: not pool.state(job).active)
        state = pool.state(job)
    finally:
        pool.close()
    assert state.status == "failed" and "scripts are off" in state.message and not mark.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "train.py is empty"),
        (" \n\t", "train.py is empty"),
        ("x" * 200_001, "200,001 bytes … 200,000"),
        ("for x in\n", "train.py is not Python … line 1"),
        ("x = (\n", "train.py is not Python … line 1"),
        ("x = '\ud800'\n", "train.py has characters … UTF-8"),
    ],
)
def test_what_is_no_script_is_refused_in_a_sentence(allowed, tmp_path, text, words):
    with pytest.raises(ValueError, match=quote(words)):
        run(text, tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{GROUP}x = torch.ones(3, device='cuda')\n", "CUDA … line 4 of train.py"),
        (f"{GROUP}if dist.get_rank():\n    dist.all_reduce(torch.ones(3))\n", "all_reduce … line 5 of train.py"),
        (f"{GROUP}dist.recv(torch.ones(3), (dist.get_rank() + 1) % 3)\n", "deadlock … line 4 of train.py"),
        ("raise SystemExit(3)\n", "exits with 3"),
        ("import a_module_that_nobody_has\n", "ModuleNotFoundError … a_module_that_nobody_has"),
    ],
)
def test_a_script_that_fails_is_stored_with_the_reason_and_the_line(allowed, tmp_path, text, words):
    done = run(text, tmp_path)
    assert done.status == "failed" and re.search(quote(words), done.error)


def test_the_traceback_of_a_script_has_its_own_lines_and_none_of_ours(allowed, tmp_path):
    text = f"{GROUP}def update():\n    raise KeyError('weights')\nif dist.get_rank() == 1:\n    update()\n"
    done = run(text, tmp_path)
    assert re.search(quote("line 7 … update() … line 5 … raise KeyError('weights')"), done.traceback, re.DOTALL)
    assert done.traceback.count("File ") == done.traceback.count('File "train.py"') == 2


def test_a_script_without_torch_or_with_one_rank_has_a_result(allowed, tmp_path):
    assert run("print('hello')\n", tmp_path).printed == ((0, "hello"), (1, "hello"), (2, "hello"))
    alone = run(f"{GROUP}dist.all_reduce(torch.ones(9))\n", tmp_path, ranks=1)
    assert alone.status == "finished" and alone.summary.wait.tolist() == [0.0]


def test_a_script_runs_in_an_empty_folder_that_is_removed(allowed, tmp_path):
    lines = run("import os\nopen('left', 'w').close()\nprint(os.getcwd(), sorted(os.listdir()))\n", tmp_path).printed
    place, _, files = lines[0][1].partition(" ")
    assert files == "['left', 'train.py']" and "runs" not in place
    assert not store.Path(place).exists()


def test_of_long_output_the_first_and_the_last_lines_are_kept(allowed, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "KEPT_LINES", 100)
    done = run("for number in range(1000):\n    print(number)\n", tmp_path, ranks=1)
    assert [line for _, line in done.printed] == [*map(str, range(50)), *map(str, range(950, 1000))]
    assert re.search(quote("1,000 lines … first and the last 50"), done.notes[0])


def test_a_script_that_prints_too_much_or_runs_too_long_is_ended_and_stored(allowed, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "MOST_LINES", 100)
    for text in (f"{FOREVER}    print(1)\n", "while True:\n    print(1)\n"):
        done = run(text, tmp_path)
        assert done.status == "cancelled" and "100 lines of output" in done.error and len(done.printed) > 100
    monkeypatch.setattr(script, "LONGEST", 0.5)
    done = run(FOREVER, tmp_path)
    assert done.status == "cancelled" and "the limit of 0.5 s" in done.error and done.summary.seconds > 0


def test_a_finished_run_is_found_and_not_done_again(allowed, tmp_path, monkeypatch):
    spec = script.job_spec("print('done')\n", "train.py", {"ranks": 2})
    first = spec.perform(tmp_path)
    monkeypatch.delattr(script, "_run")
    assert spec.perform(tmp_path) == first and len(list(tmp_path.glob("[0-9a-f]*"))) == 1


def test_progress_names_the_step_the_time_and_the_loss(allowed, tmp_path):
    said = []
    run(script.example("ddp.py"), tmp_path, lambda part, phase: said.append((part, phase)), steps=10)
    parts, phases = zip(*said, strict=True)
    assert sorted(parts) == list(parts) and 0 <= parts[0] <= parts[-1] <= 1
    assert any(re.search(r"step \d+, .* of virtual time, loss \d", phase) for phase in phases)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """The state of a job of 256 ranks in 3 GB that a reader has stopped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(script.SETTING, "1")
        pool = Pool(tmp_path_factory.mktemp("runs"), memory=3_000_000_000)
        try:
            job = pool.submit("ada", script.job_spec(f"print('here')\n{FOREVER}", "train.py", {"ranks": 256}))
            wait_until(lambda: "virtual time" in pool.state(job).phase or not pool.state(job).active)
            pool.cancel(job, "ada")
            return wait_until(lambda: not (state := pool.state(job)).active and state)
        finally:
            pool.close()


def test_a_reader_stops_a_script_and_what_it_recorded_is_stored(stopped):
    done = store.load_script(stopped.folder)
    assert done.status == "cancelled" and done.error == "you stopped it." and done.summary.seconds > 0


def test_many_ranks_fit_into_a_job_though_their_threads_reserve_more_addresses_than_it_may_use(stopped):
    assert stopped.folder and len(store.load_script(stopped.folder).printed) == 256, stopped.message
