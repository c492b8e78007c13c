"""The jobs that all campaigns share: to make them takes a while."""

import pytest
from stopped_runs import Job, make_jobs, make_other_jobs


@pytest.fixture(scope='session')
def jobs(lanes, tmp_path_factory) -> dict[str, Job]:
    """A job of each command that writes files, with its reference."""
    return make_jobs(lanes, tmp_path_factory.mktemp('jobs'))


@pytest.fixture(scope='session')
def other_jobs(lanes, jobs, tmp_path_factory) -> dict[str, Job]:
    """For each job another one with the same output, with its reference."""
    return make_other_jobs(lanes, jobs, tmp_path_factory.mktemp('others'))
