"""Batches of text equal those of TensorFlow NMT's own code, where a clone of it can be had.

NMT_CLONE names a clone of github.com/tensorflow/nmt (as of 0be8642). It was written for TensorFlow
1; the names that it uses are in `tf.compat.v1`, except one of `tf.contrib`.
"""

import contextlib
import importlib
import os
import random
import sys
import types

import pytest

SPECIAL = ['<unk>', '<s>', '</s>']
WORDS = [f'w{number}' for number in range(50)]
FIELDS = [
    'source', 'target_input', 'target_output', 'source_sequence_length', 'target_sequence_length'
]  # fmt: skip

pytestmark = pytest.mark.corpora


@pytest.fixture(scope='module')
def original(tensorflow):
    """The original's modules of iterators and of vocabularies."""
    clone = os.environ.get('NMT_CLONE')
    if not clone:
        pytest.skip('NMT_CLONE is not set')
    first = tensorflow.compat.v1
    earlier = types.ModuleType('tensorflow')
    earlier.__dict__.update({name: getattr(first, name) for name in dir(first)})
    earlier.__path__ = tensorflow.__path__
    group_by_window = tensorflow.data.experimental.group_by_window
    earlier.contrib = types.SimpleNamespace(
        data=types.SimpleNamespace(group_by_window=group_by_window)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(clone)
        patch.setitem(sys.modules, 'tensorflow', earlier)
        return types.SimpleNamespace(
            iterators=importlib.import_module('nmt.utils.iterator_utils'),
            vocabularies=importlib.import_module('nmt.utils.vocab_utils'),
        )


@pytest.fixture(scope='module')
def text(tmp_path_factory):
    """Paths of both sides and their vocabularies: empty lines, runs of blanks, unknown words."""
    folder = tmp_path_factory.mktemp('text')
    chance = random.Random(23)
    tried = [*WORDS, 'other', '', '\t', '\u3000']
    paths = []
    for name in ('source', 'target'):
        lines = [' '.join(chance.choices(tried, k=chance.randrange(60))) for _ in range(400)]
        paths.append(folder / name)
        paths[-1].write_text(''.join(f'{line}\n' for line in lines), newline='')
    for name, words in (('source.words', WORDS), ('target.words', WORDS[::-1])):
        paths.append(folder / name)
        paths[-1].write_text(''.join(f'{word}\n' for word in [*SPECIAL, *words]))
    return list(map(str, paths))


@contextlib.contextmanager
def original_session(tensorflow, original, text):
    """Opens a graph; gives what makes datasets of both sides, their tables, and what runs it."""
    first = tensorflow.compat.v1

    def run(iterator, fields):
        with first.Session() as session:
            session.run(first.tables_initializer())
            session.run(iterator.initializer)
            batches = []
            with contextlib.suppress(tensorflow.errors.OutOfRangeError):
                while True:
                    found = session.run({name: getattr(iterator, name) for name in fields})
                    batches.append({name: array.tolist() for name, array in found.items()})
            return batches

    with tensorflow.Graph().as_default():
        sides = [first.data.TextLineDataset(path) for path in text[:2]]
        yield sides, original.vocabularies.create_vocab_tables(*text[2:], False), run


def found(batches):
    return [
        {name: array.tolist() for name, array in batch.items()}
        for batch in batches.as_numpy_iterator()
    ]


@pytest.mark.parametrize('shuffle_buffer', [1, 90, None])
@pytest.mark.parametrize(
    ('ours', 'theirs'),
    [
        ({}, {}),
        ({'num_buckets': 1}, {'num_buckets': 1}),
        ({'num_buckets': 3, 'source_max_length': 31}, {'num_buckets': 3, 'src_max_len': 31}),
        (
            {'source_max_length': 7, 'target_max_length': 40},
            {'src_max_len': 7, 'tgt_max_len': 40},
        ),
        ({'target_max_length': 4}, {'tgt_max_len': 4}),
        *(
            [{'num_shards': 3, 'shard_index': shard, 'skip_count': 11}] * 2
            for shard in range(3)
        ),
    ],
)  # fmt: skip
def test_training_batches_in_their_order(tensorflow, original, text, ours, theirs, shuffle_buffer):
    """One seed gives one shuffle; a buffer of one is none, which the original does not have."""
    from tokcore import training_batches

    with original_session(tensorflow, original, text) as (sides, tables, run):
        asked = {'num_buckets': 5, 'output_buffer_size': shuffle_buffer, **theirs}
        iterator = original.iterators.get_iterator(
            *sides, *tables, batch_size=8, sos='<s>', eos='</s>', random_seed=3, **asked
        )
        wanted = run(iterator, FIELDS)
    assert len(wanted) > 10
    buffer = 0 if shuffle_buffer == 1 else shuffle_buffer
    batches = training_batches(*text, batch_size=8, seed=3, shuffle_buffer=buffer, **ours)
    assert found(batches) == wanted


@pytest.mark.parametrize('longest', [None, 9])
def test_inference_batches(tensorflow, original, text, longest):
    from tokcore import inference_batches

    with original_session(tensorflow, original, text) as (sides, tables, run):
        iterator = original.iterators.get_infer_iterator(
            sides[0], tables[0], batch_size=7, eos='</s>', src_max_len=longest
        )
        wanted = run(iterator, ['source', 'source_sequence_length'])
    assert sum(len(batch['source']) for batch in wanted) == 400
    batches = inference_batches(text[0], text[2], batch_size=7, source_max_length=longest)
    assert found(batches) == wanted


@pytest.mark.parametrize('special', [[], SPECIAL])
def test_vocabularies(tensorflow, original, tmp_path, special):
    """Special tokens are put before words that have none, as there."""
    from tokcore.reading.tensorflow import vocabulary_words

    path = tmp_path / 'words'
    path.write_text(''.join(f'{word}\n' for word in [*special, *WORDS]))
    (tmp_path / 'out').mkdir()
    size, used = original.vocabularies.check_vocab(str(path), str(tmp_path / 'out'))
    words, _ = original.vocabularies.load_vocab(used)
    assert vocabulary_words(path, SPECIAL) == words
    assert size == len(words)
