"""Further merges on top of a vocabulary: the plain rule, and what stays."""

import collections
import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.bpe import extension
from tokcore.bpe.cutting import LocalWords, learn_in_rounds
from tokcore.bpe.extension import begin_extension, extend_merges, reason_against_rounds
from tokcore.bpe.options import BpeOptions, BpeRules
from tokcore.bpe.plain_iteration import count_pairs, merge
from tokcore.bpe.scheme import BpeScheme
from tokcore.bpe.trainer import learn_merges
from tokcore.bpe.vocabulary import BpeVocabulary
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.text.byte_level import spelled
from tokcore.text.patterns import split
from tokcore.tokenizers import learn_vocabulary

words = st.text('ab', max_size=20) | st.text('abcdé中', max_size=8) | st.text('a<s>', max_size=9)
tables = st.dictionaries(words, st.integers(0, 12), max_size=20)


def vocabulary(counts, size, special=()):
    learned = learn_merges(
        TokenTable.from_items(counts.items()), BpeRules(vocab_size=size, special_tokens=special)
    )
    return BpeVocabulary.learned(learned.entries, learned.merges, learned.special_tokens)


def extended(counts, old, **rules):
    return extend_merges(TokenTable.from_items(counts.items()), old, BpeRules(**rules))


def extended_in_rounds(counts, old, dice, **rules):
    learning = begin_extension(old, BpeRules(**rules))
    words = LocalWords([learning.first.words(TokenTable.from_items(counts.items()))])
    learn_in_rounds(
        words,
        learning,
        dice.choice([1, 30, 1 << 30]),
        choose_threshold=lambda largest, least: dice.randint(least, largest),
    )
    return extension.extended(old, learning.learned())


def is_superword(entry):
    """As the trainer of SuperBPE's authors decides."""
    return ':Ġ' not in entry and len([word for word in entry.split('Ġ') if word]) <= 4


def extended_plainly(counts, old, size, may_be=lambda entry: True):
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
        found = {pair: count for pair, count in found.items() if may_be(''.join(pair))}
        pair = min(found, key=lambda each: (-found[each], ids[each[0]], ids[each[1]]), default=None)
        if pair is None or found[pair] < 1:
            break
        merges.append(pair)
        ids.setdefault(''.join(pair), len(ids))
        units[''.join(pair)] = 1
        words = [(merge(symbols, pair), count) for symbols, count in words]
    return ids, tuple(merges)


@given(
    tables,
    tables,
    st.integers(0, 12),
    st.integers(0, 25),
    st.sampled_from([(), ('<s>', 'ab')]),
    st.randoms(use_true_random=False),
)
def test_the_plain_rule(first, second, size, more, special, dice):
    old = vocabulary(first, 256 + len(special) + size, special)
    size = old.vocab_size + more
    found = extended(second, old, vocab_size=size)
    ids, merges = extended_plainly(second, old, size)
    assert (found.merges, dict(found.entries)) == (merges, ids)
    assert found.added == old.added and found.pieces[: old.vocab_size] == old.pieces
    assert extended_in_rounds(second, old, dice, vocab_size=size) == found


lines = st.dictionaries(st.text('ab  c', max_size=16), st.integers(0, 9), max_size=10)


@given(lines, lines, st.integers(0, 12), st.integers(0, 25), st.randoms(use_true_random=False))
def test_whole_lines_go_on_from_merges_within_tokens(first, second, size, more, dice):
    tokens = collections.Counter()
    for line, count in first.items():
        for token in split(line, 'gpt2'):
            tokens[token] += count
    old = vocabulary(tokens, 256 + size)
    size = old.vocab_size + more
    found = extended(second, old, vocab_size=size)
    ids, merges = extended_plainly(second, old, size)
    assert (found.merges, dict(found.entries)) == (merges, ids)
    assert extended_in_rounds(second, old, dice, vocab_size=size) == found


spaced = st.dictionaries(st.text('aab  :', max_size=30), st.integers(0, 9), max_size=10)


