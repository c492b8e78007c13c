"""Filters that cannot be meant and functions that fail: a sentence that helps, nothing made."""

import pathlib
import sys

import pytest
from leftovers import assert_nothing_made

OWN = """
def fails(source, target):
    raise ValueError('two lines\\nof an error')

def true(source, target):
    return True

def many(source, target):
    return [(source, target)] * 300

def recursive(source, target):
    return recursive(source, target)

def exits(source, target):
    raise SystemExit(0)

def interrupts(source, target):
    raise KeyboardInterrupt

class Unshown:
    def __repr__(self):
        raise ValueError

def unshown(source, target):
    return Unshown()

def breaks(source, target):
    return source + '\\n' + source, target

def long(source, target):
    return source * 5000, target
"""


@pytest.fixture
def clean(tokbeam, write_corpus, tmp_path, monkeypatch):
    """Runs a command with `--clean` on a sound corpus of a kind."""
    (tmp_path / 'functions_here.py').write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    yield lambda asked, kind='tsv', more=(): tokbeam(
        'build', *write_corpus(kind).arguments, '--vocab-size', 120, '--name=small',
        '--output', tmp_path / 'out', '--clean', asked, *more,
    )  # fmt: skip
    sys.modules.pop('functions_here', None)


REFUSED = [
    ('nfc,ratio:0.5', 'tsv'),
    ('ratio:3', 'text'),
    ('no_such_module:f', 'tsv'),
    ('functions_here:f', 'tsv'),
]


@pytest.mark.parametrize(('asked', 'kind'), REFUSED)
def test_what_cannot_be_meant_is_refused_before_any_work(clean, tmp_path, asked, kind):
    before = [*tmp_path.rglob('*')]
    outcome = clean(asked, kind)
    outcome.assert_refused('--clean')
    assert_nothing_made(tmp_path / 'out')
    assert len(before) <= len([*tmp_path.rglob('*')])


@pytest.mark.parametrize('workers', [pytest.param(1, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize('name', ['many', 'fails', 'true', 'exits', 'recursive'])
def test_a_function_that_fails_is_told_with_its_row(clean, tmp_path, name, workers):
    outcome = clean(f'functions_here:{name}', 'tsv', ['--workers', workers])
    outcome.assert_refused('the line that starts at byte 0: ')
    assert_nothing_made(tmp_path / 'out')


@pytest.mark.parametrize('command', ['build', 'encode', 'encode @shuffle file', 'dry run'])
def test_a_module_that_ends_when_it_is_imported_leaves_nothing(
    tokbeam, write_corpus, tmp_path, monkeypatch, command
):
    (tmp_path / 'exits.py').write_text('import sys; sys.exit(0)')
    monkeypatch.syspath_prepend(tmp_path)
    words = {
        'build': ['build', '--vocab-size', 120],
        'encode': ['encode', '--scheme', 'byte'],
        'encode @shuffle file': ['encode', '--scheme', 'byte', '@shuffle', 'files'],
        'dry run': ['encode', '--scheme', 'byte', '--dry-run'],
    }[command]
    out = ['--name=small', '--output', tmp_path / 'out', '--clean', 'exits:f']
    tokbeam(*words, *write_corpus('tsv').arguments, *out).assert_refused(
        '--clean', 'the filter exits:f: importing exits fails with SystemExit: 0; let it do so only'
    )
    assert_nothing_made(tmp_path / 'out')


@pytest.mark.parametrize('name', ['exits', 'interrupts', 'unshown', 'breaks'])
def test_a_shuffle_through_files_leaves_nothing_of_a_function_that_fails(
    clean, tokbeam, write_corpus, tmp_path, name
):
    tokbeam(
        'encode', *write_corpus('tsv').arguments, '--scheme=byte', '@shuffle=files', '--name=small',
        '--output', tmp_path / 'out', '--clean', f'functions_here:{name}',
    ).assert_refused('the line that starts at byte 0', f'functions_here:{name}')  # fmt: skip
    assert_nothing_made(tmp_path / 'out')


def test_rows_that_no_row_is_made_of_are_left_out_if_asked_for(clean, tmp_path):
    for name, more in (('breaks', []), ('unshown', []), ('long', ['--max-line-size', '4KiB'])):
        reason = 'filter_too_long' if name == 'long' else 'filter_no_row'
        clean(f'functions_here:{name}', 'tsv', more).assert_refused(
            'the line that starts at byte 0'
        )
        skipped = clean(f'functions_here:{name}', 'tsv', ['--on-error', 'skip', *more])
        skipped.assert_refused('the train corpus is empty', f'{reason} 80')


def test_filters_that_leave_nothing_are_named(clean, tmp_path):
    clean('length:500:600').assert_refused(
        'the train corpus is empty', 'dropped: length 80', '--clean'
    )
    assert_nothing_made(tmp_path / 'out')


def test_what_is_for_rows_goes_with_rows(tokbeam, write_corpus, tmp_path):
    corpus = write_corpus('tsv').arguments
    build = ['build', *corpus, '--vocab-size', 120, '--name=small', '--output', tmp_path / 'out']
    tokbeam(*build, '--keep-rejected').assert_refused('--keep-rejected keeps what --clean drops')
    counts = pathlib.Path(tmp_path / 'counts')
    tokbeam('count', *corpus, '--output', counts)
    more = ['--clean', 'nfc', '--output', tmp_path / 'further']
    learned = tokbeam('vocab', '--counts', counts, '--vocab-size', 99, *more)
    learned.assert_refused('--counts takes the place of text')
    tokbeam('count', '--counts', counts, *more).assert_refused('--counts takes the place of text')
