"""A write that fails, as on a full disk, ends a job and leaves nothing half written."""

import mmap
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_outcome import Outcome
from generated_text import as_lines, as_tsv, chinese_lines, english_lines, pairs_with_gaps
from jobs import files_up_to, run, succeed, write
from leftovers import (
    assert_finished,
    assert_nothing_made,
    assert_only_counts_made,
    attempts,
    result_files,
)

pytest.importorskip('resource')
pytestmark = pytest.mark.slow


def build_with_file_limit(arguments, limit):
    """Runs a build none of whose files may grow beyond `limit` bytes."""
    with files_up_to(limit):
        ended = run(*arguments)
    return Outcome(ended.status, ended.said)


@pytest.fixture(scope='module')
def arguments(tmp_path_factory):
    folder = tmp_path_factory.mktemp('corpus')
    corpus = write(folder / 'pairs.tsv', as_tsv(pairs_with_gaps(2000, 5)))
    return ['build', '--tsv', corpus, '--name', 'full', '--vocab-size', 1000, '--shards', 2]


@pytest.fixture(scope='module')
def whole(arguments, tmp_path_factory):
    """The result of a run without a limit; it also fills the cache of compiled kernels."""
    folder = tmp_path_factory.mktemp('whole') / 'out'
    succeed(*arguments, '--output', folder)
    return result_files(folder)


@dataclass(frozen=True)
class DiskJob:
    """A job and what it leaves on a disk with room for all of it.

    Attributes:
        command: without the output.
        result: the files, but for what is remembered of the run.
        runs_room: bytes on disk of its sorted runs, whole pages for each file.
        result_room: likewise of all else that it makes.
    """

    command: list
    result: dict[str, bytes]
    runs_room: int
    result_room: int

    @property
    def room(self) -> int:
        return self.runs_room + self.result_room

    def end_on(self, disk: Path, *options: object) -> Outcome:
        """Runs it on a disk; all but success is one sentence, and leaves nothing half."""
        ended = run(*self.command, '--output', disk / 'out', *options)
        outcome = Outcome(ended.status, ended.said)
        found = result_files(disk / 'out')
        if ended.status == 0:
            assert found == self.result
            assert_finished(disk / 'out')
        else:
            outcome.assert_refused('/disk-')
            assert found.items() <= self.result.items() and 'tokbeam.json' not in found
            assert attempts(disk / 'out') == []
        return outcome


def disk_job(folder: Path, command: str, corpus: Path) -> DiskJob:
    scheme = ['--scheme', 'byte'] if command == 'encode' else ['--vocab-size', 1000]
    words = [command, *scheme, '--text', corpus, '--name', 'full', '--shards', 2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('pipelines.shuffle.plan.KeptRuns.sweep', lambda *_, **__: None)
        succeed(*words, '--output', folder / 'out')
    runs_room = room_of(folder / 'out' / '.tokbeam')
    result_room = room_of(folder / 'out') - runs_room
    return DiskJob(words, result_files(folder / 'out'), runs_room, result_room)


def room_of(folder: Path) -> int:
    sizes = [path.stat().st_size for path in folder.rglob('*') if path.is_file()]
    return sum(-(-size // mmap.PAGESIZE) * mmap.PAGESIZE for size in sizes)


@pytest.fixture(scope='module', params=['encode', 'build'])
def disk_jobs(request, tmp_path_factory):
    """One job over a plain text and over a compressed one."""
    folder = tmp_path_factory.mktemp(request.param)
    data = as_lines(english_lines(15_000, 7) + chinese_lines(3000, 8))
    return [
        disk_job(folder / kind, request.param, write(folder / f'{kind}{suffix}', data))
        for kind, suffix in (('plain', '.txt'), ('compressed', '.gz'))
    ]


@pytest.mark.parametrize('share', [0.2, 0.8, 1.1, 1.5])
@pytest.mark.parametrize('disk_jobs', ['encode'], indirect=True)
def test_a_job_ends_well_where_it_fits_and_with_a_sentence_where_not(disk_jobs, small_disk, share):
    for number, job in enumerate(disk_jobs):
        outcome = job.end_on(small_disk(int(job.room * share) + number))
        assert (outcome.status == 0) == (share > 1)


@pytest.mark.parametrize('disk_jobs', ['encode'], indirect=True)
def test_runs_on_a_disk_of_their_own(disk_jobs, small_disk):
    for number, job in enumerate(disk_jobs):
        disk = small_disk(job.result_room * 11 // 10 + number)
        work = small_disk(job.runs_room * 11 // 10 + number)
        assert job.end_on(disk, '--work', work / 'runs').status == 0
        narrow = small_disk(job.runs_room // 3 + number)
        outcome = job.end_on(disk / 'again', '--work', narrow / 'runs')
        assert f'MiB are needed in {narrow}' in outcome.stderr
        assert 'give another --work' in outcome.stderr


def test_short_lines_take_many_times_their_text(tmp_path, small_disk):
    corpus = write(tmp_path / 'text.txt', b'a word\n' * 60_000)
    job = disk_job(tmp_path / 'whole', 'encode', corpus)
    outcome = job.end_on(small_disk(job.room * 8 // 10))
    # What is needed is told as it is, and not by the text's size.
    [needed] = re.findall(r'about (\d+) MiB', outcome.stderr)
    assert abs(int(needed) - job.room / (1 << 20)) <= 1 < int(needed) / 2


@pytest.mark.corpora
@pytest.mark.parametrize('twentieth', range(1, 21))
def test_disks_of_twenty_sizes_up_to_twice_enough(disk_jobs, small_disk, twentieth):
    """The stages before the shuffle meet a full disk too, where it is small enough."""
    for number, job in enumerate(disk_jobs):
        outcome = job.end_on(small_disk(job.room * twentieth // 10 + number))
        assert outcome.status == 0 or twentieth <= 10


def test_no_room_for_the_counts(arguments, whole, tmp_path):
    ended = build_with_file_limit([*arguments, '--output', tmp_path / 'out'], 500)
    ended.assert_refused('File too large', tmp_path / 'out')
    assert_nothing_made(tmp_path / 'out')


def test_no_room_for_the_shards(arguments, whole, tmp_path):
    folder = tmp_path / 'out'
    vocabularies = [len(data) for name, data in whole.items() if name.startswith('vocab.')]
    counts = [len(data) for name, data in whole.items() if name.startswith('counts.')]
    limit = 2 * max(vocabularies + counts)
    assert all(len(data) > limit for name, data in whole.items() if name.startswith('full-'))
    build_with_file_limit([*arguments, '--output', folder], limit).assert_refused('File too large')
    assert_only_counts_made(folder)
    # With room again, the counts that are whole are kept and the rest is made.
    succeed(*arguments, '--output', folder)
    assert result_files(folder) == whole
    assert_finished(folder)
