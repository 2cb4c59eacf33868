"""Helps: what each control does and what happens when it is turned up, from helps.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from experiments.specification.experiment import Experiment
from knobs import Knobs

FILE = Path(__file__).with_name("helps.toml")


@cache
def texts() -> dict[str, dict[str, str]]:
    """Return the texts by section and name."""
    return tomllib.loads(FILE.read_text("utf-8"))


def text(owner: type[Knobs], name: str) -> str:
    """Return what is said of knob `name` of `owner`: of its own file, or of all; "" if nothing is."""
    own = "experiment" if owner is Experiment else owner.__module__.rpartition(".")[2]
    return texts().get(own, {}).get(name) or ("" if owner is Experiment else texts()["any"].get(name, ""))
