"""Identify readers by their browser, whose tabs all count as one reader.

Relies on the cookie `_streamlit_xsrf`, by which Streamlit distinguishes a browser's requests from forged ones, and on
its format. Without it every tab counts as a reader, so that one reader with ten tabs gets ten turns in the queue.
"""

import hashlib
import itertools
from collections.abc import Mapping

COOKIE = "_streamlit_xsrf"


def reader(cookies: Mapping[str, str], address: str | None) -> str:
    """Return the id that all tabs of a browser share, "browser@address".

    All browsers at one address that keep no cookies count as one reader. The address is None on this machine itself;
    behind a proxy it is the one that the proxy reports, if the server trusts the proxy (FORWARDED_ALLOW_IPS).
    """
    place = hashlib.sha256(f"{address}".encode()).hexdigest()[:16] if address else ""
    return f"{browser(cookies)}@{place}"


def browser(cookies: Mapping[str, str]) -> str:
    """Return the id in a browser's cookie, or "" if the browser keeps no cookies. The browser's tabs share the id.

    The cookie has Tornado's format: a mask, new in every response, and the browser's token, masked with it.
    """
    try:
        mask, masked = (bytes.fromhex(part) for part in cookies.get(COOKIE, "").split("|")[1:3])
    except ValueError:
        return ""
    token = bytes(one ^ other for one, other in zip(masked, itertools.cycle(mask), strict=False))
    return hashlib.sha256(token).hexdigest()[:16] if token else ""
