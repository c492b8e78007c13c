"""The summary at the end of a job: every line that was read is accounted for, and what comes next."""

import logging
import re

import pytest
from jobs import run, succeed, write

PAIRS = b'a b\tA B\nc d\tC D\n\te\n\xff\tx\nlonely\n'


@pytest.fixture
def pairs(tmp_path):
    return ['--tsv', write(tmp_path / 'pairs.tsv', PAIRS), '--on-error=skip']


def test_a_build_says_what_became_of_each_line_and_what_comes_next(pairs, tmp_path):
    out = tmp_path / 'out'
    said = succeed(
        *('build', *pairs, '--name', 'n', '--vocab-size', 40, '--shards', 2, '--output', out)
    ).splitlines()
    assert (
        'tokbeam: train: 5 lines read, 2 examples in 2 shards, 1 empty, 2 left out '
        '(1 invalid_utf8, 1 missing_column)'
    ) in said
    entries = r'tokbeam: vocab\.n\.40\.subwords\.inputs: \d+ entries.*, of --scheme subword'
    assert any(re.fullmatch(entries, line) for line in said)
    assert any(re.fullmatch(rf'tokbeam: done in \d+ s: .* in {out}', line) for line in said)
    [first, second, third] = [line for line in said if line.startswith('tokbeam: next: ')]
    assert f'--vocab {out}/vocab.n.40.subwords.inputs' in first
    assert second == f'tokbeam: next: tokbeam inspect {out}'
    assert f'tokcore.open_dataset({str(out)!r})' in third
    assert 'tokbeam-attempt' not in ' '.join(said)


def test_what_only_beam_reaches_is_not_to_be_opened(pairs, monkeypatch, tmp_path):
    monkeypatch.setattr('pipelines.files.filesystem.is_only_beams', lambda path: True)
    said = succeed(
        *('encode', *pairs, '--name', 'n', '--scheme', 'byte', '--shards', 1),
        *('--output', tmp_path / 'out'),
    )
    assert 'root ' in said and 'next: ' not in said


def test_warnings_come_last_and_are_marked(pairs, tmp_path):
    said = succeed('vocab', *pairs, '--vocab-size', 900, '--output', tmp_path / 'v').splitlines()
    warnings = [line for line in said if line.startswith('tokbeam: warning: ')]
    assert said[-len(warnings) :] == warnings and len(warnings) == 3
    assert '900' in warnings[0] and 'the text gives no more' in warnings[0]


def test_what_is_already_there_has_no_summary(pairs, tmp_path):
    command = ['count', *pairs, '--output', tmp_path / 'counts']
    assert 'next: tokbeam vocab --counts' in succeed(*command)
    assert 'next: ' not in succeed(*command)


def test_a_failure_shows_the_warnings_before_it(pairs, tmp_path, monkeypatch):
    def fail(job):
        logging.getLogger('pipelines.stages').warning('a word of warning')
        raise RuntimeError('no more')

    monkeypatch.setattr('pipelines.cli.commands.count_stage', fail)
    ended = run('count', *pairs, '--output', tmp_path / 'counts')
    warning, failure = ended.said.splitlines()[-2:]
    assert ended.status == 1
    assert warning == 'tokbeam: warning: a word of warning'
    assert failure.startswith('tokbeam: failed: RuntimeError: no more')


def test_text_that_is_in_no_id_and_rows_that_are_in_no_file(tmp_path):
    words = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', *(f'w{number}' for number in range(9))]
    vocabulary = write(tmp_path / 'vocab.txt', ''.join(f'{word}\n' for word in words).encode())
    text = b'w1 w2 w3 w4\n' * 9 + 'other w1\n\u200b\n'.encode()
    encoding = ['encode', '--text', write(tmp_path / 'text', text), '--name', 'n', '--shards', 1]
    encoding += ['--scheme', 'wordpiece', '--vocab', vocabulary, '--output']
    said = succeed(*encoding, tmp_path / 'flat', '--output-format', 'flat').splitlines()
    assert said[1:4] == [
        'tokbeam: train: 1 of 38 ids are the unknown token, 2.6%',
        'tokbeam: train: 1 text without a token',
        'tokbeam: train: 1 empty rows left out',
    ]
    joined = ['--output-format', 'joined', '--pack', 5]
    assert 'tokbeam: train: 9 rows cut to 5 ids' in succeed(*encoding, tmp_path / 'joined', *joined)
