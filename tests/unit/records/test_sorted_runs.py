"""Sorted runs: what is written is read back, damage is found, any runs merge to the same bytes."""

import dataclasses
import io
import zlib

import numpy as np
import pytest
from framed_rows import framed
from hypothesis import given
from hypothesis import strategies as st

from tokcore.corpus.stats import (
    BlockStats,
    LineTally,
    RangeChecksum,
    RejectedLines,
    join_adjacent,
    join_checksums,
)
from tokcore.errors import InputError
from tokcore.kernels.sorting import SortedRows, sort_keys
from tokcore.records.examples import EncodedBlock
from tokcore.records.sorted_runs import (
    BUFFERED_ROW_BYTES,
    ENTRY,
    FOOTER_BYTES,
    SIZE_BYTES,
    RunBuffer,
    RunFile,
    RunHead,
    RunStats,
    bucket_bounds,
    bucket_groups,
    merge_buckets,
    read_run_stats,
    read_slices,
    record_pieces,
    write_run,
)
from tokcore.records.tfrecord import sort_rows

FINGERPRINT = bytes(range(16))
TALLY = LineTally('train', 7, 4, 1, {'invalid_utf8': 2})
STATS = RunStats(0, 2, TALLY, (RangeChecksum('train', 0, 0, 5, 70, 99),))
REJECTED = (
    RejectedLines('train', 'invalid_utf8', 0, 5, b'{"line": 1}\n{"line": 2}\n'),
    RejectedLines('train', 'missing_column', 0, 5, b'{"line": 3}\n'),
    RejectedLines('train', 'invalid_utf8', 0, 90, b'{"line": 4}\n'),
)


KEYS = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 40), st.integers(2**63, 2**63 + 40))
ROWS = st.lists(st.tuples(KEYS, st.binary(max_size=40)), unique_by=lambda row: row[0], max_size=60)


def sorted_rows(rows: list[tuple[int, bytes]]) -> SortedRows:
    lengths = np.array([len(record) for _, record in rows], np.uint32)
    source = np.frombuffer(b''.join(record for _, record in rows), np.uint8)
    keys = np.array([key for key, _ in rows], np.uint64)
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    return SortedRows.of(keys, source, starts, lengths, np.stack([lengths, ~lengths], axis=1))


def head(buckets: int, **changes) -> RunHead:
    return dataclasses.replace(RunHead(FINGERPRINT, 3, 0, True, buckets), **changes)


def written(rows: list[tuple[int, bytes]], buckets: int, rejected=(), **changes) -> bytes:
    stream = io.BytesIO()
    size, _ = write_run(stream, head(buckets, **changes), sorted_rows(rows), STATS, rejected)
    data = stream.getvalue()
    assert len(data) == size
    return data


def merged(files: dict[str, bytes], buckets: int, first: int, end: int, group_bytes: int) -> bytes:
    def open_binary(path):
        return io.BytesIO(files[path])

    runs = [RunFile(path, len(data)) for path, data in files.items()]
    slices = read_slices(runs, FINGERPRINT, buckets, first, end, open_binary)
    records = b''
    for group in bucket_groups(slices, first, end, group_bytes):
        merged = merge_buckets([each.part(*group) for each in slices], open_binary)
        records += b''.join(map(bytes, record_pieces(merged, 0, len(merged))))
        assert merged.sizes.tolist() == np.stack([merged.lengths, ~merged.lengths], 1).tolist()
    return records


class TestSorting:
    @given(st.lists(KEYS, unique=True, max_size=300))
    def test_keys_are_sorted_with_their_places(self, keys):
        ordered, order = sort_keys(np.array(keys, np.uint64))
        assert ordered.tolist() == sorted(keys)
        assert [keys[place] for place in order.tolist()] == sorted(keys)

    def test_uneven_keys_are_sorted_too(self):
        keys = [*range(5000), 2**64 - 1]
        ordered, order = sort_keys(np.array(keys[::-1], np.uint64))
        assert ordered.tolist() == keys
        assert order.tolist() == list(range(5000, -1, -1))

    @pytest.mark.parametrize('others', [[], range(2, 5000)])
    def test_equal_keys_are_an_error(self, others):
        with pytest.raises(ValueError, match='an input row came twice'):
            sort_keys(np.array([1, *others, 1], np.uint64))

    @given(ROWS, st.integers(1, 5000))
    def test_bounds_are_those_of_the_buckets(self, rows, buckets):
        keys = sorted(key for key, _ in rows)
        bounds = bucket_bounds(np.array(keys, np.uint64), buckets).tolist()
        for row, key in enumerate(keys):
            bucket = (key * buckets) >> 64
            assert bounds[bucket] <= row < bounds[bucket + 1]


