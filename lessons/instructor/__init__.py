"""What instructors need: lab sheets, handouts, batch grading and courses, and who may see the pages that show these."""

import hmac
import os
from collections.abc import Mapping

SETTING = "LOCKSTEP_INSTRUCTOR"


def is_visible(given: str = "", environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the pages for instructors are shown to a reader who gave this password ("" for none).

    LOCKSTEP_INSTRUCTOR=1 shows them to everybody; any other text is the password, compared in constant time; unset,
    empty or 0 hides them.
    """
    setting = environment.get(SETTING, "")
    return setting == "1" or (needs_password(environment) and hmac.compare_digest(given.encode(), setting.encode()))


def needs_password(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the pages for instructors need a password."""
    return environment.get(SETTING, "") not in ("", "0", "1")
