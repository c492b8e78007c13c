"""Files that are not vocabularies, sizes that cannot be, and counts that cannot be read."""

import base64
import gzip
import io
import json
import shutil
import sys

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from leftovers import assert_nothing_made, final_files
from small_corpus import PAIRS

GOOD_LINES = b"'<pad>_'\n'<EOS>_'\n"

NO_VOCABULARIES = {
    'no bytes': b'',
    'text': b'Line 1 of a small corpus.\n',
    'not UTF-8': GOOD_LINES + b"'a\xff'\n",
    'binary': bytes(range(256)),
    'gzip': gzip.compress(GOOD_LINES),
    'one line': b"'<pad>_'\n",
    'wrong order': b"'<EOS>_'\n'<pad>_'\n",
}


@pytest.mark.parametrize('data', NO_VOCABULARIES.values(), ids=NO_VOCABULARIES)
@pytest.mark.parametrize('side', ['both', 'source', 'target'])
def test_encoding_with_what_is_not_a_vocabulary(tokbeam, write_corpus, tmp_path, side, data):
    good, bad = tmp_path / 'good.subwords', tmp_path / 'bad.subwords'
    good.write_bytes(GOOD_LINES + b"'a'\n")
    bad.write_bytes(data)
    files = {'both': [bad], 'source': [bad, good], 'target': [good, bad]}[side]
    arguments = [*write_corpus('tsv').arguments, '--vocab', *files, '--name', 'small']
    outcome = tokbeam('encode', *arguments, '--output', tmp_path / 'out')
    outcome.assert_refused(bad, 'vocabulary')
    assert_nothing_made(tmp_path / 'out')


@pytest.fixture
def two_vocabularies(tmp_path):
    """Writes vocabularies of two folders that state different options; returns their paths."""

    def write(kind):
        (tmp_path / 'a').mkdir()
        (tmp_path / 'b').mkdir()
        if kind == 'tiktoken':
            paths = [
                tmp_path / 'a' / 'cl100k_base.tiktoken',
                tmp_path / 'b' / 'o200k_base.tiktoken',
            ]
            ranks = [f'{base64.b64encode(bytes([n])).decode()} {n}\n' for n in range(256)]
            data = ''.join(ranks)
        else:
            paths = [tmp_path / name / 'vocab.txt' for name in 'ab']
            data = '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nline\nLine\n##s\n'
            for path, lowers in zip(paths, ('false', 'true'), strict=True):
                (path.parent / 'tokenizer_config.json').write_text(f'{{"do_lower_case": {lowers}}}')
        for path in paths:
            path.write_text(data)
        return paths

    return write


@pytest.mark.parametrize(
    ('kind', 'said', 'agreed'),
    [
        ('wordpiece', '--lower-case is False for {} and True for {}', ['--lower-case']),
        ('tiktoken', '--pattern is cl100k for {} and o200k for {}', ['--pattern', 'cl100k']),
    ],
)
def test_vocabularies_of_two_sides_have_the_same_options(
    tokbeam, write_corpus, two_vocabularies, tmp_path, kind, said, agreed
):
    paths = two_vocabularies(kind)
    arguments = [*write_corpus('tsv').arguments, '--vocab', *paths, '--name', 'small']
    encode = ['encode', *arguments, '--max-unknown', '100%', '--output', tmp_path / 'out']
    tokbeam(*encode).assert_refused(said.format(*paths))
    assert_nothing_made(tmp_path / 'out')
    assert tokbeam(*encode, *agreed).status == 0


@pytest.mark.parametrize('asked', [[], ['--scheme', 'wordpiece']])
def test_a_vocab_txt_with_capitals_needs_the_case(tokbeam, write_corpus, tmp_path, asked):
    path = tmp_path / 'vocab.txt'
    path.write_text('[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nline\nLine\n##s\n')
    encode = ['encode', *write_corpus('tsv').arguments, '--vocab', path, '--name', 'small', *asked]
    encode += ['--max-unknown', '100%', '--output', tmp_path / 'out']
    tokbeam(*encode).assert_refused(f"{path} has 'Line', which no lower-cased text becomes")
    assert_nothing_made(tmp_path / 'out')
    assert tokbeam(*encode, '--no-lower-case').status == 0
    assert tokbeam('inspect', path).status == 0


