"""A format of one folder and one line of the registry: counted, encoded, resumed, refused."""

import collections
import json
import pathlib
import random

import pyarrow.parquet as parquet
import pytest
from jobs import refuse, succeed, write
from killed_encode import kill_and_go_on
from names_in_sources import modules_naming

from tokcore.corpus import formats
from tokcore.records.tfrecord import parse_example, read_records
from tokcore.subword.text_encoder import SubwordTextEncoder
from tokcore.text.t2t import tokenize

HERE = pathlib.Path(__file__).parent


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """The one line; taken back for the tests of others."""
    monkeypatch.setitem(formats._FORMATS, 'paragraphs', 'paragraphs:Paragraphs')


def drawn_paragraphs(count: int) -> list[str]:
    dice = random.Random(count)
    words = ['Vers', 'Zeile', 'und', '字字', 'noch', 'eine', 'é', '12']
    return [
        '\n'.join(
            ' '.join(dice.choices(words, k=dice.randint(1, 6))) for _ in range(dice.randint(1, 5))
        )
        for _ in range(count)
    ]


PARAGRAPHS = drawn_paragraphs(1500)


@pytest.fixture(scope='module')
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp('paragraphs')
    return write(folder / 'verses.txt', '\n\n'.join(PARAGRAPHS).encode() + b'\n')


@pytest.fixture(scope='module')
def vocabulary(corpus, tmp_path_factory):
    """Learned from the lines: a vocabulary file of Tensor2Tensor's holds no line feed."""
    path = tmp_path_factory.mktemp('vocabulary') / 'vocab'
    succeed('vocab', '--text', corpus, '--vocab-size', 300, '--output', path)
    return path


def encoding(corpus, vocabulary, folder, *more):
    return [
        'encode', '--paragraphs', corpus, '--vocab', vocabulary, '--name', 'v', '--shards', 2,
        '@item-size', '1KiB', '--output', folder, *more,
    ]  # fmt: skip


def shards_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob('v-train-*'))}


def texts_of(folder, vocabulary):
    encoder = SubwordTextEncoder.load(str(vocabulary))
    return [
        encoder.decode(parse_example(record)['targets'][:-1])
        for path in sorted(folder.glob('v-train-*'))
        for record in read_records(path.read_bytes(), path.name)
    ]


def test_tokens_of_paragraphs_are_counted(corpus, tmp_path):
    folder = tmp_path / 'counts'
    cut = ['@item-size', '1KiB', '--workers', 2]
    succeed('count', '--paragraphs', corpus, *cut, '--output', folder)
    expected = collections.Counter(token for each in PARAGRAPHS for token in tokenize(each))
    tables = [parquet.read_table(path).to_pydict() for path in folder.glob('*.parquet')]
    found = {
        token: count
        for table in tables
        for token, count in zip(table['token'], table['count'], strict=True)
    }
    assert found == expected
    assert any('\n' in token for token in found)


def test_paragraphs_are_encoded_with_the_line_feeds_in_them(corpus, vocabulary, tmp_path):
    succeed(*encoding(corpus, vocabulary, tmp_path / 'out', '--workers', 2))
    assert sorted(texts_of(tmp_path / 'out', vocabulary)) == sorted(PARAGRAPHS)
    succeed(*encoding(corpus, vocabulary, tmp_path / 'engine', '@shuffle', 'engine'))
    assert shards_of(tmp_path / 'out') == shards_of(tmp_path / 'engine')


@pytest.mark.slow
def test_a_killed_encode_goes_on(corpus, vocabulary, tmp_path, monkeypatch):
    monkeypatch.setattr('pipelines.shuffle.plan.KeptRuns.sweep', lambda *_, **__: None)
    folder = tmp_path / 'out'
    command = encoding(corpus, vocabulary, folder, '@buffer', '2KiB', '--workers', 2)
    kill_and_go_on(HERE / 'paragraphs_command.py', command, folder)
    succeed(*encoding(corpus, vocabulary, tmp_path / 'whole'))
    assert shards_of(folder) == shards_of(tmp_path / 'whole')


BAD = b'good\nverse\n\n% remark\n\n \n\n\xff\n\n' + b'x' * 300 + b'\n\n\nlast'


def test_what_is_left_out_is_kept_under_the_formats_own_reason_too(vocabulary, tmp_path):
    corpus, folder = write(tmp_path / 'bad.txt', BAD), tmp_path / 'out'
    bound = ['--max-line-size', '100']
    said = succeed(*encoding(corpus, vocabulary, folder, '--on-error', 'skip', *bound))
    rejected = folder / 'rejected'
    assert sorted(path.name for path in rejected.iterdir()) == [
        'train.comment.jsonl', 'train.invalid_utf8.jsonl', 'train.too_long.jsonl'
    ]  # fmt: skip
    assert json.loads((rejected / 'train.comment.jsonl').read_text()) == {
        'file': 'bad.txt', 'offset': 12, 'line': '% remark'
    }  # fmt: skip
    assert f'1 line was left out: {rejected / "train.comment.jsonl"}' in said
    manifest = json.loads((folder / 'tokbeam.json').read_text())
    assert manifest['lines'] == [
        {
            'split': 'train', 'lines': 6, 'examples': 2, 'empty': 1, 'comment': 1,
            'invalid_utf8': 1, 'missing_column': 0, 'too_long': 1, 'text_bytes': 14,
        }
    ]  # fmt: skip
    assert texts_of(folder, vocabulary) in (['good\nverse', 'last'], ['last', 'good\nverse'])
    again = succeed(*encoding(corpus, vocabulary, folder, '--on-error', 'skip', *bound))
    assert 'already done' in again


def test_what_the_format_says_of_a_reject_is_the_error(vocabulary, tmp_path):
    corpus = write(tmp_path / 'bad.txt', b'a verse\n\n% remark\n')
    said = refuse(*encoding(corpus, vocabulary, tmp_path / 'out'))
    assert 'bad.txt, line 3: the paragraph at byte 9 is a comment; take it out' in said


def test_its_option_is_one_of_the_others(corpus, vocabulary, tmp_path):
    both = ['--text', corpus]
    said = refuse(*encoding(corpus, vocabulary, tmp_path / 'out', *both))
    assert '--text and --paragraphs exclude each other' in said
    said = refuse('count', '--output', tmp_path / 'counts')
    assert 'no training corpus given: --source with --target, or --tsv, or ' in said
    assert said.rstrip().endswith(', or --text, or --paragraphs')


def test_nothing_outside_this_folder_knows_of_it():
    fields = ('id', 'name', 'attr', 'arg', 'module', 'value')
    assert not modules_naming('paragraphs', fields)
