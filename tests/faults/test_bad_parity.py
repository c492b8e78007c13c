"""Development texts that are missing or go with other options: a sentence that says why."""

import pytest
from jobs import refuse, succeed, write

SIZE = ['--scheme', 'bpe', '--vocab-size', 300]


@pytest.fixture
def counts(tmp_path):
    return [
        write(tmp_path / f'counts.{name}', f'{name}bab\t3\nb\t1\n'.encode()) for name in ('a', 'c')
    ]


@pytest.fixture
def texts(tmp_path):
    return [write(tmp_path / f'dev.{name}', f'{name}ba\n'.encode()) for name in ('a', 'c')]


@pytest.fixture
def refused(counts, tmp_path):
    def refused(texts, *options):
        output = ['--output', tmp_path / 'v.json']
        return refuse('vocab', '--counts', *counts, '--parity', *texts, *options, *output)

    return refused


def test_as_many_texts_as_counts(refused, texts):
    said = refused(texts[:1], *SIZE)
    assert '--counts names 2 languages, and --parity 1' in said


def test_only_of_counts(texts, tmp_path):
    said = refuse(
        'vocab', '--text', texts[0], '--parity', texts[0], *SIZE, '--output', tmp_path / 'v'
    )
    assert '--parity goes with --counts' in said


@pytest.mark.parametrize('scheme', ['word', 'subword', 'wordpiece'])
def test_other_schemes(refused, texts, scheme):
    said = refused(texts, '--scheme', scheme, '--vocab-size', 300)
    assert f'--parity goes with --scheme bpe, not with {scheme}' in said


def test_characters(refused, texts):
    said = refused(texts, *SIZE, '--preset', 'subword-nmt')
    assert '--parity is for bytes' in said


def test_rounds(refused, texts):
    assert 'not on Beam; leave out --learner' in refused(texts, *SIZE, '--learner', 'beam')


def test_an_old_vocabulary(refused, texts, counts, tmp_path):
    old = tmp_path / 'old.json'
    succeed('vocab', '--counts', *counts, *SIZE, '--output', old)
    assert 'leave out --extend' in refused(texts, *SIZE, '--extend', old)


def test_weights(counts, texts, tmp_path):
    weighted = [f'{path}={number}x' for number, path in enumerate(counts, 1)]
    given = ['--counts', *weighted, '--parity', *texts, *SIZE, '--output', tmp_path / 'v']
    assert 'leave weights out' in refuse('vocab', *given)
    assert 'leave weights out' in refuse(
        'vocab', '--counts', *counts, '--temperature', 2, *given[3:]
    )


def test_an_old_vocabulary_to_shrink(refused, texts, counts, tmp_path):
    old = tmp_path / 'old.json'
    succeed('vocab', '--counts', *counts, *SIZE, '--output', old)
    assert 'leave out --shrink' in refused(texts, *SIZE, '--shrink', old)


def test_a_text_without_tokens(refused, texts, tmp_path):
    empty = write(tmp_path / 'empty', b'')
    assert f'no token in {empty}' in refused([texts[0], empty], *SIZE)


def test_counts_without_tokens(texts, counts, tmp_path):
    empty = write(tmp_path / 'counts.none', b'')
    given = ['--counts', counts[0], empty, '--parity', *texts, *SIZE]
    assert 'no token in counts.none' in refuse('vocab', *given, '--output', tmp_path / 'v.json')


def test_a_text_that_is_not_there_or_not_utf_8(refused, texts, tmp_path):
    assert 'nothing: No such file' in refused([texts[0], tmp_path / 'nothing'], *SIZE)
    broken = write(tmp_path / 'broken', b'a\xff\n')
    said = refused([texts[0], broken], *SIZE)
    assert str(broken) in said


def test_counts_that_are_too_large(texts, counts, tmp_path):
    many = write(tmp_path / 'counts.many', f'abab\t{2**62}\nab\t{2**61}\n'.encode())
    given = ['--counts', counts[0], many, '--parity', *texts, *SIZE]
    said = refuse('vocab', *given, '--output', tmp_path / 'v.json')
    assert "'a' 'b' occurs more than 2^63 - 1 times" in said