@pytest.mark.parametrize('command', ['encode', 'tokenize', 'detokenize'])
@pytest.mark.parametrize('what', ['missing', 'a folder'])
def test_a_vocabulary_that_is_not_a_file(tokbeam, write_corpus, tmp_path, command, what):
    path = tmp_path / 'vocab.subwords'
    if what == 'a folder':
        path.mkdir()
    extra = ()
    if command == 'encode':
        arguments = write_corpus('tsv').arguments
        extra = (*arguments, '--name', 'small', '--output', tmp_path / 'out')
    tokbeam(command, '--vocab', path, *extra).assert_refused(path)
    assert_nothing_made(tmp_path / 'out')


@pytest.fixture
def stdin(monkeypatch):
    def give(data: bytes):
        monkeypatch.setattr(sys, 'stdin', io.TextIOWrapper(io.BytesIO(data)))

    return give


@pytest.mark.parametrize('data', NO_VOCABULARIES.values(), ids=NO_VOCABULARIES)
@pytest.mark.parametrize('command', ['tokenize', 'detokenize'])
def test_lines_with_what_is_not_a_vocabulary(tokbeam, stdin, tmp_path, command, data):
    path = tmp_path / 'bad.subwords'
    path.write_bytes(data)
    stdin(b'2\n')
    tokbeam(command, '--vocab', path).assert_refused(path, 'vocabulary')


@pytest.mark.parametrize('line', [b'2 3', b'2 -1', b'2 x', b'2 1.0', '2 ２'.encode()])
def test_an_id_that_is_none_is_named_with_its_line(tokbeam, stdin, tmp_path, line):
    path = tmp_path / 'vocab.subwords'
    path.write_bytes(GOOD_LINES + b"'a_'\n")
    stdin(b'2\n\n' + line + b'\n2\n')
    tokbeam('detokenize', '--vocab', path).assert_refused('line 3', line.decode().split()[1])


def test_invalid_utf8_to_tokenize_is_named_with_its_line(tokbeam, stdin, tmp_path):
    path = tmp_path / 'vocab.subwords'
    path.write_bytes(GOOD_LINES + b"'a_'\n")
    stdin(b'a\n\naa\xff\na\n')
    tokbeam('tokenize', '--vocab', path).assert_refused('line 3', 'byte 2')