@given(spaced, spaced, st.integers(0, 30), st.integers(0, 40), st.randoms(use_true_random=False))
def test_superwords_have_four_words_and_no_colon_before_a_space(first, second, size, more, dice):
    # Old entries may have more words, as those of a vocabulary of lines.
    old = vocabulary(first, 256 + size)
    size = old.vocab_size + more
    found = extended(second, old, vocab_size=size, superwords=True)
    ids, merges = extended_plainly(second, old, size, is_superword)
    assert (found.merges, dict(found.entries)) == (merges, ids)
    assert all(is_superword(piece) for piece in found.pieces[old.vocab_size :])
    assert extended_in_rounds(second, old, dice, vocab_size=size, superwords=True) == found


def test_lines_are_what_superwords_are_learned_from(tmp_path):
    path = tmp_path / 'tokenizer.json'
    line = 'a b c d e f: g'
    path.write_bytes(vocabulary(dict.fromkeys(split(line, 'gpt2'), 1), 300).dump())
    found = learn_vocabulary([line], 'bpe', extend=path, pre_tokenizer='none', vocab_size=400)
    pieces = found.vocabulary.pieces
    assert max(len(piece.strip('Ġ').split('Ġ')) for piece in pieces) == 4
    assert all(map(is_superword, pieces))
    options = BpeOptions(vocab_size=400, extend=str(path))
    lines = BpeScheme(pre_tokenizer_kind='none')
    assert lines.rules_of_merges(options).superwords and lines.rules_in_rounds(options).superwords
    assert not BpeScheme().rules_of_merges(options).superwords
    assert not lines.rules_of_merges(BpeOptions(vocab_size=400)).superwords


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


def without_bytes_that_text_never_has(old):
    ids = {}
    for entry in old.pieces:
        if entry not in [spelled(bytes([byte])) for byte in (0xC0, 0xC1, *range(0xF5, 0x100))]:
            ids[entry] = len(ids)
    return dataclasses.replace(old, entries=ids)


@given(tables, tables, st.integers(0, 9), st.integers(0, 20), st.randoms(use_true_random=False))
def test_bytes_that_text_never_has_need_no_entries(first, second, size, more, dice):
    whole = vocabulary(first, 256 + size)
    old = without_bytes_that_text_never_has(whole)
    assert old.vocab_size == whole.vocab_size - 13
    found = extended(second, old, merges=max(more, 1))
    assert found.merges == extended(second, whole, merges=max(more, 1)).merges
    assert found.pieces[: old.vocab_size] == old.pieces
    assert extended_in_rounds(second, old, dice, merges=len(old.merges) + max(more, 1)) == found


DEEPSEEK_CODER = [r'[\r\n]', r'\s?\p{L}+', r'\s?\p{P}+', '[一-龥ࠀ-一가-퟿]+']


@pytest.mark.parametrize(
    ('expressions', 'use_regex', 'form'),
    [([], True, None), ([], True, 'NFC'), (DEEPSEEK_CODER, False, None)],
    ids=['StarCoder', 'Command-R', 'DeepSeek-Coder'],
)
def test_a_file_with_digits_tells_how_text_is_cut(
    tmp_path, tokenizers, expressions, use_regex, form
):
    made = tokenizers.pre_tokenizers
    texts = ['x = 1234 + y12', '漢字 12, def f(x):\n\treturn 7', 'été']
    splits = [made.Split(tokenizers.Regex(text), 'isolated') for text in expressions]
    last = made.ByteLevel(add_prefix_space=False, use_regex=use_regex)
    old = vocabulary({'abab': 3}, 257)
    theirs = tokenizers.Tokenizer.from_str(old.dump().decode())
    theirs.pre_tokenizer = made.Sequence([made.Digits(True), *splits, last])
    if form:
        theirs.normalizer = tokenizers.normalizers.NFC()
    path = tmp_path / 'tokenizer.json'
    path.write_text(theirs.to_str())
    ours = learn_vocabulary(texts, 'bpe', extend=path, vocab_size=270)
    assert ours.vocabulary.pieces[:257] == old.pieces and ours.vocabulary.vocab_size == 270
    parts = ours.vocabulary.parts
    assert parts.components['pre_tokenizer'] == json.loads(theirs.to_str())['pre_tokenizer']
    reopened = tokenizers.Tokenizer.from_str(ours.vocabulary.dump().decode())
    for text in texts:
        assert ours.encode(text) == reopened.encode(text).ids
    whole = learn_vocabulary(texts, 'bpe', extend=path, pre_tokenizer='none', vocab_size=270)
    assert whole.vocabulary.parts.patterns == ('none',) and whole.vocabulary.parts.form == form
    with pytest.raises(InputError, match='give --pre-tokenizer none alone'):
        learn_vocabulary(texts, 'bpe', extend=path, pre_tokenizer='o200k', vocab_size=270)


