"""Smaller vocabularies: which entries stay, and that no token changes."""

import collections
import dataclasses
import io
import itertools
import json
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tokcore.bpe.options import BpeOptions
from tokcore.bpe.scheme import BpeScheme
from tokcore.bpe.shrinking import id_maps, last_merge, shrink
from tokcore.bpe.vocabulary import AddedToken, BpeVocabulary, ModelRules, TokenizerParts
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.text.byte_level import ALPHABET, spelled
from tokcore.text.patterns import split
from tokcore.tokenizers import learn_vocabulary

tables = st.dictionaries(st.text('abc', min_size=1, max_size=9), st.integers(0, 9), max_size=12)


@st.composite
def vocabularies(draw, most_merges=1, size=12):
    """Vocabularies whose merges are in any order, and whose added tokens may be entries."""
    results = draw(st.lists(st.text('abc', min_size=2, max_size=5), max_size=size, unique=True))
    entries = [*ALPHABET, *results]
    merges = []
    for result in results:
        pairs = [(result[:cut], result[cut:]) for cut in range(1, len(result))]
        known = [pair for pair in pairs if {*pair} <= {*entries}]
        merges += draw(st.permutations(known))[:most_merges]
    added = draw(st.sampled_from([(), ('<s>',), ('<s>', 'ab')]))
    ids = {entry: id_ for id_, entry in enumerate(draw(st.permutations(entries)))}
    numbers = dict(ids)
    tokens = tuple(AddedToken(numbers.setdefault(each, len(numbers)), each) for each in added)
    rules = ModelRules(ignore_merges=draw(st.booleans()))
    return BpeVocabulary(ids, draw(st.permutations(merges)), tokens, rules=rules)


def plain_pieces(token, entries, merges, is_whole, made=None):
    """The pieces of a token; `made` counts the entries that it becomes or passes through."""
    made = collections.Counter() if made is None else made
    if is_whole and token in entries:
        made[token] += 1
        return [token]
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    symbols = [*token]
    made.update(symbols)
    while pairs := [pair for pair in zip(symbols, symbols[1:]) if pair in ranks]:
        pair = min(pairs, key=ranks.__getitem__)
        first = next(k for k in range(len(symbols)) if (*symbols[k : k + 2],) == pair)
        symbols[first : first + 2] = [''.join(pair)]
        made[''.join(pair)] += 1
    return symbols


def pieces_of(token, vocabulary, made=None):
    is_whole = vocabulary.rules.ignore_merges
    return plain_pieces(token, vocabulary.entries, vocabulary.merges, is_whole, made)


def shrunk(counts, old, size=None):
    return shrink(TokenTable.from_items(counts.items()), old, size)


@given(tables, vocabularies(most_merges=3))
def test_no_token_changes_its_pieces(tokenizers, counts, old):
    smaller = shrunk(counts, old)
    new_ids = {old.id_of(piece): id_ for id_, piece in enumerate(smaller.pieces)}
    before, after = (tokenizers.Tokenizer.from_str(each.dump().decode()) for each in (old, smaller))
    for tokenizer in (before, after):
        tokenizer.encode_special_tokens = True
    for token in counts:
        pieces = pieces_of(token, old)
        assert pieces_of(token, smaller) == pieces
        ids = after.encode(token).ids
        assert ids == [new_ids[id_] for id_ in before.encode(token).ids]
        assert ids == [smaller.entries[piece] for piece in pieces]
    # The file says the same of everything but the ids.
    assert BpeScheme().parse(smaller.dump(), 'x') == smaller
    assert [*smaller.merges] == [
        pair for pair in old.merges if {*pair, ''.join(pair)} <= smaller.entries.keys()
    ]
    assert [token.content for token in smaller.added] == [token.content for token in old.added]
    for vocabulary in (old, smaller):
        contents = [token.content for token in vocabulary.added]
        assert [vocabulary.pieces[token.id] for token in vocabulary.added] == contents
    in_order = [piece for piece in old.pieces if piece in smaller.entries]
    assert sorted(smaller.entries, key=smaller.entries.get) == in_order


def fewest(counts, old):
    """The number of entries of the smallest vocabulary with the same pieces, by trying all."""
    fixed = {*ALPHABET, *(token.content for token in old.added)}
    others = [entry for entry in old.entries if entry not in fixed]
    for count in range(len(others) + 1):
        for chosen in itertools.combinations(others, count):
            entries = {*fixed & old.entries.keys(), *chosen}
            merges = [pair for pair in old.merges if {*pair, ''.join(pair)} <= entries]
            is_whole = old.rules.ignore_merges
            if all(
                plain_pieces(token, entries, merges, is_whole) == pieces_of(token, old)
                for token in counts
            ):
                return len(fixed | {*chosen})


@given(tables, vocabularies(size=5))
def test_no_entry_could_be_left_out(counts, old):
    assert shrunk(counts, old).vocab_size == fewest(counts, old)


