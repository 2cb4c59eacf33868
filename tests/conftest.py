"""How tests are dealt to the cores: file by file, since a file's tests share servers and count processes, but for the
large ones whose tests share nothing."""

import pytest

SPREAD = ("test_every_algorithm.py", "test_every_compression.py", "test_twins.py", "test_figures.py", "test_kills.py")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.name not in SPREAD:
            item.add_marker(pytest.mark.xdist_group(str(item.path)))
