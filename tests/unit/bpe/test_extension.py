"""Further merges on top of a vocabulary: the plain rule, and what stays."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcore.bpe.extension import extend_merges
from tokcore.bpe.options import BpeOptions, BpeRules
from tokcore.bpe.plain_iteration import count_pairs, merge
from tokcore.bpe.scheme import BpeScheme
from tokcore.bpe.trainer import learn_merges
from tokcore.bpe.vocabulary import BpeVocabulary
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.text.byte_level import spelled

words = st.text('ab', max_size=20) | st.text('abcdé中', max_size=8) | st.text('a<s>', max_size=9)
tables = st.dictionaries(words, st.integers(0, 12), max_size=20)


def vocabulary(counts, size, special=()):
    learned = learn_merges(
        TokenTable.from_items(counts.items()), BpeRules(vocab_size=size, special_tokens=special)
    )
    return BpeVocabulary.learned(learned.entries, learned.merges, learned.special_tokens)


def extended(counts, old, **rules):
    return extend_merges(TokenTable.from_items(counts.items()), old, BpeRules(**rules))


def extended_plainly(counts, old, size):
    """The entries and merges, all pairs counted again at each merge."""
    ids = {piece: id_ for id_, piece in enumerate(old.pieces)}
    merges = list(old.merges)
    words = []
    for word, count in counts.items():
        symbols = list(spelled(word.encode()))
        ranks = {pair: rank for rank, pair in enumerate(merges)}
        while pairs := [pair for pair in zip(symbols, symbols[1:]) if pair in ranks]:
            symbols = merge(symbols, min(pairs, key=ranks.__getitem__))
        words.append((symbols, count))
    units = dict.fromkeys(ids, 1)
    while len(ids) < size:
        found = count_pairs(words, units, None)
        pair = min(found, key=lambda each: (-found[each], ids[each[0]], ids[each[1]]), default=None)
        if pair is None or found[pair] < 1:
            break
        merges.append(pair)
        ids.setdefault(''.join(pair), len(ids))
        units[''.join(pair)] = 1
        words = [(merge(symbols, pair), count) for symbols, count in words]
    return ids, tuple(merges)


@settings(deadline=None, max_examples=150)
@given(tables, tables, st.integers(0, 12), st.integers(0, 25), st.sampled_from([(), ('<s>', 'ab')]))
def test_the_plain_rule(first, second, size, more, special):
    old = vocabulary(first, 256 + len(special) + size, special)
    size = old.vocab_size + more
    found = extended(second, old, vocab_size=size)
    ids, merges = extended_plainly(second, old, size)
    assert (found.merges, dict(found.entries)) == (merges, ids)
    assert found.added == old.added and found.pieces[: old.vocab_size] == old.pieces


@settings(deadline=None, max_examples=60)
@given(tables, st.integers(0, 12), st.integers(0, 25))
def test_the_same_tokens_give_what_is_learned_at_once(counts, size, more):
    old = vocabulary(counts, 256 + size)
    if len(old.merges) == size:
        whole = vocabulary(counts, 256 + size + more)
        assert extended(counts, old, vocab_size=256 + size + more) == whole
    assert extended(counts, old, vocab_size=old.vocab_size) is old


def test_added_tokens_behind_the_entries_keep_their_ids(tokenizers):
    old = vocabulary({'abab': 3}, 257)
    file = json.loads(old.dump())
    flags = dict.fromkeys(('single_word', 'lstrip', 'rstrip', 'normalized'), False)
    file['added_tokens'] = [{'id': 257, 'content': '<|end|>', 'special': True, **flags}]
    data = json.dumps(file).encode()
    scheme = BpeScheme()
    old = scheme.parse(data, 'x')
    found = extended({'cdcd': 4}, old, vocab_size=260)
    assert found.pieces[257:] == ('<|end|>', 'cd', 'cdcd')
    theirs = tokenizers.Tokenizer.from_str(found.dump().decode())
    assert theirs.encode('<|end|>cdcdab').ids == [257, 259, 256]


def test_what_cannot_be_extended(tmp_path):
    path = tmp_path / 'tokenizer.json'
    path.write_bytes(vocabulary({'abab': 3}, 258).dump())

    def check(size=300, scheme=BpeScheme(), **options):
        options = BpeOptions(vocab_size=size, extend=str(path), **options)
        scheme.check(options)
        return options

    assert check().for_manifest()['extend'] != str(path)
    assert 'extend' not in BpeOptions(vocab_size=300).for_manifest()
    with pytest.raises(InputError, match='--pre-tokenizer gpt2'):
        check(scheme=BpeScheme('cl100k'))
    with pytest.raises(InputError, match='below the 258 entries'):
        check(257)
    with pytest.raises(InputError, match='--special-token cannot go with --extend'):
        check(special_token=('<s>',))
    with pytest.raises(InputError, match='in memory'):
        check(learner='beam')
    path.write_text('#version: 0.2\na b\n')
    with pytest.raises(InputError, match='no vocabulary of byte-level BPE'):
        check()
    file = json.loads(vocabulary({'abab': 3}, 258).dump())
    del file['model']['vocab']['!']
    path.write_text(json.dumps(file))
    with pytest.raises(InputError, match='no entry for the byte 0x21'):
        check()
