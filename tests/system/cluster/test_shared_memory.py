"""Algorithms in shared memory on real threads and processes: what they promise on the simulated cluster."""

import pytest

from cluster.real import processes, threads
from tests.contract.algorithms.test_async_svrg import test_one_thread_is_svrg_bit_for_bit  # noqa: F401
from tests.contract.algorithms.test_hogbatch import (  # noqa: F401
    test_all_that_was_computed_is_added,
    test_one_thread_is_mini_batch_sgd_with_the_sum_of_gradients_on_sparse_rows_bit_for_bit,
)
from tests.contract.algorithms.test_hogwild import (  # noqa: F401
    test_it_learns_sparse_rows,
    test_one_thread_is_sgd_on_sparse_rows_bit_for_bit,
    test_threads_whose_samples_have_nothing_in_common_do_what_one_would_do_after_the_other,
    test_with_atomic_additions_all_that_was_computed_is_added,
)

CLUSTERS = {"threads": threads.run, "processes": processes.run}


@pytest.fixture(params=CLUSTERS)
def run(request):
    """One real cluster after the other."""
    return CLUSTERS[request.param]