def write_counts(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture
def learn(tokbeam, tmp_path):
    """Learns from one file of counts into `tmp_path/out`."""

    def run(counts, *extra, size=8):
        output = tmp_path / 'out' / 'vocab.subwords'
        return tokbeam(
            'vocab', '--counts', counts, '--vocab-size', size, '--output', output, *extra
        )

    return run


COUNTS = 'abc\t50\ncab\t40\n'


def smallest_size(*tokens, reserved=()):
    """Each character of a token, also a reserved one, and of an escape has an entry of its own."""
    reserved = ['<pad>', '<EOS>', *reserved]
    return len(reserved) + len(set(''.join([*tokens, *reserved])) | set('\\_u;0123456789'))


SMALLEST = smallest_size('abc', 'cab')


@pytest.mark.parametrize('search', ['t2t', 'closest'])
@pytest.mark.parametrize('reserved', [(), ('xyz', 'abc')])
def test_a_size_below_the_alphabet_names_the_smallest(learn, tmp_path, search, reserved):
    counts = write_counts(tmp_path / 'counts', COUNTS)
    extra = [word for token in reserved for word in ('--reserved-token', token)]
    smallest = smallest_size('abc', 'cab', reserved=reserved)
    learn(counts, '--search', search, *extra, size=smallest - 1).assert_refused(smallest)
    assert_nothing_made(tmp_path / 'out')
    assert learn(counts, '--search', search, *extra, size=smallest).status == 0
    assert (tmp_path / 'out' / 'vocab.subwords').read_bytes().count(b'\n') == smallest


def test_a_size_below_the_alphabet_with_an_explicit_range_is_a_warning(learn, tmp_path):
    counts = write_counts(tmp_path / 'counts', COUNTS)
    outcome = learn(counts, '--min-count-range', '1:1000', size=SMALLEST - 1)
    assert outcome.status == 0
    assert f'asked for {SMALLEST - 1}' in outcome.stderr
    assert f'no fewer than {SMALLEST} are possible' in outcome.stderr
    assert (tmp_path / 'out' / 'vocab.subwords').exists()


def test_a_build_with_a_size_below_the_alphabet_leaves_its_counts_alone(
    build, write_corpus, tmp_path
):
    outcome = build(write_corpus('text'), extra=('--vocab-size', 5))
    # Tokens like ', ' hold spaces, so all characters of the text are among them.
    smallest = smallest_size(*(text for text, _ in PAIRS))
    outcome.assert_refused(smallest)
    assert all(name.startswith('counts/') for name in final_files(tmp_path / 'out'))


MALFORMED = {
    'no separator': ('the\t5\nof\n', 2, 'count'),
    'no number': ('the\t5\n\nof\tmany\n', 3, 'count'),
    'a sign': ('the\t-5\n', 1, 'count'),
    'a fraction': ('the 5.0\n', 1, 'count'),
    'other digits': ('the ５\n', 1, 'count'),
    'nothing after the TAB': ('the\t\n', 1, 'count'),
    'no token': ('the 5\n\t5\n', 2, 'no token'),
    'too large': ('the 9223372036854775808\n', 1, '2^63'),
    'not UTF-8': (b'the 5\nof 5\nth\xff 5\n', 3, 'UTF-8'),
}


@pytest.mark.parametrize(('text', 'line', 'reason'), MALFORMED.values(), ids=MALFORMED)
def test_malformed_counts_are_named_with_their_line(learn, tmp_path, text, line, reason):
    counts = write_counts(tmp_path / 'counts', text)
    learn(counts).assert_refused(counts, f'line {line} ', reason)
    assert_nothing_made(tmp_path / 'out')


GZIPPED = ''.join(f'word{n} {n}\n' for n in range(1, 500)).encode()

BAD_COUNTS = {
    'a sum that is too large': f'a {2**63 - 1}\nb 1\na 1\n',
    # Each count fits, and what the tokens have in common does not.
    'substrings whose sum is too large': f'ab {2**62}\nac {2**62}\nad {2**62}\n',
    'no bytes': '',
    'blank lines': '\n \n',
    'gzip that is cut off': gzip.compress(GZIPPED)[:-30],
    'missing': None,
}


@pytest.mark.parametrize('text', BAD_COUNTS.values(), ids=BAD_COUNTS)
def test_counts_that_cannot_be_learned_from(learn, tmp_path, text):
    counts = tmp_path / 'counts'
    if text is not None:
        write_counts(counts, text)
    learn(counts, size=30).assert_refused(counts)
    assert_nothing_made(tmp_path / 'out')


NO_COUNT_TABLES = {
    'other columns': {'word': pa.array(['a']), 'n': pa.array([1])},
    'no count': {'token': pa.array(['a'])},
    'count is text': {'token': pa.array(['a']), 'count': pa.array(['many'])},
    'token is a number': {'token': pa.array([7]), 'count': pa.array([1])},
    'null token': {'token': pa.array(['a', None]), 'count': pa.array([1, 1])},
    'null count': {'token': pa.array(['a', 'b']), 'count': pa.array([1, None])},
    'negative count': {'token': pa.array(['a', 'b']), 'count': pa.array([1, -1])},
}


@pytest.mark.parametrize(
    'columns', [*NO_COUNT_TABLES.values(), None], ids=[*NO_COUNT_TABLES, 'cut']
)
def test_a_parquet_file_without_whole_counts(learn, tmp_path, columns):
    counts = tmp_path / 'counts.parquet'
    parquet.write_table(pa.table(columns or {'token': ['a', 'b'], 'count': [1, 2]}), counts)
    if columns is None:
        counts.write_bytes(counts.read_bytes()[:-30])
    learn(counts).assert_refused(counts)
    assert_nothing_made(tmp_path / 'out')


@pytest.fixture
def counts_folder(tokbeam, write_corpus, tmp_path):
    folder = tmp_path / 'counts'
    assert tokbeam('count', *write_corpus('text').arguments, '--output', folder).status == 0
    return folder


@pytest.mark.parametrize('damage', ['no manifest', 'cut manifest', 'missing file', 'bytes'])
def test_a_damaged_counts_folder(learn, counts_folder, tmp_path, damage):
    manifest = wrong = counts_folder / 'tokbeam.json'
    if damage == 'no manifest':
        manifest.unlink()
    elif damage == 'cut manifest':
        manifest.write_bytes(manifest.read_bytes()[:-20])
    else:
        wrong = max(counts_folder.glob('*.parquet'), key=lambda path: path.stat().st_size)
        data = bytearray(wrong.read_bytes())
        data[4:64] = bytes(60)  # of the same size
        wrong.unlink()
        if damage == 'bytes':
            wrong.write_bytes(data)
    learn(counts_folder, size=200).assert_refused(wrong if wrong != manifest else counts_folder)
    assert_nothing_made(tmp_path / 'out')


def test_a_folder_that_another_stage_made(learn, build, write_corpus, tmp_path):
    assert build(write_corpus('text')).status == 0
    shutil.copytree(tmp_path / 'out', tmp_path / 'dataset')
    shutil.rmtree(tmp_path / 'out')
    assert json.loads((tmp_path / 'dataset' / 'tokbeam.json').read_bytes())['stage'] == 'build'
    learn(tmp_path / 'dataset').assert_refused(tmp_path / 'dataset', 'count')
    assert_nothing_made(tmp_path / 'out')


@pytest.mark.parametrize('command', ['encode', 'build'])
def test_missing_special_tokens_are_named_before_any_work(tokbeam, tmp_path, command):
    words, text = tmp_path / 'words.txt', tmp_path / 'text.txt'
    words.write_bytes(b'the\r\ncat\r\n')
    text.write_bytes(b'the cat\n')
    arguments = {
        'encode': ('--vocab', words, '--text', text, '--name', 'n', '--output', tmp_path / 'out'),
        'build': (
            *('--special-tokens', 'x', '--min-count', 1, '--text', text, '--name', 'n'),
            *('--output', tmp_path / 'out'),
        ),
    }[command]
    outcome = tokbeam(command, '--scheme', 'word', *arguments)
    assert outcome.status == 0
    first = outcome.stderr.splitlines()[0]
    named = 'the vocabulary to be learned' if command == 'build' else words
    assert f'warning: {named} lacks special tokens (</s>: rows end without it' in first
    assert '<unk>: the first word without an id stops the job' in first


@pytest.mark.parametrize(
    ('content', 'said'),
    [
        ('the 33\ncat 4\n', "words and their counts, as fairseq's dict.txt"),
        ('"<unk>": 0\nthe: 1\n', "words and their ids in YAML, as Marian's vocab.yml"),
        ('{"<unk>": 0, "the": 1}', 'is JSON, words and their ids'),
    ],
)
def test_word_vocabularies_of_other_tools_are_refused_before_any_work(
    tokbeam, write_corpus, tmp_path, content, said
):
    path = tmp_path / 'dict.txt'
    path.write_text(content)
    outcome = tokbeam(
        *('encode', '--scheme', 'word', *write_corpus('tsv').arguments, '--vocab', path),
        *('--name', 'small', '--output', tmp_path / 'out'),
    )
    outcome.assert_refused(path, said, 'convert it: ')
    assert_nothing_made(tmp_path / 'out')
