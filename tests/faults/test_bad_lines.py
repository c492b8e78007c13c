"""Lines that cannot be used, and corpora without any, end a job with the place."""

import gzip
import itertools

import pytest
from leftovers import assert_nothing_made, assert_only_counts_made
from small_corpus import KINDS, PAIRS, SPLITS


def start_of_line(path, line):
    """The byte where a 0-based line begins."""
    return sum(map(len, path.read_bytes().splitlines(keepends=True)[:line]))


def replace_line(path, line, text):
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line] = text + b'\n'
    path.write_bytes(b''.join(lines))


@pytest.mark.parametrize('is_zipped', [False, True])
@pytest.mark.parametrize('kind', KINDS)
def test_invalid_utf8_is_named_with_its_byte(build, write_corpus, tmp_path, kind, is_zipped):
    corpus = write_corpus(kind)
    start = start_of_line(corpus.last, 41)
    replace_line(corpus.last, 41, b'good\tgooda\x80b' if kind == 'tsv' else b'a\x80b')
    if is_zipped:
        corpus.last.write_bytes(gzip.compress(corpus.last.read_bytes()))
    byte = start + (10 if kind == 'tsv' else 1)
    build(corpus).assert_refused(
        f'{corpus.last}, line 42: invalid UTF-8 at byte {byte}', f'starts at byte {start};'
    )
    assert_nothing_made(tmp_path / 'out')


def mostly_slow(kinds, splits, quick):
    return pytest.mark.parametrize(
        ('kind', 'split'),
        [
            pytest.param(*pair, marks=() if pair in quick else pytest.mark.slow)
            for pair in itertools.product(kinds, splits)
        ],
    )


@mostly_slow(KINDS, SPLITS[1:], [('bitext', 'dev'), ('tsv', 'test'), ('text', 'dev')])
def test_invalid_utf8_only_in_another_split(build, write_corpus, tmp_path, kind, split):
    train, other = write_corpus(kind), write_corpus(kind, split)
    start = start_of_line(other.last, 7)
    replace_line(other.last, 7, b'good\t\xff' if kind == 'tsv' else b'good\xff')
    build(train, other).assert_refused(other.last, f'starts at byte {start};')
    assert_only_counts_made(tmp_path / 'out')


@pytest.mark.parametrize(
    ('extra', 'line'),
    [((), b'only one column'), (('--columns', '2,0'), b'two\tcolumns'), ((), b'\r spaces \r')],
    ids=['one', 'two of three', 'spaces'],
)
def test_a_missing_column_is_shown_with_its_place(build, write_corpus, tmp_path, extra, line):
    pairs = [(*pair, 'third') for pair in PAIRS]
    corpus = write_corpus('tsv', pairs=pairs)
    start = start_of_line(corpus.last, 12)
    replace_line(corpus.last, 12, line)
    outcome = build(corpus, extra=extra)
    shown = repr(line.decode().replace('\r', ''))
    outcome.assert_refused(
        f'{corpus.last}, line 13: the line at byte {start} has too few columns', '--columns'
    )
    assert shown in outcome.stderr or repr(line.decode()) in outcome.stderr
    assert_nothing_made(tmp_path / 'out')


def test_a_missing_column_only_in_dev(build, write_corpus, tmp_path):
    train, dev = write_corpus('tsv'), write_corpus('tsv', 'dev')
    replace_line(dev.last, 0, b'one')
    build(train, dev).assert_refused(dev.last, 'byte 0 has too few columns')
    assert_only_counts_made(tmp_path / 'out')


@pytest.mark.parametrize(
    ('split', 'shorter', 'zipped'),
    [
        ('train', 0, False),
        ('train', 1, True),
        ('dev', 0, True),
    ],
)
def test_bitext_of_unequal_length_ends_it_before_counting(
    build, write_corpus, tmp_path, split, shorter, zipped
):
    train, corpus = write_corpus('bitext'), write_corpus('bitext', split)
    text = corpus.files[shorter].read_bytes().splitlines(keepends=True)
    corpus.files[shorter].write_bytes(b''.join(text[:-1]))
    if zipped:
        for path in corpus.files:
            path.write_bytes(gzip.compress(path.read_bytes()))
    outcome = build(corpus) if split == 'train' else build(train, corpus)
    outcome.assert_refused(*corpus.files, '80', '79')
    assert_nothing_made(tmp_path / 'out')


def test_only_one_pair_of_many_files_of_unequal_length(tokbeam, write_corpus, tmp_path):
    good, bad = write_corpus('bitext'), write_corpus('bitext', 'dev')
    bad.files[1].write_text('one line\n')
    outcome = tokbeam(
        'count',
        '--source',
        good.files[0],
        bad.files[0],
        '--target',
        good.files[1],
        bad.files[1],
        '--output',
        tmp_path / 'out',
    )
    outcome.assert_refused(*bad.files)
    assert str(good.files[0]) not in outcome.stderr
    assert_nothing_made(tmp_path / 'out')


NO_TEXT = {
    'no bytes': b'',
    'blank lines': b'\n\n',
    'white space': ' \t \r\n\u3000\u00a0\n'.encode(),
}


@pytest.mark.parametrize(
    ('kind', 'what'),
    [*((kind, 'no bytes') for kind in KINDS), ('text', 'blank lines'), ('tsv', 'white space')],
)
def test_an_empty_corpus(build, write_corpus, tmp_path, kind, what):
    corpus = write_corpus(kind)
    for path in corpus.files:
        path.write_bytes(NO_TEXT[what])
    build(corpus).assert_refused('the train corpus is empty', corpus.files[0])
    assert_nothing_made(tmp_path / 'out')


@mostly_slow(['bitext', 'tsv'], SPLITS, [('bitext', 'dev'), ('tsv', 'train')])
def test_a_corpus_of_pairs_with_an_empty_side(build, write_corpus, tmp_path, kind, split):
    train = write_corpus(kind)
    pairs = [(source, ' ') if n % 2 else ('', target) for n, (source, target) in enumerate(PAIRS)]
    corpus = write_corpus(kind, split, pairs)
    outcome = build(corpus) if split == 'train' else build(train, corpus)
    outcome.assert_refused(f'the {split} corpus is empty: 80 lines', corpus.files[0])
    if split == 'train':
        assert_nothing_made(tmp_path / 'out')
    else:
        assert_only_counts_made(tmp_path / 'out')


@pytest.mark.parametrize('kind', KINDS)
def test_an_empty_split_beside_a_training_corpus(build, write_corpus, tmp_path, kind):
    train, dev = write_corpus(kind), write_corpus(kind, 'dev', [])
    build(train, dev).assert_refused('the dev corpus is empty', dev.files[0])
    assert_only_counts_made(tmp_path / 'out')


def test_each_command_stops_at_a_bad_line(tokbeam, each_command, write_corpus, tmp_path):
    corpus = write_corpus('tsv')
    start = start_of_line(corpus.last, 30)
    replace_line(corpus.last, 30, b'good\tbad\xff')
    tokbeam(*each_command, *corpus.arguments).assert_refused(
        corpus.last, f'starts at byte {start};'
    )
    assert_nothing_made(tmp_path / 'out')
