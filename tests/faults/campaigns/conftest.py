"""The warm process and the jobs that all campaigns share: to make them takes a while."""

import os
from collections.abc import Iterator, Sequence

import pytest
from forked_commands import ForkedCommands, Lane
from stopped_runs import Job, make_jobs, make_other_jobs


@pytest.fixture(scope='session')
def lanes() -> Iterator[Sequence[Lane]]:
    """Two lanes, each of which runs one command at a time."""
    if not hasattr(os, 'pidfd_open'):
        pytest.skip('children are watched by their handles, which only Linux has')
    with ForkedCommands(lanes=2) as lanes:
        yield lanes


@pytest.fixture(scope='session')
def jobs(lanes, tmp_path_factory) -> dict[str, Job]:
    """A job of each command that writes files, with its reference."""
    return make_jobs(lanes, tmp_path_factory.mktemp('jobs'))


@pytest.fixture(scope='session')
def other_jobs(lanes, jobs, tmp_path_factory) -> dict[str, Job]:
    """For each job another one with the same output, with its reference."""
    return make_other_jobs(lanes, jobs, tmp_path_factory.mktemp('others'))


@pytest.fixture
def lane(lanes) -> Lane:
    return lanes[0]
