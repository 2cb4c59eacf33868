"""What algorithms run on in this tier."""

import pytest

from cluster import simulated


@pytest.fixture
def run():
    """The simulated cluster; tests/system/cluster/test_shared_memory.py has the real ones."""
    return simulated.run
