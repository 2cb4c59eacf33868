"""The workbench's help on a setting: its declared description, then the effect of raising it or switching it on."""

import tomllib
from functools import cache
from pathlib import Path

from experiments.specification.experiment import Experiment
from experiments.wording.sentences import capital
from knobs import Knobs

FILE = Path(__file__).with_name("helps.toml")


@cache
def effects() -> dict[str, dict[str, str]]:
    """Return the effect of raising each setting or switching it on, by section and name."""
    return tomllib.loads(FILE.read_text("utf-8"))


def effect(owner: type[Knobs], name: str) -> str:
    """Return the effect of raising knob `name` of `owner` or switching it on, or "" if there is no text on it."""
    own = "experiment" if owner is Experiment else owner.__module__.rpartition(".")[2]
    return effects().get(own, {}).get(name) or ("" if owner is Experiment else effects()["any"].get(name, ""))


def text(owner: type[Knobs], name: str) -> str:
    """Return the whole help of knob `name` of `owner`: its declaration as a sentence, then its effect."""
    line = owner.model_fields[name].description or ""
    return f"{capital(line)}. {effect(owner, name)}".rstrip()