def test_what_cannot_be_extended(tmp_path):
    path = tmp_path / 'tokenizer.json'
    path.write_bytes(vocabulary({'abab': 3}, 258).dump())

    def check(size=300, scheme=BpeScheme(), **options):
        options = BpeOptions(vocab_size=size, extend=str(path), **options)
        scheme.for_learning(options).check(options)
        return options

    assert check().for_manifest()['extend'] != str(path)
    assert 'extend' not in BpeOptions(vocab_size=300).for_manifest()
    for wrong in (
        {'scheme': BpeScheme('cl100k')}, {'size': 257}, {'special_tokens': ('<s>',)},
        {'scheme': BpeScheme(form='NFC')},
    ):  # fmt: skip
        with pytest.raises(InputError):
            check(**wrong)
    check(learner='beam')
    check(scheme=BpeScheme(pre_tokenizer_kind='none'), learner='beam')
    file = json.loads(path.read_bytes())
    path.write_text(json.dumps({**file, 'model': {**file['model'], 'ignore_merges': True}}))
    check()
    with pytest.raises(InputError, match='on Beam: in .* are not merged .ignore_merges.'):
        check(learner='beam')
    prefixed = {**file['pre_tokenizer'], 'add_prefix_space': True}
    path.write_text(json.dumps({**file, 'pre_tokenizer': prefixed}))
    check()
    check(scheme=BpeScheme(pre_tokenizer_kind='none'))
    check(scheme=BpeScheme(add_prefix_space=True))
    path.write_text('#version: 0.2\na b\n')
    with pytest.raises(InputError, match='not a vocabulary of byte-level BPE'):
        check()
    file = json.loads(vocabulary({'abab': 3}, 258).dump())
    del file['model']['vocab']['!']
    path.write_text(json.dumps(file))
    with pytest.raises(InputError, match='no entry for the byte 0x21'):
        check()


def test_merges_before_those_of_their_parts_are_not_for_rounds():
    old = vocabulary({'abab': 3}, 258)
    assert old.merges == (('a', 'b'), ('ab', 'ab')) and reason_against_rounds(old) is None
    turned = BpeVocabulary.learned(old.pieces, old.merges[::-1])
    assert "the merge of 'ab' and 'ab' comes before" in reason_against_rounds(turned)


def test_a_folder_is_extended_as_its_file(tmp_path):
    old = vocabulary({'abab': 3}, 258)
    (tmp_path / 'tokenizer.json').write_bytes(old.dump())

    def options(path):
        return BpeOptions(vocab_size=260, extend=str(path))

    table = TokenTable.from_items({'abcd': 3, 'cdcd': 2}.items())
    learned = [
        BpeScheme().learn(table, options(path), lambda *_: None).vocabulary
        for path in (tmp_path, tmp_path / 'tokenizer.json')
    ]
    assert learned[0] == learned[1] and learned[0].vocab_size == 260
    assert options(tmp_path).for_manifest() == options(tmp_path / 'tokenizer.json').for_manifest()


def test_both_files_of_a_folder_are_recorded(tmp_path):
    old = vocabulary({'abab': 3}, 258)
    (tmp_path / 'vocab.json').write_text(json.dumps(old.entries))
    merges = tmp_path / 'merges.txt'
    merges.write_text(''.join(f'{left} {right}\n' for left, right in old.merges))
    options = BpeOptions(vocab_size=260, extend=str(tmp_path))
    assert BpeScheme().old_vocabulary(options).merges == old.merges
    recorded = options.for_manifest()['extend']
    merges.write_text('#version: 0.2\n' + merges.read_text())
    assert options.for_manifest()['extend'] != recorded
    merges.unlink()
    with pytest.raises(InputError, match='holds no tokenizer.json'):
        BpeScheme().check(options)