class TestFormat:
    def test_the_layout_is_the_one_drawn(self):
        rows = [(2**63 + 1, b'third'), (5, b'second'), (1, b'first')]
        data = written(rows, 2)
        assert data[:16] == (1).to_bytes(8, 'little') + (5).to_bytes(8, 'little')
        assert data[16:24] == (5).to_bytes(4, 'little') + (6).to_bytes(4, 'little')
        assert data[24:40] == np.array([[5, ~5], [6, ~6]]).astype('<u4').tobytes()
        assert data[40:51] == b'firstsecond'
        sizes = b'\5\0\0\0\xfa\xff\xff\xff'
        assert data[51:76] == (2**63 + 1).to_bytes(8, 'little') + b'\5\0\0\0' + sizes + b'third'
        index = np.frombuffer(data[-FOOTER_BYTES - 64 : -FOOTER_BYTES], ENTRY)
        assert index['offset'].tolist() == [0, 51]
        assert index['rows'].tolist() == [2, 1]
        assert index['bytes'].tolist() == [51, 25]
        assert data[-FOOTER_BYTES:][8:24] == FINGERPRINT

    def test_stats_and_rejected_lines_are_read_back(self):
        data = written([(1, b'x')], 4, REJECTED)
        stats, last = read_run_stats(io.BytesIO(data), len(data), head(4))
        assert last
        assert dataclasses.replace(stats, rejected=()) == STATS
        sections = {
            each.reason: (data[each.offset : each.offset + each.bytes], each.lines)
            for each in stats.rejected
        }
        assert sections == {
            'invalid_utf8': (b'{"line": 1}\n{"line": 2}\n{"line": 4}\n', 3),
            'missing_column': (b'{"line": 3}\n', 1),
        }

    def test_a_part_that_is_not_the_last_says_so(self):
        data = written([], 1, last=False)
        assert read_run_stats(io.BytesIO(data), len(data), head(1))[1] is False


class TestDamage:
    ROWS = [(key << 58, b'record %d' % key) for key in range(40)]

    def test_a_file_cut_off_anywhere_is_not_whole(self):
        data = written(self.ROWS, 8, REJECTED)
        for size in range(len(data)):
            assert read_run_stats(io.BytesIO(data[:size]), size, head(8)) is None

    def test_a_changed_byte_after_the_records_makes_it_not_whole(self):
        data = written(self.ROWS, 8)
        stats = len(data) - FOOTER_BYTES - 8 * ENTRY.itemsize - len(STATS.to_json())
        for place in range(stats, len(data)):
            bad = bytearray(data)
            bad[place] ^= 1
            assert read_run_stats(io.BytesIO(bad), len(bad), head(8)) is None

    @pytest.mark.parametrize(
        'other', [{'fingerprint': bytes(16)}, {'run': 4}, {'part': 1}, {'buckets': 7}]
    )
    def test_a_run_of_another_plan_or_place_is_not_whole(self, other):
        data = written(self.ROWS, 8)
        assert read_run_stats(io.BytesIO(data), len(data), head(**{'buckets': 8, **other})) is None

    def test_a_changed_byte_of_records_or_index_is_found_when_merged(self):
        data = written(self.ROWS, 8)
        records = data.index(b'{"blocks"')
        index = len(data) - FOOTER_BYTES - 8 * ENTRY.itemsize
        assert merged({'run': data}, 8, 0, 8, 100)
        for place in [*range(0, records, 7), *range(index, len(data) - FOOTER_BYTES)]:
            bad = bytearray(data)
            bad[place] ^= 0x40
            with pytest.raises(InputError, match='run is damaged'):
                merged({'run': bytes(bad)}, 8, 0, 8, 100)

    def test_a_file_that_became_shorter_is_found_when_merged(self):
        data = written(self.ROWS, 8)
        for size in (10, len(data) // 2, len(data) - FOOTER_BYTES - 1):

            def open_binary(path, size=size):
                return io.BytesIO(data[:size])

            with pytest.raises(InputError, match='damaged'):
                run = RunFile('run', len(data))
                merge_buckets(read_slices([run], FINGERPRINT, 8, 0, 8, open_binary), open_binary)


class TestMerging:
    @given(ROWS, st.data(), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3000))
    def test_any_rows_in_any_runs_merge_to_the_sorted_rows(
        self, rows, data, shards, buckets_per_shard, group_bytes
    ):
        buckets = shards * buckets_per_shard
        runs = data.draw(st.integers(1, 5))
        run_of = data.draw(st.lists(st.integers(0, runs - 1), min_size=len(rows), max_size=60))
        files = {
            f'run-{run}': written(
                [row for row, its in zip(rows, run_of, strict=False) if its == run], buckets
            )
            for run in range(runs)
        }
        for shard in range(shards):
            first = shard * buckets_per_shard
            of_shard = [row for row in rows if row[0] * shards >> 64 == shard]
            expected = b''.join(record for _, record in sorted(of_shard))
            assert expected == sort_rows([framed(of_shard)]).records.tobytes()
            end = first + buckets_per_shard
            assert merged(files, buckets, first, end, group_bytes) == expected

    def test_a_row_in_two_runs_is_an_error(self):
        files = {name: written([(9, b'x')], 1) for name in 'ab'}
        with pytest.raises(ValueError, match='an input row came twice'):
            merged(files, 1, 0, 1, 100)

    def test_groups_are_full_and_contiguous(self):
        rows = [(bucket << 60, b'x' * 80) for bucket in range(16) if bucket not in (0, 5, 15)]
        files = {'run': written(rows, 16)}
        run = RunFile('run', len(files['run']))
        slices = read_slices([run], FINGERPRINT, 16, 0, 16, lambda path: io.BytesIO(files[path]))
        assert bucket_groups(slices, 0, 16, 300) == [(1, 4), (4, 8), (8, 11), (11, 14), (14, 15)]
        assert bucket_groups(slices, 0, 16, 1) == [(b, b + 1) for b in range(1, 15) if b != 5]


