"""A vocabulary that does not know the text stops `encode` before any work; what is lost is counted."""

import base64
import gzip
import json

import pytest
from dataset_files import files_of, manifest_of
from jobs import refuse, succeed, write

WORDS = [f'{first}{second}' for first in 'abcdefghij' for second in 'klmnopqrst']
KNOWN, OTHER = WORDS[:80], WORDS[80:]


def lines_of(words, share_of_other, lines=50):
    """Lines of ten words, of which so many are in no vocabulary of these tests."""
    return b''.join(
        ' '.join(
            [OTHER[(line + each) % len(OTHER)] for each in range(share_of_other)]
            + [words[(line + each) % len(words)] for each in range(10 - share_of_other)]
        ).encode()
        + b'\n'
        for line in range(lines)
    )


@pytest.fixture
def vocabulary(tmp_path):
    """A vocabulary of words from elsewhere."""
    words = ''.join(f'{word}\n' for word in ['<pad>', '</s>', '<unk>', *KNOWN])
    return write(tmp_path / 'vocab.words', words.encode())


@pytest.fixture
def encoding(vocabulary, tmp_path):
    """The command line that encodes a text with that vocabulary."""

    def encoding(text, *more, output='out'):
        path = write(tmp_path / 'text.txt', text)
        shards = ['--name', 'n', '--shards', 2, '--output', tmp_path / output]
        return ['encode', '--text', path, '--vocab', vocabulary, '--scheme', 'word', *shards, *more]

    return encoding


def test_text_of_other_words_is_refused_with_examples(encoding, vocabulary, tmp_path):
    text = lines_of(KNOWN, 9)
    said = refuse(*encoding(text))
    assert said.startswith(
        f'tokbeam: {vocabulary}: 450 of 500 ids of targets in a sample of {len(text):,} bytes are '
        'unknown tokens (90.0%), more than --max-unknown 20%, such as '
    )
    examples = said.partition('such as ')[2].partition(';')[0].split(', ')
    assert len(examples) == 5 and {word.strip("'") for word in examples} <= set(OTHER)
    assert '--max-unknown 100%' in said
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize('unknown', [0, 2])
def test_a_share_up_to_the_limit_is_encoded(unknown, encoding, tmp_path):
    succeed(*encoding(lines_of(KNOWN, unknown)))
    [lines] = manifest_of(tmp_path / 'out')['lines']
    assert (lines['unknown'], lines['ids']) == (50 * unknown, 500)


def test_the_limit_changes_no_byte_and_may_be_lower(encoding, tmp_path):
    text = lines_of(KNOWN, 2)
    succeed(*encoding(text, output='default'))
    assert 'more than --max-unknown 19.9%' in refuse(*encoding(text, '--max-unknown', '19.90%'))
    succeed(*encoding(lines_of(KNOWN, 9), '--max-unknown', '90%', output='more'))
    succeed(*encoding(text, '--max-unknown', '100%', output='any'))
    assert files_of(tmp_path / 'any') == files_of(tmp_path / 'default')


def test_an_update_is_refused_for_the_text_that_it_adds(encoding, tmp_path):
    succeed(*encoding(lines_of(KNOWN, 0, lines=500)))
    added = write(tmp_path / 'added.txt', lines_of(KNOWN, 9))
    update = ['update', tmp_path / 'out', '--text', added, '--output', tmp_path / 'updated']
    said = refuse(*update)
    assert '450 of 500 ids of targets' in said and 'more than --max-unknown 20%, such as' in said
    succeed(*update, '--max-unknown', '90%')


@pytest.mark.parametrize('value', ['20', '-1%', '101%', 'x'])
def test_a_limit_is_a_share(value, encoding):
    assert 'is not a share of ids from 0% to 100%' in refuse(
        *encoding(b'a\n', f'--max-unknown={value}')
    )


@pytest.mark.parametrize('kind', ['text', 'bitext', 'gzip'])
def test_how_a_job_is_run_does_not_decide(kind, vocabulary, tmp_path):
    text = lines_of(KNOWN, 3, 5000)
    if kind == 'gzip':
        text = gzip.compress(text)
    path = write(tmp_path / 'a', text)
    files = ['--text', path] if kind != 'bitext' else ['--source', path, '--target', path]
    line = ['encode', *files, '--vocab', vocabulary, '--scheme', 'word', '--name', 'n']
    line += ['--output', tmp_path / 'out']
    ways = [('--workers', 1), ('--workers', 2), ('@shuffle', 'engine')]
    said = {refuse(*line, *way) for way in ways}
    [sentence] = said
    assert '(30.0%)' in sentence


