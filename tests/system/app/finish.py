"""Waiting for what a page has asked of the pool."""

from app.session import session
from tests.patience import wait_until


def finish(page):
    """Wait for the jobs of a page that shows progress, and draw it again; return the page.

    To draw it until they are done would take most of a core.
    """
    while page.get("progress"):
        jobs = [job for place, job in page.session_state.items() if "/" in place]
        wait_until(lambda jobs=jobs: not any(session.pool().state(job).active for job in jobs))
        page.run()
    assert not page.exception
    return page
