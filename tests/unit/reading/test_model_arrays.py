"""Decoder inputs and labels belong together: by each rule the same as a plain form makes of the rows."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_dataset import change_manifest, file_entry, listed, opened, write_dataset

import tokcore
from tokcore import open_dataset
from tokcore.errors import InputError
from tokcore.reading.batching import next_ids, shifted_right

PAD, END, TAG = 0, 1, 7
IGNORED = -100
TEXTS = st.lists(st.integers(2, 257), max_size=12)


def shards_of(*features):
    row = st.fixed_dictionaries(dict.fromkeys(features, TEXTS))
    return st.lists(st.lists(row, max_size=9), min_size=1, max_size=3).filter(any)


def read_and_learned(text, start):
    """What a decoder reads of a text, and the labels; with no start the first id is not learned."""
    return (text, [*text[1:], IGNORED]) if start is None else ([start, *text][:-1], text)


@given(st.lists(st.lists(st.lists(st.integers(2, 9), min_size=1, max_size=4), max_size=4)))
def test_each_text_of_a_row_is_shifted_by_itself(packed):
    length = max((sum(map(len, texts)) for texts in packed), default=0) + 1
    ids = np.full((len(packed), length), PAD, np.int32)
    segments = np.zeros_like(ids)
    for row, texts in enumerate(packed):
        numbers = [number for number, text in enumerate(texts, 1) for _ in text]
        ids[row, : len(numbers)] = [*itertools.chain(*texts)]
        segments[row, : len(numbers)] = numbers

    def padded(rows, value):
        return [[*row, *[value] * (length - len(row))] for row in rows]

    read, labels = shifted_right(ids, segments, 77)
    both = [[read_and_learned(text, 77) for text in texts] for texts in packed]
    assert read.tolist() == padded(
        [[i for read_ids, _ in row for i in read_ids] for row in both], PAD
    )
    assert labels.tolist() == padded(
        [[i for _, learned in row for i in learned] for row in both], IGNORED
    )
    following = [[i for text in texts for i in read_and_learned(text, None)[1]] for texts in packed]
    assert next_ids(ids, segments).tolist() == padded(following, IGNORED)
    streams = [[*itertools.chain(*texts)] for texts in packed]
    crossing = [read_and_learned(stream, None)[1] for stream in streams]
    assert next_ids(ids, segments, True).tolist() == padded(crossing, IGNORED)
    assert {array.dtype for array in (read, labels, next_ids(ids, segments))} == {
        np.dtype(np.int32)
    }


def rows_of(batches, names):
    """The rows of these arrays without padding, sorted; lengths are checked."""
    found = []
    for batch in batches:
        assert {array.dtype for array in batch.values()} == {np.dtype(np.int32)}
        for row in range(len(batch['labels'])):
            parts = []
            for name in names:
                length = int(batch[f'{name}_length'][row])
                ids = batch[name][row].tolist()
                assert set(ids[length:]) <= {PAD}
                parts.append(ids[:length])
            labels = batch['labels'][row].tolist()
            assert set(labels[length:]) <= {IGNORED}
            found.append((*parts, labels[:length]))
    return sorted(found)


TEMPLATES = [(None, [], [END]), ('$A', [], []), (f'{TAG} $A', [TAG], [])]
"""Of the byte scheme: the template, and the ids that rows have before and after the text."""


def drawn(tmp_path_factory, shards, template):
    """A dataset of texts with what a template puts around them."""
    name, before, after = template
    rows = [
        [{side: [*before, *text, *after] for side, text in row.items()} for row in shard]
        for shard in shards
    ]
    return opened(tmp_path_factory.mktemp('drawn') / 'd', rows, template=name)


@given(
    shards_of('inputs', 'targets'), st.sampled_from(TEMPLATES), st.sampled_from([None, 5]),
    st.integers(1, 60),
)  # fmt: skip
def test_pairs_by_a_budget_of_tokens(tmp_path_factory, shards, template, start, tokens):
    dataset, before = drawn(tmp_path_factory, shards, template), template[1]
    batches = dataset.batches(
        'train', tokens_per_batch=tokens, for_model='seq2seq', start=start, seed=1
    )
    first = start if start is not None or before else PAD
    found = rows_of(batches, ['encoder_inputs', 'decoder_inputs'])
    assert found == sorted(
        (
            [*before, *row['inputs'], END],
            *read_and_learned([*before, *row['targets'], END], first),
        )
        for shard in shards
        for row in shard
    )


@given(shards_of('targets'), st.sampled_from(TEMPLATES), st.sampled_from([None, 5]))
def test_single_texts_by_a_budget_of_tokens(tmp_path_factory, shards, template, start):
    dataset, before = drawn(tmp_path_factory, shards, template), template[1]
    found = rows_of(
        dataset.batches('train', tokens_per_batch=50, for_model='lm', start=start), ['inputs']
    )
    plain = []
    for row in (row for shard in shards for row in shard):
        plain.append(read_and_learned([*before, *row['targets'], END], start))
    if start is None:  # the last input of a row has no label, and the longest rows do not have it
        plain = [(read[:-1], labels[:-1]) for read, labels in plain]
        found = [
            (read[:-1], labels[:-1]) if labels[-1:] == [IGNORED] else (read, labels)
            for read, labels in found
        ]
    assert sorted(found) == sorted(plain)


@given(shards_of('inputs', 'targets'), st.sampled_from(TEMPLATES), st.sampled_from([None, 5]))
def test_pairs_by_nmts_rule(tmp_path_factory, shards, template, start):
    dataset, before = drawn(tmp_path_factory, shards, template), template[1]
    batches = dataset.batches(
        'train', batch_size=3, for_model='seq2seq', start=start, source_max_length=8
    )
    first = start or (TAG if before else PAD)
    assert rows_of(batches, ['encoder_inputs', 'decoder_inputs']) == sorted(
        (
            [*before, *row['inputs'][:8], END],
            *read_and_learned([*row['targets'], END], first),
        )
        for shard in shards
        for row in shard
        if row['inputs'] and row['targets']
    )


def test_an_encoder_reads_the_same_ids_by_each_rule(two_vocabularies):
    roles = {'begin': 1, 'end': 2}
    dataset = two_vocabularies(('a $A </s>', [3], [2]), inputs=roles, targets=roles)
    asked = {'for_model': 'seq2seq', 'end': 2, 'shuffle': False}
    [by_rows] = dataset.batches('train', batch_size=2, **asked)
    [by_tokens] = dataset.batches(
        'train', tokens_per_batch=20, max_length=6, boundaries=[], **asked
    )
    assert by_rows['encoder_inputs'].tolist() == by_tokens['encoder_inputs'].tolist()
    assert by_rows['encoder_inputs'].tolist() == [[3, 5, 6, 2], [3, 6, 2, 2]]
    # The template begins texts, not the token with that role.
    assert by_rows['decoder_inputs'][:, 0].tolist() == [3, 3]
    [cut] = dataset.batches('train', batch_size=2, num_buckets=1, source_max_length=1, **asked)
    assert cut['encoder_inputs'].tolist() == [[3, 5, 2], [3, 6, 2]]
    [of_nmt] = dataset.batches('train', batch_size=2, shuffle=False)
    assert of_nmt['source'].tolist() == [[5, 6], [6, 2]]
    assert of_nmt['target_input'][:, 0].tolist() == [1, 1]


def test_single_texts_by_nmts_rule(tmp_path):
    rows = [{'targets': [5, 6, END]}, {'targets': [8, END]}]
    dataset = opened(tmp_path / 'd', [rows])
    [batch] = dataset.batches('train', batch_size=2, for_model='lm', shuffle=False)
    assert listed(batch) == {
        'inputs': [[PAD, 5, 6], [PAD, 8, PAD]],
        'labels': [[5, 6, END], [8, END, IGNORED]],
        'inputs_length': [3, 2],
    }


def test_a_bound_of_sources_is_refused_where_there_are_none(tmp_path):
    dataset = opened(tmp_path / 'd', [[{'targets': [5, 6, END]}]])
    with pytest.raises(InputError, match='have targets only; give target_max_length, or leave it'):
        dataset.batches('train', batch_size=2, source_max_length=8)


@given(
    shards_of('targets'), st.sampled_from(['best-fit', 'greedy', 'concat']), st.integers(1, 20),
    st.booleans(), st.booleans(), st.sampled_from([None, 5]),
)  # fmt: skip
def test_packed_texts(tmp_path_factory, shards, strategy, length, crosses, positions, start):
    dataset = opened(tmp_path_factory.mktemp('drawn') / 'd', shards, template='$A')
    asked = {'strategy': strategy, 'batch_size': 2, 'seed': 3}
    found = dataset.packed(
        'train', length, for_model='lm', start=start, cross_documents=crosses, positions=positions,
        **asked,
    )  # fmt: skip
    plain = dataset.packed('train', length + (start is None), **asked)
    for batch, raw in zip(found, plain, strict=True):
        numbers = raw['targets_segmentation'].tolist()
        expected = {'inputs': [], 'labels': []}
        for ids, segments in zip(raw['targets'].tolist(), numbers, strict=True):
            if start is not None:
                is_first = [a != b for a, b in zip([0, *segments], segments)]
                shifted = [start if new else id_ for new, id_ in zip(is_first, [0, *ids])]
                expected['inputs'].append([i if s else PAD for i, s in zip(shifted, segments)])
                expected['labels'].append([i if s else IGNORED for i, s in zip(ids, segments)])
                continue
            expected['inputs'].append(ids[:-1])
            expected['labels'].append(
                [
                    following if new and (old == new or crosses) else IGNORED
                    for old, new, following in zip(segments, segments[1:], ids[1:])
                ]
            )
        if positions:
            last = None if start is not None else -1
            for suffix in ('_segmentation', '_position'):
                expected[f'inputs{suffix}'] = raw[f'targets{suffix}'][:, :last].tolist()
        assert listed(batch) == expected
        assert batch['inputs'].shape == (len(numbers), length)


def test_packed_pairs_begin_each_with_the_start(tmp_path):
    rows = [
        {'inputs': [5, END], 'targets': [6, 7, END]},
        {'inputs': [8, 9, END], 'targets': [4, END]},
    ]
    dataset = opened(tmp_path / 'd', [rows])
    [batch] = dataset.packed('train', 6, for_model='seq2seq', shuffle=False, strategy='greedy')
    assert listed(batch) == {
        'encoder_inputs': [[5, END, 8, 9, END, PAD]],
        'encoder_inputs_segmentation': [[1, 1, 2, 2, 2, 0]],
        'encoder_inputs_position': [[0, 1, 0, 1, 2, 0]],
        'decoder_inputs': [[PAD, 6, 7, PAD, 4, PAD]],
        'decoder_inputs_segmentation': [[1, 1, 1, 2, 2, 0]],
        'decoder_inputs_position': [[0, 1, 2, 0, 1, 0]],
        'labels': [[6, 7, END, 4, END, IGNORED]],
    }


@pytest.fixture(scope='module')
def pairs(tmp_path_factory):
    rows = [{'inputs': [2 + k, END], 'targets': [3 + k % 5] * (k % 9) + [END]} for k in range(60)]
    return opened(tmp_path_factory.mktemp('pairs') / 'd', [rows])


@pytest.fixture(scope='module')
def texts(tmp_path_factory):
    rows = [{'targets': [3 + k % 5] * (k % 9) + [END]} for k in range(60)]
    return opened(tmp_path_factory.mktemp('texts') / 'd', [rows])


@pytest.fixture(scope='module')
def pairs_without_ends(tmp_path_factory):
    rows = [{'inputs': [2 + k], 'targets': [3 + k % 5] * (1 + k % 9)} for k in range(60)]
    return opened(tmp_path_factory.mktemp('pairs') / 'd', [rows], template='$A')


ASKED = [
    ('pairs', 'batches', {'tokens_per_batch': 20, 'for_model': 'seq2seq'}),
    ('pairs', 'batches', {'batch_size': 4, 'for_model': 'seq2seq'}),
    ('pairs_without_ends', 'batches', {'batch_size': 4, 'for_model': 'seq2seq'}),
    ('pairs', 'packed', {'length': 12, 'for_model': 'seq2seq'}),
    ('texts', 'batches', {'tokens_per_batch': 20, 'for_model': 'lm'}),
    ('texts', 'batches', {'batch_size': 4, 'for_model': 'lm'}),
    ('texts', 'packed', {'length': 12, 'for_model': 'lm'}),
    ('texts', 'packed', {'length': 12, 'for_model': 'lm', 'positions': True, 'start': PAD}),
]


@pytest.mark.parametrize(('name', 'method', 'asked'), ASKED, ids=str)
def test_the_signature_a_state_and_a_mixture_have_the_same_arrays(request, name, method, asked):
    dataset = request.getfixturevalue(name)
    found = [*getattr(dataset, method)('train', **asked)]
    signature = getattr(dataset, method)('train', **asked).signature()
    for batch in found:
        assert batch.keys() == signature.keys()
        for array, (shape, dtype) in zip(
            (batch[key] for key in signature), signature.values(), strict=True
        ):
            assert array.dtype == dtype and len(array.shape) == len(shape)
            assert all(size in (wanted, size if wanted is None else wanted)
                       for size, wanted in zip(array.shape, shape))  # fmt: skip
    first = getattr(dataset, method)('train', **asked)
    next(first)
    rest = dataset.from_state(json.loads(json.dumps(first.state())))
    for batch, expected in zip(rest, found[1:], strict=True):
        assert all((batch[key] == expected[key]).all() for key in expected)
    mixed = tokcore.mixture({'one': dataset})
    assert next(getattr(mixed, method)('train', **asked)).keys() == signature.keys()


@pytest.fixture
def two_vocabularies(tmp_path):
    """Returns a function: a dataset of pairs whose sides have these special ids."""
    words = ''.join(f'{word}\n' for word in ['<unk>', '<s>', '</s>', *'abcdefg']).encode()

    def written(template=('$A', [], []), **special_ids):
        name, before, after = template
        texts = [{'inputs': [5, 6], 'targets': [3]}, {'inputs': [6], 'targets': [6, 3, 4]}]
        rows = [{side: [*before, *row[side], *after] for side in row} for row in texts]
        folder = write_dataset(tmp_path / 'sides', [rows], 'word', name)
        records = []
        for side, ids in special_ids.items():
            (folder / side).write_bytes(words)
            entry = {'side': side, 'scheme': 'word', 'size': 10, 'special_ids': ids}
            records.append(file_entry(side, 10, words) | entry)
        change_manifest(folder, lambda fields: fields.update(vocabularies=records))
        return open_dataset(folder)

    return written


PADDED_SIDES = [
    ({'end': 9}, {'pad': 7, 'end': 8}, 9, 7),
    ({'pad': 0, 'end': 9}, {'end': 8}, 0, 8),
]


@pytest.mark.parametrize(('inputs', 'targets', 'source', 'target'), PADDED_SIDES)
def test_each_side_is_padded_with_an_id_of_its_vocabulary(
    two_vocabularies, inputs, targets, source, target
):
    dataset = two_vocabularies(inputs=inputs, targets=targets)
    [nmt] = dataset.batches('train', batch_size=2, shuffle=False)
    assert nmt['source'].tolist() == [[5, 6], [6, source]]
    assert nmt['target_output'].tolist() == [[3, 8, target, target], [6, 3, 4, 8]]
    [given] = dataset.batches('train', batch_size=2, end=4, shuffle=False)
    assert given['source'].tolist() == [[5, 6], [6, source]]
    asked = {'end': False, 'shuffle': False, 'for_model': 'seq2seq'}
    [batch] = dataset.batches('train', tokens_per_batch=8, max_length=4, boundaries=[], **asked)
    assert batch['encoder_inputs'].tolist() == [[5, 6], [6, source]]
    [packed] = dataset.packed('train', 5, strategy='greedy', **asked)
    assert packed['encoder_inputs'].tolist() == [[5, 6, 6, source, source]]
    assert packed['decoder_inputs'].tolist()[0][4:] == [target]
    with pytest.raises(InputError, match="has the role 'pad'; give pad="):
        dataset.batches('train', tokens_per_batch=8)


def test_sources_are_not_padded_with_an_id_of_the_targets(two_vocabularies):
    dataset = two_vocabularies(inputs={'unknown': 0}, targets={'pad': 7, 'end': 8})
    with pytest.raises(InputError, match="has the role 'pad'; give pad="):
        dataset.batches('train', batch_size=2)
    [batch] = dataset.batches('train', batch_size=2, pad=0, shuffle=False)
    assert batch['source'].tolist() == [[5, 6], [6, 0]]


def test_an_end_that_nobody_knows_is_asked_for(tmp_path, texts):
    with pytest.raises(InputError, match="give for_model='lm'"):
        texts.batches('train', batch_size=9, for_model='seq2seq')
    folder = write_dataset(tmp_path / 'd', [[{'targets': [5, 6]}]])
    change_manifest(folder, lambda fields: fields.update(end_of_document=[]))
    dataset = open_dataset(folder)
    asked = {'tokens_per_batch': 9, 'for_model': 'lm'}
    with pytest.raises(InputError, match='which token ends its documents, and a model learns by'):
        dataset.batches('train', **asked)
    for end, learned in ((3, [[6, 3]]), (False, [[6]])):
        [batch] = dataset.batches('train', end=end, **asked)
        assert batch['labels'].tolist() == learned


def test_the_recorded_end_is_before_that_with_the_role(tmp_path):
    folder = write_dataset(tmp_path / 'd', [[{'targets': [5, 6]}]], template='$A')
    end = {'feature': 'targets', 'id': 9, 'token': '', 'in_template': False}  # as of --end 9
    change_manifest(folder, lambda fields: fields.update(end_of_document=[end]))
    dataset = open_dataset(folder)
    for asked in ({'batch_size': 1}, {'tokens_per_batch': 9}):
        [batch] = dataset.batches('train', for_model='lm', start=PAD, **asked)
        assert batch['labels'].tolist() == [[5, 6, 9]]
    [of_nmt] = dataset.batches('train', batch_size=1)
    assert of_nmt['target_output'].tolist() == [[5, 6, 9]]


def test_an_end_that_is_asked_for_is_of_the_vocabulary_of_targets(two_vocabularies):
    folder = Path(two_vocabularies(inputs={'pad': 0}, targets={'pad': 0, 'begin': 1}).folder)
    end = {'feature': 'inputs', 'id': 9, 'token': 'g', 'in_template': False}
    change_manifest(folder, lambda fields: fields.update(end_of_document=[end]))
    dataset = open_dataset(folder)
    asked = {'for_model': 'seq2seq', 'end': 4, 'shuffle': False}
    for rule in ({'batch_size': 2}, {'tokens_per_batch': 20, 'max_length': 6, 'boundaries': []}):
        [batch] = dataset.batches('train', **rule, **asked)
        assert batch['encoder_inputs'].tolist() == [[5, 6, 9], [6, 9, 0]]
        assert batch['labels'].tolist() == [[3, 4, IGNORED, IGNORED], [6, 3, 4, 4]]
    [packed] = dataset.packed('train', 6, strategy='greedy', **asked)
    assert packed['encoder_inputs'].tolist() == [[5, 6, 9, 6, 9, 0]]
    assert packed['labels'].tolist() == [[3, 4, 6, 3, 4, 4]]