def test_a_vocabulary_of_the_same_text_only_warns(tmp_path):
    text = ['--text', write(tmp_path / 'text.txt.gz', lines_of(KNOWN, 5))]
    vocabulary = tmp_path / 'learned.words'
    learning = ['--scheme', 'word', '--vocab-size', 10]
    succeed('vocab', *text, *learning, '--output', vocabulary)
    encoding = ['encode', '--vocab', vocabulary, '--name', 'n', '--shards', 1, '--output']
    said = succeed(*encoding, tmp_path / 'same', *text)
    [warning] = [line for line in said.splitlines() if 'warning' in line]
    assert 'ids are the unknown token' in warning
    assert 'ids are the unknown token' in succeed(
        'build', *text, *learning, '--name', 'n', '--shards', 1, '--output', tmp_path / 'build'
    )
    # Another text of the same name, and a copy of the vocabulary that nothing is known of.
    (tmp_path / 'other').mkdir()
    other = write(tmp_path / 'other' / 'text.txt.gz', lines_of(KNOWN, 6))
    assert '--max-unknown 20%' in refuse(*encoding, tmp_path / 'out', '--text', other)
    copy = write(tmp_path / 'copy.words', vocabulary.read_bytes())
    assert '--max-unknown 20%' in refuse(
        *('encode', '--vocab', copy, '--scheme', 'word', '--name', 'n', '--output'),
        *(tmp_path / 'out', *text),
    )


@pytest.mark.parametrize(
    ('scheme', 'token'),
    [('bpe', '<|im_start|>'), ('pretrained', '<|im_start|>'), ('wordpiece', '[MASK]')],
)
def test_special_tokens_in_text_are_warned_of_if_nothing_states_what_they_become(
    scheme, token, tmp_path
):
    text = f'a b {token} a {token}\n{token}\na {token[:-1]}\na </s> b\nb {token}.\n'.encode()
    path = write(tmp_path / 'text.txt', text)
    vocabulary = tmp_path / 'copied' / 'tokenizer.json'
    if scheme == 'wordpiece':
        write(vocabulary, b'[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n</s>\n.\n[\n]\nmask\n##s\n')
    else:
        learning = ['--scheme', 'bpe', '--vocab-size', 280, '--special-tokens', f'</s>,{token}']
        learned = tmp_path / 'tokenizer.json'
        succeed('vocab', '--text', path, *learning, '--output', learned)
        write(vocabulary, learned.read_bytes())
    encode = ['--text', path, '--vocab', vocabulary, '--scheme', scheme, '--name', 'n']
    encode += ['--max-unknown', '100%', '--output']
    job = write(tmp_path / 'job.toml', b'[vocabulary]\nallow_special_tokens = false\n')
    said = succeed('encode', *encode, tmp_path / 'out')
    [warning] = [line for line in said.splitlines() if 'special token' in line]
    assert f'3 rows of a sample of {len(text)} bytes have the special token {token!r}' in warning
    assert 'give --allow-special-tokens' in warning and 'allow_special_tokens = false' in warning
    for stated in ([job, *encode], ['--allow-special-tokens', *encode]):
        output = tmp_path / f'stated {len(str(stated[0]))}'
        assert 'special token' not in succeed('encode', *stated, output)
        is_same = files_of(output) == files_of(tmp_path / 'out')
        assert is_same == (stated[0] == job)


def test_a_side_with_the_wrong_vocabulary_is_enough(vocabulary, tmp_path):
    sides = {
        'source': write(tmp_path / 'a.en', lines_of(KNOWN, 0)),
        'target': write(tmp_path / 'a.zh', b'XXX\n' * 50),
    }
    files = [word for side, path in sides.items() for word in (f'--{side}', path)]
    said = refuse(
        *('encode', *files, '--vocab', vocabulary, '--scheme', 'word', '--name', 'n'),
        *('--output', tmp_path / 'out'),
    )
    assert '50 of 50 ids of targets' in said and "such as 'XXX';" in said


def test_subwords_spell_every_character(tmp_path):
    learned = write(tmp_path / 'a.txt', b'only these letters\n' * 9)
    vocabulary = tmp_path / 'v.subwords'
    succeed('vocab', '--text', learned, '--vocab-size', 300, '--output', vocabulary)
    other = write(tmp_path / 'b.txt', '字字字\n'.encode() * 9)
    succeed(
        *('encode', '--text', other, '--vocab', vocabulary, '--name', 'n'),
        *('--output', tmp_path / 'out'),
    )