@given(tables, vocabularies(most_merges=3, size=5))
def test_with_several_merges_for_an_entry_fewer_may_do(counts, old):
    assert shrunk(counts, old).vocab_size >= fewest(counts, old)


def test_other_merges_of_an_entry_may_need_fewer():
    entries = {entry: id_ for id_, entry in enumerate([*ALPHABET, 'ab', 'bc', 'abc'])}
    merges = [('a', 'b'), ('ab', 'c'), ('b', 'c'), ('a', 'bc')]
    old, counts = BpeVocabulary(entries, merges), {'abc': 1, 'bc': 1}
    assert (shrunk(counts, old).vocab_size, fewest(counts, old)) == (259, 258)


@given(tables, vocabularies(most_merges=3), st.data())
def test_a_size_keeps_what_text_makes_most(counts, old, data):
    fixed = {*ALPHABET, *(token.content for token in old.added)}
    size = data.draw(st.integers(len(fixed), len(fixed | old.entries.keys())))
    with mock.patch('tokcore.bpe.shrinking._LOGGER.warning') as warning:
        smaller = shrunk(counts, old, size)
    assert smaller.vocab_size == size
    made = collections.Counter()
    for token, count in counts.items():
        of_token = collections.Counter()
        pieces_of(token, old, of_token)
        for entry, times in of_token.items():
            made[entry] += times * max(count, 1)
    others = sorted(
        old.entries.keys() - fixed, key=lambda each: (-made[each], len(each), old.entries[each])
    )
    assert {*smaller.entries} == (fixed & old.entries.keys()) | {*others[: size - len(fixed)]}
    changed = [each for each in counts if pieces_of(each, smaller) != pieces_of(each, old)]
    total, of_changed = (
        sum(len(each) * counts[each] for each in some) for some in (counts, changed)
    )
    if changed:
        share = 100 * of_changed / max(total, 1)
        message, *values = warning.call_args.args
        said = f'{share:.3f}% of the text is in tokens whose pieces change'
        assert message % tuple(values) == said and warning.call_count == 1
    else:
        assert not warning.called
    if size >= shrunk(counts, old).vocab_size and not old.rules.ignore_merges:
        assert not changed


@given(tables, st.integers(1, 30), st.text('abc <', max_size=30))
def test_vocabularies_that_were_learned(tokenizers, counts, merges, text):
    assume(any(counts.values()))
    old = learn_vocabulary(
        [' '.join([token] * count) for token, count in counts.items()], 'bpe', merges=merges
    ).vocabulary
    smaller = shrunk(dict.fromkeys(split(text, 'gpt2'), 1), old)
    new_ids = {old.id_of(piece): id_ for id_, piece in enumerate(smaller.pieces)}
    before, after = (tokenizers.Tokenizer.from_str(each.dump().decode()) for each in (old, smaller))
    for added in ('', '<|endoftext|>'):
        ids = before.encode(text + added).ids
        assert after.encode(text + added).ids == [new_ids[id_] for id_ in ids]
    assert after.decode(after.encode('other').ids) == 'other'


def test_the_last_merge():
    ranks = {('a', 'b'): 1, ('b', 'c'): 0, ('a', 'bc'): 2, ('ab', 'c'): 3, ('c', 'b'): 4}

    def merge_of(entry):
        return last_merge(entry, lambda *pair: ranks.get(pair))

    assert merge_of('abc') == ('a', 'bc')
    assert merge_of('cb') == ('c', 'b')
    assert merge_of('abb') is merge_of('a') is merge_of('') is None


ROBERTA = {
    'type': 'RobertaProcessing', 'sep': ['</s>', 1], 'cls': ['<s>', 0], 'trim_offsets': True,
    'add_prefix_space': False,
}  # fmt: skip
TEMPLATE = {
    'type': 'TemplateProcessing',
    'single': [
        {'SpecialToken': {'id': '<s>', 'type_id': 0}},
        {'Sequence': {'id': 'A', 'type_id': 0}},
        {'SpecialToken': {'id': '</s>', 'type_id': 0}},
    ],
    'pair': [{'Sequence': {'id': 'A', 'type_id': 0}}, {'Sequence': {'id': 'B', 'type_id': 1}}],
    'special_tokens': {
        '<s>': {'id': '<s>', 'ids': [0], 'tokens': ['<s>']},
        '</s>': {'id': '</s>', 'ids': [1], 'tokens': ['</s>']},
    },
}


