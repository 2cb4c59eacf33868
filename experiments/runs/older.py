"""Read runs of older versions, whose error messages contain facts that now have their own fields in run.json.

The sentences below are those in stored files; today's may be reworded without a change here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.runs.run_files import RunHeader

ADDED = {"fatal_loss", "gpus"}
"""The fields of run.json that hold these facts today."""


def complete(record: RunHeader) -> RunHeader:
    """Return the record as this version writes it. If an older version wrote it, missing fields are read from its
    messages.
    """
    if record.model_fields_set >= ADDED:
        return record
    found = re.match(r"rank (\d+) was lost at (\S+) s\b", record.error)
    return record.model_copy(
        update={
            "error": record.error.removeprefix("diverged: "),
            "fatal_loss": (int(found[1]), float(found[2])) if found else None,
            "gpus": _gpus(record),
        }
    )


def _gpus(record: RunHeader) -> int | None:
    if record.experiment.get("cluster") != "gpus":
        return None
    if any("ran on the CPU" in note for note in record.notes):
        return 0
    shared = filter(None, (re.match(r"\d+ ranks shared (\d+) GPU", note) for note in record.notes))
    return next((int(found[1]) for found in shared), record.ranks)
