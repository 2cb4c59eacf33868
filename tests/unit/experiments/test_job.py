"""Jobs: how one ends that had no result."""

import signal

import pytest

from experiments.jobs.job import Job, JobState


@pytest.mark.parametrize(("ended_by", "status"), [("limit", "failed"), ("reader", "cancelled"), ("pool", "cancelled")])
@pytest.mark.parametrize("ending", ["it took too long", "too little memory was left"])
def test_a_killed_job_has_failed_only_if_a_limit_ended_it_whatever_its_message_says(ending, ended_by, status):
    job = Job("ada's", None, JobState("running"), ending=ending, ended_by=ended_by)
    job.end(-signal.SIGKILL, {})
    assert job.state.status == status and ending in job.state.message