@pytest.mark.parametrize('processor', [ROBERTA, TEMPLATE])
def test_a_post_processor_has_the_new_ids(tokenizers, processor):
    pieces = ['ab', *ALPHABET, 'cd', '<s>', '</s>']
    ids = {piece: id_ for id_, piece in enumerate(pieces)}
    added = (AddedToken(ids['<s>'], '<s>'), AddedToken(ids['</s>'], '</s>'))
    text = (
        json.dumps(processor).replace('[0]', f'[{ids["<s>"]}]').replace('[1]', f'[{ids["</s>"]}]')
    )
    text = text.replace('"<s>", 0]', f'"<s>", {ids["<s>"]}]')
    components = {
        **TokenizerParts.of().components,
        'post_processor': json.loads(text.replace('"</s>", 1]', f'"</s>", {ids["</s>"]}]')),
    }
    parts = dataclasses.replace(TokenizerParts.of(), components=components)
    old = BpeVocabulary(ids, [('a', 'b'), ('c', 'd')], added, parts)
    smaller = shrunk({'cd': 1}, BpeScheme().parse(old.dump(), 'x'))
    assert smaller.pieces == (*ALPHABET, 'cd', '<s>', '</s>')
    assert smaller.template == ((257,), (258,))
    assert BpeScheme().parse(smaller.dump(), 'x') == smaller
    theirs = tokenizers.Tokenizer.from_str(smaller.dump().decode())
    assert theirs.encode('cd').ids == [257, 256, 258]


def test_the_old_ids_by_the_new_ones(tmp_path):
    path = tmp_path / 'tokenizer.json'
    old = learn_vocabulary(['abab cdcd'], 'bpe', merges=4).vocabulary
    path.write_bytes(old.dump())
    options = BpeOptions(shrink=str(path))
    assert options.endings_beside == ('.ids.npy', '.ids.json') and options.size_label == 'shrunk'
    assert BpeOptions(shrink=str(path), vocab_size=300).size_label == '300'
    scheme = BpeScheme().for_learning(options)
    table = TokenTable.from_items([('abab', 1)])
    smaller = scheme.learn(table, options, lambda *_: None).vocabulary
    array, text = scheme.files_beside(smaller, options).values()
    assert (array, text) == id_maps(old, smaller)
    pairs = np.load(io.BytesIO(array))
    assert pairs.tolist() == json.loads(text)
    assert pairs[:, 1].tolist() == [*range(smaller.vocab_size)]
    assert tuple(old.pieces[id_] for id_ in pairs[:, 0]) == smaller.pieces
    assert scheme.files_beside(smaller, BpeOptions(merges=4)) == {}
    assert learn_vocabulary(['abab'], 'bpe', shrink=path).vocabulary == smaller


@pytest.mark.parametrize(
    ('model', 'said'),
    [
        ({'type': 'WordPiece'}, 'the model WordPiece'),
        ({'type': 'Unigram'}, 'the model Unigram'),
        ({'byte_fallback': True}, 'has byte_fallback, which --shrink does not know'),
    ],
)
def test_other_models_are_refused(tmp_path, model, said):
    path = tmp_path / 'tokenizer.json'
    file = json.loads(learn_vocabulary(['abab'], 'bpe', merges=2).vocabulary.dump())
    path.write_text(json.dumps({**file, 'model': {**file['model'], **model}}))
    with pytest.raises(InputError, match=said):
        BpeScheme().check(BpeOptions(shrink=str(path)))


def test_what_does_not_go_with_it(tmp_path):
    path = tmp_path / 'tokenizer.json'
    path.write_bytes(learn_vocabulary(['abab'], 'bpe', merges=2).vocabulary.dump())
    for wrong in ({'merges': 4}, {'min_count': 2}, {'extend': 'x'}, {'special_tokens': ('<s>',)}):
        with pytest.raises(InputError, match=' cannot go with --shrink; leave it out'):
            BpeOptions(shrink=str(path), **wrong)
    options = BpeOptions(shrink=str(path), learner='beam')
    with pytest.raises(InputError, match='on Beam: nothing is learned with --shrink'):
        BpeScheme().check(options)
    for scheme in (
        BpeScheme('cl100k'),
        BpeScheme(pre_tokenizer_kind='none'),
        BpeScheme('textbook'),
    ):
        with pytest.raises(InputError, match='and the options give'):
            scheme.for_learning(options)
    for size in (256, 260):
        with pytest.raises(InputError, match='is not from 257, .* to the 259 entries'):
            learn_vocabulary(['abab'], 'bpe', shrink=path, vocab_size=size)
    for text in ('#version: 0.2\na b\n', 'IQ== 0\nIg== 1\nIw== 2\nJA== 3\nJQ== 4\n'):
        path.write_text(text)
        with pytest.raises(InputError, match='is not a vocabulary of'):
            BpeScheme().for_learning(options)


def test_more_text_than_counts_can_say():
    with pytest.raises(OverflowError, match='more than 2.62 bytes'):
        shrunk({'abc': 1 << 61}, BpeVocabulary.learned(ALPHABET, ()))


def test_bytes_that_have_no_entry_stay_so():
    ids = {entry: id_ for id_, entry in enumerate([*ALPHABET[:-1], 'ab'])}
    smaller = shrunk({'ab': 1, 'ÿ': 2}, BpeVocabulary(ids, [('a', 'b')]))
    assert smaller.entries == ids and spelled(b'ab') in smaller.entries
