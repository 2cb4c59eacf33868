"""The server of Lockstep's workbench: `streamlit run app/main.py`. pages.py lists the pages."""

import asyncio
import gc
import sys
import threading
import time
import webbrowser
from contextlib import asynccontextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
if str(HERE.parent) not in sys.path:  # Streamlit puts app/ there instead of the root
    sys.path.insert(0, str(HERE.parent))

import streamlit as st  # noqa: E402
from starlette.middleware import Middleware  # noqa: E402

from app.browser import server  # noqa: E402
from app.browser.assets import AssetsMiddleware  # noqa: E402
from app.browser.opening import OpeningMiddleware  # noqa: E402
from app.embed.embedding import EmbedMiddleware  # noqa: E402

LATER = 3.0  # s for which the first page has the machine to itself, before a process is prepared for the next run


def prepare() -> None:
    """Load what the first page needs, then the other pages, and prewarm a process for the next run."""
    from PIL import Image

    from app.browser.frames import frame
    from app.guide.questions import find_question
    from app.session import session
    from app.settings import feasible
    from app.workbench import workbench  # noqa: F401
    from experiments.specification.experiment import Experiment

    Image.preinit()  # Streamlit needs it for the page's icon
    find_question(Experiment())  # imports the algorithms of all questions
    feasible.refusal(Experiment())  # builds its workload
    folder = session.pool().state(session.pool().submit("the first reader", Experiment())).folder
    if folder:
        session.timeline_frame(str(folder), None, True)
    gc.freeze()  # or every collection, which Streamlit triggers after each script run, would scan all imports
    time.sleep(LATER)
    from app import survey, upload  # noqa: F401
    from app.kernel_pages import kernels  # noqa: F401
    from app.schedules import page as schedules  # noqa: F401
    from app.textbook import page as textbook  # noqa: F401

    frame([])  # which imports pandas
    gc.freeze()
    session.pool().prewarm()


def welcome() -> None:
    """Open a browser, unless the server is headless. Streamlit leaves this to apps."""
    if not st.get_option("server.headless"):
        webbrowser.open(f"http://localhost:{st.get_option('server.port')}/{st.get_option('server.baseUrlPath')}")


@asynccontextmanager
async def lifespan(_):
    """Run the preparations while the first browser fetches Streamlit's own files."""
    server.answer_at_once(asyncio.get_running_loop())
    threading.Thread(target=prepare, daemon=True).start()
    asyncio.get_running_loop().call_soon(threading.Thread(target=welcome, daemon=True).start)  # some browsers block
    yield


server.skip_the_prompt_check()
MIDDLEWARE = AssetsMiddleware, EmbedMiddleware, OpeningMiddleware
app = st.App(HERE / "pages.py", lifespan=lifespan, middleware=[Middleware(one) for one in MIDDLEWARE])
