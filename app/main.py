"""Lockstep's workbench: `streamlit run app/main.py`. The server; pages.py lists the pages."""

import asyncio
import sys
import threading
import time
import webbrowser
from contextlib import asynccontextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
if str(HERE.parent) not in sys.path:  # Streamlit puts app/ there, and not the root
    sys.path.insert(0, str(HERE.parent))

import streamlit as st  # noqa: E402
from starlette.middleware import Middleware  # noqa: E402

from app.embedding import EmbedMiddleware  # noqa: E402
from app.opening import OpeningMiddleware  # noqa: E402

LATER = 3.0  # s that the first page has the machine to itself, before a process is made ready for the next run


def prepare() -> None:
    """Load what pages need and what the first one shows, and prewarm a process for the next run."""
    from PIL import Image

    from app import session
    from app.questions import asked
    from app.views import kernels, schedules, textbook, upload, workbench  # noqa: F401
    from experiments.experiment import Experiment

    Image.preinit()  # Streamlit looks at the page's icon with it
    asked(Experiment())  # imports the algorithms of all questions
    folder = session.pool().state(session.pool().submit("the first reader", Experiment())).folder
    if folder:
        session.timeline_frame(str(folder), None, True)
    time.sleep(LATER)
    session.pool().prewarm()


def welcome() -> None:
    """Open a browser where there is a screen. Streamlit leaves that to apps."""
    if not st.get_option("server.headless"):
        webbrowser.open(f"http://localhost:{st.get_option('server.port')}/{st.get_option('server.baseUrlPath')}")


@asynccontextmanager
async def lifespan(_):
    """Prepare while the first browser still fetches Streamlit's own files."""
    threading.Thread(target=prepare, daemon=True).start()
    asyncio.get_running_loop().call_soon(threading.Thread(target=welcome, daemon=True).start)  # some browsers block
    yield


app = st.App(
    HERE / "pages.py", lifespan=lifespan, middleware=[Middleware(EmbedMiddleware), Middleware(OpeningMiddleware)]
)