def test_tokens_that_are_unknown_in_part_are_examples_too(tmp_path):
    vocabulary = write(tmp_path / 'a.codes', b'#version: 0.2\na b</w>\n')
    write(tmp_path / 'a.vocab', b'<pad>\n</s>\n<unk>\nab\nx@@\n')
    text = write(tmp_path / 'a.txt', b'ab xy xyz\n' * 9)
    said = refuse(
        *('encode', '--text', text, '--vocab', vocabulary, '--scheme', 'bpe', '--name', 'n'),
        *('--preset', 'subword-nmt', '--output', tmp_path / 'out'),
    )
    assert '27 of 54 ids of targets' in said and "such as 'xy', 'xyz';" in said


@pytest.fixture
def incomplete(tmp_path):
    """A byte-level tokenizer.json that has entries for ASCII letters alone, as without an alphabet."""
    entries = [chr(code) for code in range(0x21, 0x7F)] + ['Ġ', 'ab']
    byte_level = dict.fromkeys(('trim_offsets', 'use_regex'), True)
    byte_level |= {'type': 'ByteLevel', 'add_prefix_space': False}
    vocab = {entry: id_ for id_, entry in enumerate(entries)}
    file = {
        'version': '1.0', 'pre_tokenizer': byte_level, 'decoder': byte_level,
        'model': {'type': 'BPE', 'vocab': vocab, 'merges': [['a', 'b']]},
    }  # fmt: skip
    return write(tmp_path / 'tokenizer.json', json.dumps(file).encode())


@pytest.mark.parametrize('scheme', ['bpe', 'pretrained'])
def test_bytes_without_an_entry_are_counted(scheme, incomplete, tmp_path):
    line = ['encode', '--vocab', incomplete, '--scheme', scheme, '--name', 'n', '--shards', 1]
    chinese = ['--text', write(tmp_path / 'a.txt', '字ab\n'.encode() * 9)]
    said = refuse(*line, *chinese, '--output', tmp_path / 'out')
    assert '27 of 36 ids of targets' in said
    assert "are bytes that become no id (75.0%), more than --max-unknown 20%, such as '字';" in said
    french = ['--text', write(tmp_path / 'b.txt', 'aussi tôt que possible\n'.encode() * 9)]
    said = succeed(*line, *french, '--output', tmp_path / 'out')
    assert 'train: 18 bytes without an entry or a match became no id' in said
    assert "the commonest are 'ô' 9" in said
    [lines] = manifest_of(tmp_path / 'out')['lines']
    assert lines['dropped_bytes'] == 18
    succeed('verify', tmp_path / 'out', '--rerun', 'all')
    forced = [*line, *chinese, '--max-unknown', '100%', '--output', tmp_path / 'forced']
    assert '27 bytes without an entry or a match' in succeed(*forced)


def test_text_that_no_expression_of_ranks_matches_is_counted(tmp_path):
    ranks = b''.join(b'%s %d\n' % (base64.b64encode(bytes([byte])), byte) for byte in range(256))
    vocabulary = write(tmp_path / 'small.tiktoken', ranks)
    line = ['encode', '--vocab', vocabulary, '--scheme', 'pretrained', '--name', 'n', '--shards', 1]
    text = ['--text', write(tmp_path / 'a.txt', 'ab 12é\n'.encode() * 9)]
    said = refuse(*line, *text, '--pattern', '[0-9]', '--output', tmp_path / 'out')
    assert '45 of 63 ids of targets' in said
    assert 'are bytes that become no id (71.4%), more than --max-unknown 20%, such as' in said
    said = succeed(*line, *text, '--pattern', r'\w+', '--output', tmp_path / 'out')
    assert (
        "train: 9 bytes without an entry or a match became no id; the commonest are ' ' 9" in said
    )
    [lines] = manifest_of(tmp_path / 'out')['lines']
    assert lines['dropped_bytes'] == 9
    said = succeed(*line, *text, '--pattern', r'\w+|\W', '--output', tmp_path / 'all')
    assert 'became no id' not in said
    assert 'give --pattern' in refuse(*line, *text, '--output', tmp_path / 'none')
    said = refuse(*line, *text, r'--pattern=\w*', '--output', tmp_path / 'none')
    assert 'nor a regular expression that is known here (a match without text' in said
