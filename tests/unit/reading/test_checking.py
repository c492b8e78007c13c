"""The check of a shard agrees with the readers, whatever the bytes are."""

import hashlib
import io
from types import SimpleNamespace

import numpy as np
import written_dataset
from dataset_files import framed
from hypothesis import given
from hypothesis import strategies as st

from tokcore.kernels.bytes import row_offsets
from tokcore.kernels.jit import read_only
from tokcore.reading.checking import check_records, record_fields
from tokcore.reading.shards import ExampleParser


def example(ids):
    """A record of targets, without what frames it."""
    return written_dataset.framed([{'targets': ids}])[0][12:-4]


class Pieces(io.BytesIO):
    """Bytes that are read a few at a time."""

    def __init__(self, data, size):
        super().__init__(data)
        self.size = size

    def readinto(self, room):
        return super().readinto(memoryview(room)[: self.size])

    def plain(self):
        """The same as a stream that has no `readinto`, as those of stores."""
        return SimpleNamespace(read=lambda wanted: self.read(min(wanted, self.size)))


IDS = st.lists(
    st.integers(0, 127) | st.integers(0, 1 << 15) | st.integers(0, (1 << 31) - 1), max_size=40
)
NEAR = [127, 128, 16382, 16383, 16384, 32640, 32767, (1 << 21) - 1, 1 << 21]
LARGEST = st.sampled_from([5, 127, 128, 16382, 16383, 16384, 32767, (1 << 21) + 3, (1 << 31) - 1])


@given(st.lists(IDS, max_size=4), LARGEST, st.data())
def test_a_record_is_marked_sound_if_and_only_if_it_is_parsed(rows, largest, data):
    contents = []
    # Long rows of which nearly all numbers are ids, of each number of bytes.
    near = st.sampled_from([0, 1, 3, 5, *(each for each in NEAR if each <= largest), largest + 1])
    for ids in [*rows, *data.draw(st.lists(st.lists(near, max_size=150), max_size=2))]:
        content = bytearray(example(ids))
        if content and data.draw(st.booleans()):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        contents.append(bytes(content))
    bounds = row_offsets([len(content) for content in contents])
    records = read_only(np.array([bounds[:-1], np.diff(bounds)]))
    # The kernels look at 64 bytes at once, and never at what comes after the array.
    text = read_only(np.frombuffer(b''.join(contents), np.uint8))
    parser = ExampleParser({'targets': largest})
    rows, unparsed = parser.parse(text, records)
    counts, uncounted = parser.count(text, records)
    assert uncounted.tolist() == unparsed.tolist()
    parsed = np.setdiff1d(np.arange(len(counts)), unparsed)
    for column, offsets in enumerate(rows.offsets.values()):
        assert counts[parsed, column].tolist() == np.diff(offsets)[parsed].tolist()


@given(st.lists(IDS, max_size=6), st.integers(6, 1 << 31))
def test_ids_out_of_range_are_named_by_their_records(rows, count):
    data = b''.join(framed(example(ids)) for ids in rows)
    found = check_records(io.BytesIO(data), 'x', {'targets': count})
    wrong = [number for number, ids in enumerate(rows) if any(id_ >= count for id_ in ids)]
    assert [finding.record for finding in found.findings] == wrong
    assert (found.rows, found.bytes) == (len(rows), len(data))


@given(st.binary(max_size=200), st.integers(1, 30))
def test_any_bytes_are_checked_whatever_the_pieces(data, size):
    whole = check_records(io.BytesIO(data), 'x', {'targets': 100})
    assert check_records(Pieces(data, size), 'x', {'targets': 100}) == whole
    assert check_records(Pieces(data, size).plain(), 'x', {'targets': 100}) == whole
    assert bool(whole.findings) == bool(data)


@given(st.lists(IDS, max_size=8), st.integers(1, 60))
def test_records_that_cross_pieces_are_found_whole(rows, size):
    records = [framed(example(ids)) for ids in rows]
    data, starts = b''.join(records), row_offsets([*map(len, records)])[:-1]
    found, whole = (
        check_records(stream, 'x', {'targets': None})
        for stream in (Pieces(data, size), io.BytesIO(data))
    )
    assert found == whole and found.rows == len(rows) and not found.findings
    fields = record_fields(starts, np.array([*map(len, rows)], np.uint32)[:, None])
    assert found.records_sha256 == hashlib.sha256(fields).hexdigest()
