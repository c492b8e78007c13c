"""Parity-aware BPE through the command: what is learned, what is recorded, and when it is learned again."""

import gzip
import json

import pytest
from dataset_files import manifest_of
from jobs import refuse, succeed, write

import pipelines
from tokcore.bpe.options import BpeOptions
from tokcore.bpe.parity import learn_parity_merges
from tokcore.learn import count_tokens
from tokcore.schemes import find_scheme

SIZE = 330


@pytest.fixture(scope='module')
def languages(small, tmp_path_factory):
    """For each of two languages its counts and its development text."""
    folder = tmp_path_factory.mktemp('languages')
    found = []
    for name, path in (('en', small.source), ('zh', small.target)):
        lines = path.read_bytes().splitlines(keepends=True)
        text = write(folder / name, b''.join(lines[10:]))
        succeed('count', '--text', text, '--scheme', 'bpe', '--output', folder / f'counts.{name}')
        dev = write(folder / f'dev.{name}', b''.join(lines[:10]))
        found.append((text, folder / f'counts.{name}', dev))
    return found


def options(languages, output):
    texts, counts, dev = zip(*languages)
    return ['--counts', *counts, '--parity', *dev, '--scheme', 'bpe', '--vocab-size', SIZE, '--output', output]  # fmt: skip


def test_merges_are_those_of_the_texts(languages, tmp_path):
    succeed('vocab', *options(languages, tmp_path / 'tokenizer.json'))
    scheme = find_scheme('bpe')
    tables = [
        [count_tokens(scheme, paths=[path]) for path in (text, dev)] for text, _, dev in languages
    ]
    expected = learn_parity_merges(*zip(*tables), BpeOptions(vocab_size=SIZE).rules('gpt2'))
    model = json.loads((tmp_path / 'tokenizer.json').read_text())['model']
    assert [tuple(pair) for pair in model['merges']] == [*expected.merges]
    assert sorted(model['vocab'], key=model['vocab'].get) == [*expected.entries]
    backwards = learn_parity_merges(*zip(*tables[::-1]), BpeOptions(vocab_size=SIZE).rules('gpt2'))
    assert len(expected.entries) == len(backwards.entries) == SIZE


def test_a_compressed_text_and_counts_of_one_file_give_the_same(languages, tmp_path):
    first, second = tmp_path / 'first.json', tmp_path / 'second.json'
    succeed('vocab', *options(languages, first))
    [(text, _, dev), english] = languages[0], languages[1]
    table = count_tokens(find_scheme('bpe'), paths=[text])
    lines = [f'{token}\t{count}\n' for token, count in table.items()]
    counts = write(tmp_path / 'counts.txt', ''.join(lines).encode())
    packed = write(tmp_path / 'dev', gzip.compress(dev.read_bytes()))
    succeed('vocab', *options([(text, counts, packed), english], second))
    assert first.read_bytes() == second.read_bytes()


def test_another_development_text_is_another_job(languages, tmp_path):
    output = tmp_path / 'tokenizer.json'
    [(text, counts, dev), other] = languages
    changed = write(tmp_path / 'dev', dev.read_bytes())
    again = options([(text, counts, changed), other], output)
    succeed('vocab', *again)
    recorded = manifest_of(tmp_path, 'tokenizer.json.tokbeam.json')['options']['parity']
    assert [each['counts'] for each in recorded] == [32, 32]
    assert 'already done' in succeed('vocab', *again)
    write(changed, dev.read_bytes() + b'more of it\n')
    said = refuse('vocab', *again)
    assert 'is of a run with another --parity' in said and '--overwrite' in said
    succeed('vocab', *again, '--overwrite')
    assert 'another --parity' in refuse('vocab', *options(languages, output))
    texts, counts, _ = zip(*languages)
    plain = ['--counts', *counts, '--scheme', 'bpe', '--vocab-size', SIZE, '--output', output]
    assert 'another --parity' in refuse('vocab', *plain)


def test_the_output_is_not_a_development_text(languages, tmp_path):
    [(text, counts, dev), other] = languages
    output = write(tmp_path / 'tokenizer.json', dev.read_bytes())
    again = options([(text, counts, output), other], output)
    refuse('vocab', *again, '--overwrite')
    assert output.read_bytes() == dev.read_bytes()


def test_a_call_takes_texts_too(languages, tmp_path):
    texts, counts, dev = zip(*languages)
    result = pipelines.vocab(
        counts=[*map(str, counts)], parity=[*map(str, dev)], scheme='bpe', merges=40,
        pre_tokenizer='gpt2', output=str(tmp_path / 'v.json'),
    )  # fmt: skip
    assert result.manifest.vocabularies[0].size == 297
