"""The catalogue of algorithms, compressions, workloads, kernels and presets, with their sources.

    ALGORITHMS["easgd"].title       "EASGD"
    ALGORITHMS["easgd"].idea        "EASGD: replicas explore on their own, tied to a shared centre by springs."

Command line and workbench offer the entries listed here. A module is imported only when its entry needs it.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import algorithms
import kernels
import workloads
from algorithms import compression
from algorithms.algorithm import Algorithm
from algorithms.catalogue import DECLARED
from cluster.devices import DEVICES, Device, parse_device
from cluster.faults import JITTERS
from cluster.network import NETWORKS, Link, parse_network
from experiments.wording.sentences import capital
from installation import ROOT


@dataclass(frozen=True)
class Entry:
    """A module that readers choose by name."""

    name: str
    family: str
    module_name: str
    title: str
    """The usual name, as written within a sentence, such as "Synchronous SGD" or "handwritten digits"."""
    also: str = ""
    """Other names under which people look for it, such as "DDP" or "zero bubble, pipeline"."""

    @property
    def module(self) -> ModuleType:
        return importlib.import_module(self.module_name)

    @property
    def declaration(self) -> Algorithm:
        return self.module.ALGORITHM

    @property
    def idea(self) -> str:
        return algorithms.idea(self.module)

    @property
    def path(self) -> str:
        """The path of the file from the root of the repository, such as "algorithms/averaging/easgd.py"."""
        return f"{self.module_name.replace('.', '/')}.py"

    @property
    def source(self) -> str:
        """The source text of the file, read without importing it."""
        return (ROOT / self.path).read_text("utf-8")


def title_of(path: str) -> str:
    """Return the title in the first sentence of a file, such as "Adam", "Dense backward, input half" or "Row
    maximum".
    """
    with (ROOT / path).open(encoding="utf-8") as file:
        sentence = file.readline().strip().removeprefix('"""').rstrip('."')
    title, explained, _ = sentence.partition(":")
    return title if explained else sentence.partition(",")[0]


def _also(family: str, name: str) -> str:
    """Return the other names of an algorithm, followed by those of its family."""
    entries = DECLARED[f"{family}.{name}"], DECLARED["families"][family]
    return ", ".join(entry["also"] for entry in entries if "also" in entry)


ALGORITHMS = {
    name: Entry(name, family, f"algorithms.{family}.{name}", title, _also(family, name))
    for (family, name), title in ((entry.split("."), title) for entry, title in algorithms.CATALOGUE.items())
}
"""All algorithms, in teaching order."""
FAMILIES = algorithms.FAMILIES
"""The title of each family of algorithms, and of the compressions."""
FAMILY_IDEAS = algorithms.FAMILY_IDEAS
"""What the algorithms of each family have in common."""
COMPRESSIONS = {
    name: Entry(name, "compression", f"algorithms.compression.{name}", title)
    for name, title in compression.COMPRESSIONS.items()
}
WORKLOADS = {name: Entry(name, "workload", f"workloads.{name}", title) for name, title in workloads.WORKLOADS.items()}
KERNELS = {
    name: Entry(name, family, f"kernels.{family}.{name}", title_of(f"kernels/{family}/{name}.py"))
    for family, names in kernels.FAMILIES.items()
    for name in names
}
"""All kernels, by family, with the titles in their files."""

PRESETS: dict[str, Mapping[str, Any]] = {"network": NETWORKS, "device": DEVICES, "jitter": JITTERS}
"""The presets of each field of an experiment, by name, each with its `source`. A preset of None has no effect."""

CHOICES: dict[str, tuple[str, ...]] = {
    "compression": ("none", *COMPRESSIONS),
    **{field: tuple(presets) for field, presets in PRESETS.items()},
    "workload": tuple(WORKLOADS),
}
"""The allowed names of each field of an experiment that is chosen by name."""


def choice_label(entries: Mapping[str, Entry], name: str) -> str:
    """Return an entry's label in a list of choices, with all its names, such as "Overlapped all-reduce · overlap,
    DDP".
    """
    entry = entries[name]
    return f"{capital(entry.title)} · {name}" + f", {entry.also}" * bool(entry.also)


def sources(field: str) -> dict[str, str]:
    """Return the sources of a field's presets, by name, or {} for a field without presets."""
    return {name: preset.source for name, preset in PRESETS.get(field, {}).items() if preset is not None}


def link(text: str) -> Link:
    """Return the link between nodes of a network that is given as a preset or as numbers. Raise ValueError for other
    text.
    """
    return parse_network(text).between


def device(text: str) -> Device:
    """Return a device that is given as a preset or as numbers. Raise ValueError for other text."""
    return parse_device(text)
