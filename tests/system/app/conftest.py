"""Folders of runs that pages find, and a page under test."""

import sys
from functools import cache
from pathlib import Path

import pytest

from experiments.runs import store
from experiments.viewer.column_codec import unpack
from tests import fabricated
from tests.patience import PATIENCE

HERE = Path(__file__).parent
MAIN = HERE.parents[2] / "app" / "pages.py"


@pytest.fixture(autouse=True)
def main_module():
    """Put back the module `__main__`, which a page under test takes, and which new processes would import."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(scope="session", autouse=True)
def streamlit_looks_once():
    """Let Streamlit search the installed packages for components once, not for every page, and count no calls."""
    from streamlit import config
    from streamlit.components.v2 import manifest_scanner

    config.set_option("browser.gatherUsageStats", False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory):
    """Where the pages of this session find their runs, also if the source is edited meanwhile."""
    from app.session import session
    from experiments.jobs import pool
    from experiments.runs.summary import source_version

    before, version = session.ROOT, source_version()
    with pytest.MonkeyPatch.context() as patch:
        for module in (fabricated, pool):
            patch.setattr(module, "source_version", lambda: version)
        session.ROOT = tmp_path_factory.mktemp("runs")
        session.pool.clear()
        yield session.ROOT
        session.pool().close()
        session.pool.clear()
        session.ROOT = before


@pytest.fixture(scope="session")
def folders(shared_folder):
    """Where pages find their runs: the same folder for all tests, unless a file gives each test its own."""
    return shared_folder


@pytest.fixture
def own_folder(shared_folder, tmp_path, monkeypatch):
    """A folder of runs for one test, and a pool with no other jobs."""
    from app.session import session

    pool = session.pool
    pool().close()
    pool.clear()
    monkeypatch.setattr(session, "ROOT", tmp_path / "runs")
    session.ROOT.mkdir()
    yield session.ROOT
    pool().close()
    pool.clear()


@pytest.fixture
def stored(folders):
    """stored(experiment) puts a fabricated run where pages find it, as if it had been run before."""
    return lambda experiment, **how: store.save(fabricated.run(experiment, **how), folders)


@pytest.fixture
def canvases():
    """canvases(page) gives what the page draws on canvases, as {key: (header, columns)}."""
    return lambda page: {
        node.proto.id.split("-", 2)[2]: unpack(node.proto.bytes)
        for node in page.get("bidi_component")
        if node.proto.bytes
    }


@pytest.fixture
def page(folders):
    """page(query) is the workbench as it opens with that link, with all settings unfolded; runs wait for Run."""
    from urllib.parse import parse_qsl

    from streamlit.testing.v1 import AppTest

    def opened(query: str = "", unfolded: bool = True, at_once: bool = False):
        test = AppTest.from_file(str(MAIN), default_timeout=PATIENCE)
        for part in ("algorithm", "work", "cluster") if unfolded else ():
            test.session_state[f"more-{part}"] = True
        test.session_state["all_settings"] = unfolded
        test.session_state["at_once"] = at_once
        for name, value in parse_qsl(query, keep_blank_values=True):
            test.query_params[name] = value
        return test.run()

    return opened
