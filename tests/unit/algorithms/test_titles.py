"""Titles: every choice has the name that people use, all in one place, and naming one imports no module of it."""

import subprocess
import sys

from algorithms import CATALOGUE, FAMILIES, names
from algorithms.compression import COMPRESSIONS
from workloads import WORKLOADS


def test_every_algorithm_compression_workload_and_family_has_a_title_of_its_own():
    for titles in (CATALOGUE, COMPRESSIONS, WORKLOADS, FAMILIES):
        assert all(titles.values()) and len({*titles.values()}) == len(titles)
        assert not [title for title in titles.values() if "_" in title]
    assert [*dict.fromkeys(entry.split(".")[0] for entry in CATALOGUE), "compression"] == [*FAMILIES]


def test_two_names_are_never_told_apart_by_the_file_alone():
    assert not {*CATALOGUE.values()} & {*COMPRESSIONS.values()}


def test_naming_an_algorithm_imports_no_algorithm():
    code = (
        "import sys; from experiments.specification.catalogue import ALGORITHMS; print(ALGORITHMS['easgd'].title);"
        "print([name for name in sys.modules if name.count('.') == 2 and name.startswith('algorithms.averaging')])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["EASGD", "[]"] and "easgd" in names()
