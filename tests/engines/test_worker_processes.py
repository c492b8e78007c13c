"""Worker processes give the bytes of threads, whatever a job is made of.

To start them takes seconds for each pipeline of a job. So a job has many features at once, and each
feature that sends something to workers is in one of them.
"""

import os
from pathlib import Path

import pytest
from dataset_files import files_of, read_shards
from generated_text import as_tsv
from jobs import succeed, succeed_elsewhere, write

pytestmark = pytest.mark.slow

CASED = ['--no-lower-case', '--no-split-cjk', '--normalizer', 'bert-original']
CLEAN = 'length:2:60,ratio:6,nfkc,own_filters:without_odd_ones'
JOBS = {
    'columns': ['--vocab-size', 900, '@item-size', '4KiB'],
    'filters of rows, shares, a sample of rows, pieces of words, Parquet': [
        *('--clean', CLEAN, '--keep-rejected', '--dev-share', '10%', '--test-share', '5%'),
        *('--scheme', 'wordpiece', '--vocab-size', 400, *CASED, '--vocab-sample', 'uniform:0.5'),
        *('--output-format', 'parquet', '@item-size', '4KiB'),
    ],
    "two files, indexed, a sample of their lines, merges of bytes, the engine's shuffle": [
        *('--shared-vocab', '--vocab-sample', 't2t:2kB', '--scheme', 'bpe', '--vocab-size', 400),
        *('--special-tokens', '<pad>', '@shuffle', 'engine', '@item-size', '4KiB'),
    ],
    'merges of characters, lines left out, small runs, text': [
        *('--scheme', 'bpe', '--preset', 'subword-nmt', '--merges', 100, '--on-error', 'skip'),
        *('--output-format', 'text', '@buffer', '4KiB', '@item-size', '4KiB'),
    ],
}  # fmt: skip


@pytest.mark.parametrize('job', JOBS)
def test_bytes_are_those_of_threads(small, tmp_path, monkeypatch, job):
    monkeypatch.syspath_prepend(Path(__file__).parent)  # for the filter
    monkeypatch.setenv('PYTHONPATH', str(Path(__file__).parent), prepend=os.pathsep)
    bad = write(tmp_path / 'bad.tsv', b'\xff\tx\n' + small.tsv.read_bytes() + b'short\n' * 9)
    dev = write(tmp_path / 'dev.tsv', as_tsv(small.pairs[:40]))
    inputs = {
        'two files': ['--source', small.source, '--target', small.target],
        'merges of characters': ['--tsv', bad, '--dev', dev],
    }.get(job.split(',')[0], ['--tsv', small.tsv])
    building = ['build', *inputs, '--name', 'small', '--shards', 3, *JOBS[job]]
    succeed(*building, '--workers', 1, '--output', tmp_path / 'threads')
    building += ['--direct_running_mode=multi_processing', '--output', tmp_path / 'processes']
    if job == 'columns':
        succeed_elsewhere(*building, '--direct_num_workers=2', PYTHONHASHSEED='99')
        read_shards(tmp_path / 'processes')
    else:
        succeed(*building, '--direct_num_workers=1')
    assert files_of(tmp_path / 'processes') == files_of(tmp_path / 'threads')
