"""A learned vocabulary that is kept for the next run is the one that was learned, in every scheme."""

import collections
import dataclasses
from pathlib import Path

import pytest

from pipelines.files import filesystem
from pipelines.learning.rounds import OutputRounds, SearchRounds
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.scheme import Learned
from tokcore.errors import InputError
from tokcore.schemes import find_scheme

TEXT = 'one two three 字 👍 ones twos threes un deux trois été the\ttherefore ' * 9

SCHEMES = {
    'subword': ('subword', {}, {'reserved_tokens': ('<x>', 'y')}),
    'wordpiece': ('wordpiece', {}, {}),
    'word': ('word', {}, {}),
    'bpe': ('bpe', {'preset': 'gpt2'}, {'special_tokens': ('<s>', '漢')}),
    'codes': ('bpe', {'preset': 'subword-nmt'}, {}),
}


def learned_by(name, of_scheme=(), of_learner=()):
    scheme = dataclasses.replace(find_scheme(name), **dict(of_scheme))
    words = collections.Counter(scheme.tokens(' '.join(TEXT.split()))).items()
    options = scheme.options(vocab_size=300, **dict(of_learner))
    return scheme, scheme.learn(TokenTable.from_items(words), options, lambda *_: None)


@pytest.fixture
def rounds(tmp_path):
    return SearchRounds(OutputRounds(str(tmp_path / 'work'), 'out'), {'seed': 1})


@pytest.mark.parametrize('name', SCHEMES)
def test_it_comes_back_as_it_was(rounds, name):
    scheme, learned = learned_by(*SCHEMES[name])
    assert rounds.kept(scheme) is None
    rounds.keep(learned)
    found = rounds.kept(scheme)
    assert dataclasses.replace(found, vocabulary=None) == dataclasses.replace(
        learned, vocabulary=None
    )
    before, after = learned.vocabulary, found.vocabulary
    assert after.dump() == before.dump()
    assert (after.vocab_size, after.special_ids) == (before.vocab_size, before.special_ids)
    assert scheme.tokenizer_files(after) == scheme.tokenizer_files(before)


def test_it_goes_with_the_output_and_stays_after_an_error_of_the_system(rounds):
    scheme, learned = learned_by('word')
    rounds.keep(learned)
    rounds.output_rounds.sweep(keep_begun=True)
    assert rounds.kept(scheme) is not None
    dataclasses.replace(rounds.output_rounds, output='another').sweep()
    assert rounds.kept(scheme) is not None
    rounds.output_rounds.sweep()
    assert rounds.kept(scheme) is None
    assert filesystem.entries(rounds.output_rounds.work) == []


def test_a_damaged_one_is_not_taken(rounds):
    scheme, learned = learned_by('word')
    rounds.keep(learned)
    path = Path(rounds.folder, 'learned')
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match='is damaged; run again, and it is made anew'):
        rounds.kept(scheme)


def test_how_it_was_learned_comes_back_too(rounds):
    scheme, learned = learned_by('word')
    told = Learned(learned.vocabulary, 3, ((4, 10), (3, 12)), ((3, 12),), 5)
    rounds.keep(told)
    assert dataclasses.replace(rounds.kept(scheme), vocabulary=None) == dataclasses.replace(
        told, vocabulary=None
    )
