"""The reader's own script on the Your own page, driven without a browser; scripts run in the real pool."""

import re
import time
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from app.session import session
from experiments.jobs import script as job
from experiments.jobs.job import JobState
from experiments.runs import store
from tests.patience import PATIENCE
from tests.quotes import quote
from tests.system.app.finish import finish
from tests.tiers import slow_except

GROUP = "import torch\nimport torch.distributed as dist\ndist.init_process_group('gloo')\n"
SHORT = f"{GROUP}for _ in range(3):\n    dist.all_reduce(torch.ones(1000))\nprint('rank', dist.get_rank())\n"


def script():
    from app import upload

    upload.page()


@pytest.fixture
def page(folders, monkeypatch):
    """page(allowed, name=value, ...) is the page as it opens with that link, where scripts are on or off."""

    def opened(allowed=True, **link):
        monkeypatch.setenv(job.SETTING, "1" if allowed else "")
        test = AppTest.from_function(script, default_timeout=PATIENCE)
        for name, value in link.items():
            test.query_params[name] = value
        return test.run()

    return opened


def ran(page, text=None):
    """Run the script on the page, after putting in this text, and wait until it has ended."""
    if text is not None:
        page.text_area("script_text").set_value(text).run()
    page.button("run-script").click().run()
    if isinstance(session.pool(), Here):
        session.pool().perform()
        page.run()
    return finish(page)


class Here:
    """A pool that does its jobs in this process, once a test says so; in one of its own a job loads torch first."""

    def __init__(self, root):
        self.root, self.jobs, self.states = root, {}, {}

    def submit(self, owner, work):
        self.jobs[work.key()], self.states[work.key()] = work, JobState("running")
        return work.key()

    def touch(self, owner):
        pass

    def state(self, key):
        return self.states[key]

    def perform(self):
        for key, work in self.jobs.items():
            self.states[key] = JobState("finished", folder=work.perform(self.root))


@pytest.fixture
def here(folders, monkeypatch):
    pool = Here(folders)
    monkeypatch.setattr(session, "pool", lambda: pool)


def said(page):
    return " ".join(element.value for element in (*page.markdown, *page.warning, *page.error, *page.caption))


def stored(folders):
    return sorted(path.name for path in folders.iterdir() if store.is_script(path))


def test_a_hosted_workbench_has_no_way_to_run_a_script_and_says_how_its_owner_turns_it_on(page, folders):
    before = stored(folders)
    for link in ({}, {"script": "0123456789abcdef-01234567"}, {"script": "../../etc/passwd"}):
        opened = page(allowed=False, **link)
        assert not opened.exception and not opened.text_area and "run-script" not in {one.key for one in opened.button}
        assert f"set {job.SETTING}=1" in said(opened).replace("\\", "")
    assert stored(folders) == before


def test_a_hosted_workbench_refuses_a_script_that_was_on_the_page_when_it_was_turned_off(page, folders, monkeypatch):
    opened, before = page(), stored(folders)
    opened.text_area("script_text").set_value("open('executed', 'w')").run()
    opened.session_state.script_work = job.job_spec("open('executed', 'w')", "train.py", {})
    monkeypatch.setenv(job.SETTING, "")
    opened.run()
    assert not opened.text_area and not opened.get("progress") and stored(folders) == before


def test_a_script_is_run_and_its_result_is_at_the_pages_address(page, canvases):
    opened = ran(page(), SHORT)
    assert re.search(quote("script.py on 4 ranks, 10GbE … **The run takes"), said(opened))
    assert canvases(opened).keys() == {"script-timeline"}
    assert "Sent by a rank" in {metric.label for metric in opened.metric}
    name = opened.query_params["script"]
    name = name if isinstance(name, str) else name[0]  # a list, if the page set it
    again = page(script=name)
    assert again.text_area("script_text").value == SHORT and "run-script" in {one.key for one in again.button}
    assert [metric.value for metric in again.metric] == [metric.value for metric in opened.metric]
    shown = page(allowed=False, script=name)  # to look is no danger
    assert [metric.value for metric in shown.metric] == [metric.value for metric in opened.metric]


