"""For instructors: lab sheets and handouts, grading a pile of solutions, courses; and who may see which pages."""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping

SETTING = "LOCKSTEP_INSTRUCTOR"


def shown(given: str = "", environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the pages for instructors are shown to a reader who gave this password, "" for none.

    LOCKSTEP_INSTRUCTOR=1 shows them to everybody; another text is the password, compared in constant time; unset, empty
    or 0 hides them.
    """
    setting = environment.get(SETTING, "")
    return setting == "1" or (locked(environment) and hmac.compare_digest(given.encode(), setting.encode()))


def locked(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether a password opens the pages for instructors."""
    return environment.get(SETTING, "") not in ("", "0", "1")
