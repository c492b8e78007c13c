"""A job for which there is far too little room on disk is refused, and no other one."""

import shutil

import pytest

from pipelines.shuffle.encoded_sample import DiskNeed
from pipelines.shuffle.plan import refuse_too_little_room
from tokcore.errors import FullDiskError

NEED = DiskNeed(1100 << 10, 1000 << 10, 20 << 10)


@pytest.fixture
def refuse(tmp_path, monkeypatch):
    """Looks for a share of the room that is needed."""

    def refuse(share: float, runs: int = 0) -> None:
        usage = shutil.disk_usage(tmp_path)._replace(free=int(NEED.bytes * share))
        monkeypatch.setattr('shutil.disk_usage', lambda _: usage)
        runs_folder = tmp_path / 'out' / '.tokbeam' / 'shuffle'
        if runs:
            runs_folder.mkdir(parents=True)
            (runs_folder / 'run-000000-0000').write_bytes(bytes(runs))
        refuse_too_little_room(NEED, str(runs_folder), str(tmp_path / 'out'))

    return refuse


@pytest.mark.parametrize('share', [0.51, 1.0, 20])
def test_a_job_that_may_fit_is_not_refused(refuse, share):
    refuse(share)


def test_one_that_surely_does_not_is(refuse):
    with pytest.raises(
        FullDiskError,
        match='about 3 MiB are needed in .* for the shuffle and '
        'the result, by a sample of the text, and 0 MiB are free; make room',
    ):
        refuse(0.4)


def test_runs_that_are_there_need_no_room(refuse):
    refuse(0.4, runs=NEED.runs // 2)