def test_a_slow_rank_is_compared_with_the_run_before_it(page, here):
    opened = ran(page(), job.example("ddp.py").replace("STEPS, BATCH, CLASSES = 20,", "STEPS, BATCH, CLASSES = 4,"))
    opened.number_input("script_slow").set_value(2).run()
    opened = ran(opened)
    assert re.search(quote("rank 2 makes the others wait … in all\\_reduce at line … of ddp.py"), said(opened))
    assert re.search(
        quote("**Rank 2 four times slower** … The same numbers … A step takes … times as long"), said(opened)
    )
    alone = page(script=opened.query_params["script"])  # without a previous run on the page
    assert re.search(quote("Rank 2, four times slower … a step takes … instead of …"), said(alone))


def test_each_example_can_be_chosen(page):
    opened = page()
    for name in job.EXAMPLES:
        opened.selectbox("script_example").select(name).run()
        assert opened.text_area("script_text").value == job.example(name)
        assert opened.text_area("script_text").label == name


def test_the_script_of_an_error_is_shown_with_its_line_and_no_line_of_ours(page, here):
    opened = ran(page(), f"{GROUP}def update():\n    raise KeyError('weights')\nupdate()\n")
    assert re.search(quote("The script failed … KeyError"), said(opened))
    (trace,) = (code.value for code in opened.code if "Traceback" in code.value)
    assert "line 6" in trace and "app/" not in trace and "cluster/" not in trace


@pytest.mark.parametrize(
    ("text", "words"),
    slow_except(
        1,
        [
            (" ", "is empty; write or upload"),
            ("for x in", "script.py is not Python … line 1"),
            (f"{GROUP}dist.recv(torch.ones(1), 1 - dist.get_rank() % 2)", "deadlock … line 4"),
        ],
    ),
)
def test_whatever_the_script_is_the_page_says_in_a_sentence_what_became_of_it(page, text, words):
    opened = ran(page(), text)
    assert re.search(quote(words), said(opened).replace("\\", ""), re.IGNORECASE)


def test_a_slow_rank_that_is_not_there_is_refused_before_anything_runs(page):
    opened = page()
    opened.number_input("script_slow").set_value(9).run()
    opened.button("run-script").click().run()
    assert re.search(quote("there is no rank 9 … 0 to 3"), said(opened)) and not opened.get("progress")


@pytest.mark.slow
def test_one_rank_has_a_result(page):
    opened = page()
    opened.number_input("script_ranks").set_value(1).run()
    assert "a single rank waits for nobody" in said(ran(opened, SHORT))


def test_a_reader_stops_a_script_without_end(page):
    opened = page()
    opened.text_area("script_text").set_value(f"{GROUP}x = torch.ones(9)\nwhile True:\n    dist.all_reduce(x)\n").run()
    opened.button("run-script").click().run()
    while not any("virtual time" in one.proto.text for one in opened.get("progress")):
        time.sleep(0.1)
        opened.run()
    next(one for one in opened.button if one.label == "Stop").click().run()
    finish(opened)
    assert re.search(quote("The script was stopped … You stopped it."), said(opened))


def test_a_script_that_is_stopped_before_it_begins_is_no_error_and_leaves_no_older_result(page, here, monkeypatch):
    opened = ran(page(), SHORT)
    assert opened.metric
    ended = JobState("cancelled", message="stopped before it began")
    stand_in = SimpleNamespace(submit=lambda owner, work: work.key(), state=lambda key: ended)
    monkeypatch.setattr(session, "pool", lambda: stand_in)
    opened.text_area("script_text").set_value(f"{SHORT}print()\n").run()
    opened.button("run-script").click().run()
    assert not opened.exception and not opened.error and not opened.metric
    assert [one.value for one in opened.info] == ["Stopped before it began."]
