"""Lockstep's workbench: `streamlit run app/main.py`. The server; pages.py lists the pages."""

import asyncio
import gc
import socket
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

from app.browser.assets import AssetsMiddleware  # noqa: E402
from app.browser.opening import OpeningMiddleware  # noqa: E402
from app.embed.embedding import EmbedMiddleware  # noqa: E402

LATER = 3.0  # s that the first page has the machine to itself, before a process is made ready for the next run


def prepare() -> None:
    """Load what the first page needs and shows, then the other pages, and prewarm a process for the next run."""
    from PIL import Image

    from app.browser.frames import frame
    from app.guide.questions import asked
    from app.session import session
    from app.settings import feasible
    from app.workbench import workbench  # noqa: F401
    from experiments.specification.experiment import Experiment

    Image.preinit()  # Streamlit looks at the page's icon with it
    asked(Experiment())  # imports the algorithms of all questions
    feasible.refusal(Experiment())  # builds its workload
    folder = session.pool().state(session.pool().submit("the first reader", Experiment())).folder
    if folder:
        session.timeline_frame(str(folder), None, True)
    gc.freeze()  # what is imported stays; Streamlit has all else looked through whenever a reader's script has ended
    time.sleep(LATER)
    from app import survey, upload  # noqa: F401
    from app.kernel_pages import kernels  # noqa: F401
    from app.schedules import page as schedules  # noqa: F401
    from app.textbook import page as textbook  # noqa: F401

    frame([])  # which imports pandas
    gc.freeze()
    session.pool().prewarm()


def welcome() -> None:
    """Open a browser where there is a screen. Streamlit leaves that to apps."""
    if not st.get_option("server.headless"):
        webbrowser.open(f"http://localhost:{st.get_option('server.port')}/{st.get_option('server.baseUrlPath')}")


def answer_at_once(loop: asyncio.AbstractEventLoop) -> None:
    """Send what is written without waiting until what was sent before is acknowledged, which takes up to 40 ms.

    asyncio asks this for every socket that was made for TCP by name. Streamlit's, which listens, was not; those of
    connections are as that is.
    """
    listen = loop.create_server

    async def create_server(*words, sock=None, **named):
        if sock and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return await listen(*words, sock=sock, **named)

    loop.create_server = create_server


@asynccontextmanager
async def lifespan(_):
    """Prepare while the first browser still fetches Streamlit's own files."""
    answer_at_once(asyncio.get_running_loop())
    threading.Thread(target=prepare, daemon=True).start()
    asyncio.get_running_loop().call_soon(threading.Thread(target=welcome, daemon=True).start)  # some browsers block
    yield


# With its first element Streamlit asks for the source file of every module, to see whether it is run from a prompt.
st.delta_generator._use_warning_has_been_displayed = True
MIDDLEWARE = AssetsMiddleware, EmbedMiddleware, OpeningMiddleware
app = st.App(HERE / "pages.py", lifespan=lifespan, middleware=[Middleware(one) for one in MIDDLEWARE])