def block(rows: list[tuple[int, bytes]], offset: int, data: bytes, rejected=()) -> EncodedBlock:
    lines = sum(each.json_lines.count(b'\n') for each in rejected)
    tally = LineTally('train', len(rows) + lines, len(rows), 0, {'invalid_utf8': lines})
    checksum = RangeChecksum('train', 0, 0, offset, len(data), zlib.crc32(data))
    return EncodedBlock(framed(rows), BlockStats(tally, (checksum,), tuple(rejected)))


class TestBuffer:
    def test_what_fits_counts_records_rows_and_rejected_lines(self):
        buffer = RunBuffer(300)
        large = block([(1, b'x' * 1000)], 0, b'one')
        assert buffer.fits(large), 'the first block always fits'
        buffer.add(large)
        assert not buffer.fits(block([], 3, b'', REJECTED))
        buffer.clear()
        buffer.add(block([(1, b'x' * 100)], 0, b'one'))
        left = 300 - 100 - 2 * (BUFFERED_ROW_BYTES + 2 * SIZE_BYTES)
        assert buffer.fits(block([(2, b'y' * left)], 3, b'two'))
        assert not buffer.fits(block([(2, b'y' * (left + 1))], 3, b'two'))

    @given(st.lists(ROWS, max_size=6))
    def test_its_rows_are_the_blocks_rows_sorted(self, blocks):
        used = set()
        buffer = RunBuffer(100)
        buffer.add(block([(2**64 - 1, b'last')], 0, b'ab'))
        buffer.clear()
        kept = []
        for number, rows in enumerate(blocks):
            rows = [row for row in rows if row[0] not in used]
            used |= {key for key, _ in rows}
            kept += rows
            buffer.add(block(rows, 2 * number, b'ab'))
        assert buffer.sorted_rows().records().tobytes() == b''.join(r for _, r in sorted(kept))
        if blocks:
            stats = buffer.stats('train', 0, len(blocks))
            assert stats.tally.examples == len(kept)
            [checksum] = stats.checksums
            assert (checksum.offset, checksum.length) == (0, 2 * len(blocks))

    @given(ROWS, st.lists(st.integers(1, 9), max_size=6), st.integers(1, 8))
    def test_its_shares_have_its_batches_in_order(self, rows, blocks, count):
        buffer = RunBuffer(100)
        batches = [rows[number :: len(blocks)] for number in range(len(blocks))]
        for number, batch in enumerate(batches):
            buffer.add(
                block(batch, 2 * number, b'ab', REJECTED[number : number + 1]), blocks[number]
            )
        rejected, whole = buffer.rejected, buffer.stats('train', 0, buffer.blocks)
        sizes = [sum(len(record) for _, record in batch) for batch in batches]
        shares = buffer.split(count)
        assert len(shares) == 1 or len(shares) <= min(count, len(blocks))
        assert [lines for share in shares for lines in share.rejected] == rejected
        assert sum(share.blocks for share in shares) == sum(blocks)
        tallies = [share.stats('train', 0, 1) for share in shares]
        assert sum(each.tally.examples for each in tallies) == whole.tally.examples
        assert join_adjacent([each for part in tallies for each in part.checksums]) == [
            *whole.checksums
        ]
        written = [share.sorted_rows() for share in shares]
        assert [each.records().tobytes() for each in written] == [
            b''.join(record for _, record in sorted(some)) for some in shared(batches, tallies)
        ]
        largest = max(len(each.records()) for each in written)
        assert largest <= sum(sizes) / count + max(sizes, default=0)


def shared(batches: list[list], tallies: list[RunStats]) -> list[list]:
    """Returns the rows of consecutive batches, which hold two bytes of text each, by these statistics."""
    left = iter(batches)
    return [
        [
            row
            for _ in range(sum(each.length for each in stats.checksums) // 2)
            for row in next(left)
        ]
        for stats in tallies
    ]


@given(st.lists(st.binary(min_size=1, max_size=9), min_size=1), st.randoms())
def test_adjacent_checksums_joined_in_any_batches_say_the_same(pieces, dice):
    checksums, offset = [], 0
    for piece in pieces:
        for side in (0, 1):
            checksums.append(RangeChecksum('train', 0, side, offset, len(piece), zlib.crc32(piece)))
        offset += len(piece)
    in_order = join_adjacent(checksums)
    assert [(each.side, each.offset, each.length) for each in in_order] == [
        (0, 0, offset), (1, 0, offset),
    ]  # fmt: skip
    dice.shuffle(checksums)
    for side in (0, 1):
        of_side = [each for each in checksums if each.side == side]
        assert join_checksums(join_adjacent(of_side)) == join_checksums(of_side)
