"""Batches of text are those of TensorFlow NMT, by an independent restatement of its rules."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_nmt_batches import plain_training_batches

from tokcore.errors import InputError

SPECIAL = ['<unk>', '<s>', '</s>']
SOURCE, TARGET = [*SPECIAL, 'a', 'b', 'c'], [*SPECIAL, 'x', 'y']

pytestmark = [pytest.mark.usefixtures('tensorflow'), pytest.mark.slow]


@pytest.fixture
def text(tmp_path):
    """Writes the lines of two sides and their vocabularies; returns the four paths."""

    def write(pairs, source=SOURCE, target=TARGET):
        sides = zip(*pairs, strict=True) if pairs else ((), ())
        paths = []
        for name, lines in zip('abcd', [*sides, source, target], strict=True):
            paths.append(tmp_path / name)
            paths[-1].write_text(''.join(f'{line}\n' for line in lines), newline='')
        return paths

    return write


def ids(line, words):
    return [words.index(word) if word in words else 0 for word in line.split(' ') if word]


def expected(pairs, **options):
    coded = [(ids(source, SOURCE), ids(target, TARGET)) for source, target in pairs]
    return plain_training_batches(coded, start=1, end=2, pad_source=2, pad_target=2, **options)


def found(batches):
    return [
        {name: each.tolist() for name, each in batch.items()}
        for batch in batches.as_numpy_iterator()
    ]


def training(paths, **options):
    from tokcore import training_batches

    return training_batches(*paths, **{'shuffle_buffer': 0, **options})


def lines_of(words, lengths):
    return [' '.join([words] * length) for length in lengths]


HAND_MADE = {  # other rules are those of `plain_training_batches`, by `test_any_lines`
    'one pair': ([('a b', 'x')], {'batch_size': 2}, [
        {'source': [[3, 4]], 'target_input': [[1, 3]], 'target_output': [[3, 2]],
         'source_sequence_length': [2], 'target_sequence_length': [2]},
    ]),
    'padded by the end': ([('a', 'x y'), ('a b c', 'y')], {'batch_size': 2}, [
        {'source': [[3, 2, 2], [3, 4, 5]], 'target_input': [[1, 3, 4], [1, 4, 2]],
         'target_output': [[3, 4, 2], [4, 2, 2]], 'source_sequence_length': [1, 3],
         'target_sequence_length': [3, 2]},
    ]),
    'a bucket is full before an earlier one': (
        [('a ' * 12, 'x'), ('b', 'y'), ('c', 'y')], {'batch_size': 2}, [
        {'source': [[4], [5]], 'target_input': [[1, 4], [1, 4]], 'target_output': [[4, 2], [4, 2]],
         'source_sequence_length': [1, 1], 'target_sequence_length': [2, 2]},
        {'source': [[3] * 12], 'target_input': [[1, 3]], 'target_output': [[3, 2]],
         'source_sequence_length': [12], 'target_sequence_length': [2]},
    ]),
    'a shard, and pairs skipped in it': (
        [('a', 'x'), ('b', 'y'), ('c', 'x'), ('a', 'y'), ('b', 'x')],
        {'batch_size': 2, 'num_shards': 2, 'shard_index': 0, 'skip_count': 1}, [
        {'source': [[5], [4]], 'target_input': [[1, 3], [1, 3]], 'target_output': [[3, 2], [3, 2]],
         'source_sequence_length': [1, 1], 'target_sequence_length': [2, 2]},
    ]),
}  # fmt: skip


@pytest.mark.parametrize('case', HAND_MADE)
def test_batches_written_out(text, case):
    pairs, options, batches = HAND_MADE[case]
    assert found(training(text(pairs), **options)) == batches
    assert expected(pairs, **options) == batches


def test_lengths_that_the_original_was_run_on(text):
    lengths = [25, 3, 60, 12, 1, 9, 10, 49, 50, 51]
    pairs = [(' '.join(['a'] * length), ' '.join(['x'] * length)) for length in lengths]
    batches = found(training(text(pairs), batch_size=2))
    assert [each['source_sequence_length'] for each in batches] == (
        [[3, 1], [12, 9], [60, 49], [50, 51], [10], [25]]
    )


WORDS = st.lists(
    st.sampled_from(['a', 'b', 'x', 'y', 'q', '', '\t', '\u3000', 'a\u00a0b']), max_size=40
)


@given(
    st.lists(st.tuples(WORDS, WORDS), max_size=20),
    st.fixed_dictionaries(
        {
            'batch_size': st.integers(1, 4),
            'num_buckets': st.integers(0, 6),
            'source_max_length': st.one_of(st.none(), st.integers(0, 30)),
            'target_max_length': st.one_of(st.none(), st.integers(0, 30)),
            'num_shards': st.integers(1, 3),
            'skip_count': st.one_of(st.none(), st.integers(0, 5)),
        }
    ),
)
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_lines(text, pairs, options):
    lines = [(' '.join(source), ' '.join(target)) for source, target in pairs]
    for shard in range(options['num_shards']):
        given_options = {**options, 'shard_index': shard}
        assert found(training(text(lines), **given_options)) == expected(lines, **given_options)


def test_shuffled_batches_have_the_same_pairs_by_the_same_rule(text):
    pairs = [(' '.join(['a'] * (1 + k % 35)), ' '.join(['x'] * (1 + k % 17))) for k in range(200)]
    dataset = training(text(pairs), batch_size=8, shuffle_buffer=50, seed=3)
    first, second = found(dataset), found(dataset)
    assert first != second
    again = training(text(pairs), batch_size=8, shuffle_buffer=50, seed=3, reshuffle=False)
    assert found(again) == found(again)
    plain = rows(expected(pairs, batch_size=8))
    for batches in (first, second, found(again)):
        assert rows(batches) == plain
        for batch in batches:
            longest = [
                max(lengths) // 10
                for lengths in zip(
                    batch['source_sequence_length'], batch['target_sequence_length'], strict=True
                )
            ]
            assert len({min(5, each) for each in longest}) == 1


def rows(batches):
    return sorted(
        (source[:length], target[: size - 1])
        for batch in batches
        for source, length, target, size in zip(
            batch['source'], batch['source_sequence_length'], batch['target_output'],
            batch['target_sequence_length'], strict=True,
        )
    )  # fmt: skip


@given(st.lists(WORDS, max_size=20), st.integers(1, 4), st.one_of(st.none(), st.integers(0, 20)))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_inference_keeps_order_and_empty_lines(text, words, size, most):
    from tokcore import inference_batches

    lines = [' '.join(each) for each in words]
    path, _, vocabulary, _ = text([(line, '') for line in lines])
    batches = inference_batches(path, vocabulary, batch_size=size, source_max_length=most)
    coded = [ids(line, SOURCE)[: most or None] for line in lines]
    wanted = [coded[start : start + size] for start in range(0, len(coded), size)]
    assert [each['source_sequence_length'] for each in found(batches)] == [
        [len(row) for row in part] for part in wanted
    ]
    for batch, part in zip(found(batches), wanted, strict=True):
        width = max(map(len, part))
        assert batch['source'] == [[*row, *[2] * (width - len(row))] for row in part]


def test_words_come_after_special_tokens_that_are_not_there(text):
    paths = text([('a', 'x')], ['a', 'b', 'c'], ['x', 'y', 'z'])
    [batch] = found(training(paths, batch_size=1))
    assert (batch['source'], batch['target_output']) == ([[3]], [[3, 2]])


@pytest.mark.parametrize(
    ('words', 'told'),
    [
        (
            ['<s>', '<unk>', '</s>', 'a'],
            '<unk> on line 2, <s> on line 1, </s> on line 3, but must begin',
        ),
        ([*SPECIAL, 'a', 'a'], "line 5: 'a' is on line 4 too"),
        ([*SPECIAL, '', 'a'], 'line 4 is blank'),
        (['a', 'b'], 'has 2 words'),
    ],
)
def test_a_vocabulary_that_goes_wrong_there_is_refused_here(text, words, told):
    with pytest.raises(InputError, match=told):
        training(text([('a', 'x')], words), batch_size=1)


@pytest.mark.parametrize(('short', 'said'), [(0, 'target'), (1, 'source')])
def test_sides_of_unequal_length_are_an_error(text, tensorflow, short, said):
    paths = text([('a', 'x'), ('b', 'y')])
    paths[short].write_text('a\n')
    with pytest.raises(
        tensorflow.errors.InvalidArgumentError, match=f'the {said} side has more lines'
    ):
        found(training(paths, batch_size=1))
