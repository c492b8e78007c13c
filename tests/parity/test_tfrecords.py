"""Our TFRecords against TensorFlow: it reads them, parses them, and writes the same bytes."""

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tokcore.corpus.order_keys import order_keys
from tokcore.records.tfrecord import frame_examples, parse_example, read_records, sort_rows


@dataclasses.dataclass
class Encoded:
    ids: np.ndarray
    offsets: np.ndarray


def encoded(rows: list[list[int]]) -> Encoded:
    ids = np.array([value for row in rows for value in row], np.int32)
    return Encoded(ids, np.cumsum([0] + [len(row) for row in rows], dtype=np.int64))


def some_rows(seed: int, count: int, ceiling: int) -> list[list[int]]:
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 60, count)
    lengths[0], lengths[1] = 0, 40_000
    return [random.integers(0, ceiling, length).tolist() for length in lengths]


INPUTS = some_rows(1, 300, 8192)
TARGETS = some_rows(2, 300, 2**31)


def framed_pairs():
    keys = order_keys(0, np.arange(len(INPUTS)) * 61, 0)
    return frame_examples([('inputs', encoded(INPUTS)), ('targets', encoded(TARGETS))], keys)


def test_a_dataset_reads_and_parses_the_same_lists(tensorflow, tmp_path):
    path = tmp_path / 'x-train-00000-of-00001'
    path.write_bytes(framed_pairs().records.tobytes())
    ragged = tensorflow.io.VarLenFeature(tensorflow.int64)
    found = []
    for record in tensorflow.data.TFRecordDataset(str(path)).as_numpy_iterator():
        parsed = tensorflow.io.parse_single_example(record, {'inputs': ragged, 'targets': ragged})
        found.append(tuple(parsed[name].values.numpy().tolist() for name in ('inputs', 'targets')))
    assert found == list(zip(INPUTS, TARGETS, strict=True))


def test_the_writer_gives_the_same_file(tensorflow, tmp_path):
    data = sort_rows([framed_pairs()]).records.tobytes()
    path = tmp_path / 'theirs'
    with tensorflow.io.TFRecordWriter(str(path)) as writer:
        for payload in read_records(data, 'ours'):
            writer.write(payload)
    assert path.read_bytes() == data


def test_records_of_the_writer_are_read(tensorflow, tmp_path):
    payloads = [b'', b'a', bytes(range(256)) * 40]
    path = tmp_path / 'theirs'
    with tensorflow.io.TFRecordWriter(str(path)) as writer:
        for payload in payloads:
            writer.write(payload)
    assert list(read_records(path.read_bytes(), 'theirs')) == payloads


def test_tensor2tensors_features_are_protobufs_deterministic_serialization(tensorflow):
    payloads = list(read_records(framed_pairs().records.tobytes(), 'ours'))
    for payload, inputs, targets in zip(payloads, INPUTS, TARGETS, strict=True):
        example = tensorflow.train.Example()
        example.features.feature['targets'].int64_list.value[:] = targets
        example.features.feature['inputs'].int64_list.value[:] = inputs
        for feature in example.features.feature.values():
            feature.int64_list.SetInParent()
        assert payload == example.SerializeToString(deterministic=True)


IDS = st.lists(st.one_of(st.integers(0, 300), st.integers(0, 2**31 - 1)), max_size=50)
NAMES = st.text(st.characters(exclude_categories=['Cs']), max_size=12)


@given(features=st.dictionaries(NAMES, IDS, min_size=1, max_size=4))
def test_payloads_are_protobufs_deterministic_serialization(tensorflow, features):
    rows = frame_examples(
        [(name, encoded([ids])) for name, ids in features.items()], np.zeros(1, np.uint64)
    )
    [payload] = read_records(rows.records.tobytes(), 'ours')
    example = tensorflow.train.Example()
    for name, ids in features.items():
        # Sets the kind of list also where it stays empty.
        example.features.feature[name].int64_list.SetInParent()
        example.features.feature[name].int64_list.value.extend(ids)
    names = [name.encode() for name in features]
    if not any(a != b and a.startswith(b) for a in names for b in names):
        # protobuf's C core puts a name before its own prefixes, other implementations after; we
        # take the order of bytes.
        assert payload == example.SerializeToString(deterministic=True)
    assert tensorflow.train.Example.FromString(payload) == example
    assert parse_example(payload) == features


def test_what_tensorflow_serializes_is_parsed(tensorflow):
    example = tensorflow.train.Example()
    example.features.feature['x'].int64_list.value.extend([0, 1, -1, 2**63 - 1, -(2**63)])
    example.features.feature['none'].SetInParent()
    assert parse_example(example.SerializeToString()) == {
        'x': [0, 1, -1, 2**63 - 1, -(2**63)],
        'none': [],
    }
