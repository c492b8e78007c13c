"""A write that fails, as on a full disk, ends a job and leaves nothing half written."""

import os
import subprocess
import sys

import pytest
from command_outcome import Outcome
from generated_text import as_tsv, pairs_with_gaps
from jobs import limited_command, write
from leftovers import (
    assert_finished,
    assert_nothing_made,
    assert_only_counts_made,
    result_files,
)

resource = pytest.importorskip('resource')


def build_with_file_limit(arguments, limit):
    """Runs a build none of whose files may grow beyond `limit` bytes."""
    return subprocess.run(
        limited_command({resource.RLIMIT_FSIZE: limit}, *arguments),
        # Bytecode and compiled kernels are there already, or not to be written under such a limit.
        env={**os.environ, 'PYTHONDONTWRITEBYTECODE': '1'},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope='module')
def arguments(tmp_path_factory):
    folder = tmp_path_factory.mktemp('corpus')
    corpus = write(folder / 'pairs.tsv', as_tsv(pairs_with_gaps(2000, 5)))
    return ['build', '--tsv', corpus, '--name', 'full', '--vocab-size', 1000, '--shards', 2]


@pytest.fixture(scope='module')
def whole(arguments, tmp_path_factory):
    """The result of a run without a limit; it also fills the cache of compiled kernels."""
    folder = tmp_path_factory.mktemp('whole') / 'out'
    subprocess.run(
        [sys.executable, '-m', 'pipelines', *map(str, arguments), '--output', str(folder)],
        check=True,
        capture_output=True,
    )
    return result_files(folder)


def test_no_room_for_the_counts(arguments, whole, tmp_path):
    ended = build_with_file_limit([*arguments, '--output', tmp_path / 'out'], 500)
    Outcome(ended.returncode, ended.stderr).assert_refused('File too large', tmp_path / 'out')
    assert_nothing_made(tmp_path / 'out')


def test_no_room_for_the_shards(arguments, whole, tmp_path):
    folder = tmp_path / 'out'
    vocabularies = [len(data) for name, data in whole.items() if name.startswith('vocab.')]
    counts = [len(data) for name, data in whole.items() if name.startswith('counts.')]
    limit = 2 * max(vocabularies + counts)
    assert all(len(data) > limit for name, data in whole.items() if '-train-' in name)
    ended = build_with_file_limit([*arguments, '--output', folder], limit)
    Outcome(ended.returncode, ended.stderr).assert_refused('File too large')
    assert_only_counts_made(folder)
    # With room again, the counts that are whole are kept and the rest is made.
    subprocess.run(
        [sys.executable, '-m', 'pipelines', *map(str, arguments), '--output', str(folder)],
        check=True,
        capture_output=True,
    )
    assert result_files(folder) == whole
    assert_finished(folder)
