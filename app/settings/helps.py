"""What the workbench says about a setting: the line of its declaration, then what turning it up or on does."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from experiments.specification.experiment import Experiment
from knobs import Knobs

FILE = Path(__file__).with_name("helps.toml")


@cache
def effects() -> dict[str, dict[str, str]]:
    """Return what turning each setting up or on does, by section and name."""
    return tomllib.loads(FILE.read_text("utf-8"))


def effect(owner: type[Knobs], name: str) -> str:
    """Return what turning knob `name` of `owner` up or on does; "" if nothing is known."""
    own = "experiment" if owner is Experiment else owner.__module__.rpartition(".")[2]
    return effects().get(own, {}).get(name) or ("" if owner is Experiment else effects()["any"].get(name, ""))


def text(owner: type[Knobs], name: str) -> str:
    """Return the whole help of knob `name` of `owner`: its declaration as a sentence, then its effect."""
    line = owner.model_fields[name].description or ""
    return f"{line[:1].upper()}{line[1:]}. {effect(owner, name)}".rstrip()
