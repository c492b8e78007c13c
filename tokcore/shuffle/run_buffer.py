"""Encoded blocks collected, in input order, until there are enough of them for a sorted run."""

from __future__ import annotations

import numpy as np

from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.corpus.block_stats import LineTally, RejectedLines, add_tallies
from tokcore.corpus.range_checksums import RangeChecksum, join_adjacent
from tokcore.records.example_encoding import EncodedBlock
from tokcore.records.framing import FramedRows
from tokcore.records.key_sorting import SortedRows
from tokcore.shuffle.run_file import RunStats

ROW_BYTES = 48
"""What a row takes beside its record, at most: key, length, start, place in the order, and of three
of these a copy while they are sorted."""


class RunBuffer:
    """Rows of one split in one array of a given size, and what was read for them.

    What fits depends on the rows alone, so a run is cut into the same parts wherever it is made.
    """

    def __init__(self, byte_limit: int):
        self._byte_limit = byte_limit
        # Memory that is not written to is not taken.
        self._records = np.empty(byte_limit, np.uint8)
        self.clear()

    def clear(self) -> None:
        """Forgets everything, and keeps the memory."""
        self._used = 0
        self._rows = 0
        self._rejected_bytes = 0
        self._keys: list[np.ndarray] = []
        self._lengths: list[np.ndarray] = []
        self._tallies: list[LineTally] = []
        self._receipts: list[RangeChecksum] = []
        self.rejected: list[RejectedLines] = []

    def fits(self, encoded: EncodedBlock) -> bool:
        """Tells whether a block may be added; the first one always may."""
        if not self._tallies:
            return True
        size = self._used + self._rejected_bytes + ROW_BYTES * self._rows
        return size + _size(encoded) <= self._byte_limit

    def add(self, encoded: EncodedBlock) -> None:
        rows: FramedRows = encoded.rows
        end = self._used + len(rows.records)
        if end > len(self._records):
            # Only a first block larger than the limit comes here, and then nothing is copied.
            self._records = np.concatenate([self._records[: self._used], rows.records])
        self._records[self._used : end] = rows.records
        self._used = end
        self._rows += len(rows)
        self._rejected_bytes += sum(len(each.json_lines) for each in encoded.facts.rejected)
        self._keys.append(rows.keys)
        self._lengths.append(rows.lengths.astype(np.uint32))
        self._tallies.append(encoded.facts.tally)
        self._receipts = join_adjacent([*self._receipts, *encoded.facts.receipts])
        self.rejected += encoded.facts.rejected

    def sorted_rows(self) -> SortedRows:
        """Returns the rows by their keys; they are valid until the buffer is changed.

        Raises ValueError if two keys are equal.
        """
        keys = np.concatenate([np.empty(0, np.uint64), *self._keys])
        lengths = np.concatenate([np.empty(0, np.uint32), *self._lengths])
        self._keys, self._lengths = [], []
        starts = row_offsets(lengths)[:-1]
        return SortedRows.of(keys, self._records[: self._used], starts, lengths)

    def facts(self, split: str, blocks: int) -> RunStats:
        """Returns what was read for these rows; `blocks` is for `RunStats`."""
        return RunStats(blocks, add_tallies(split, self._tallies), tuple(self._receipts))


def _size(encoded: EncodedBlock) -> int:
    rejected = sum(len(each.json_lines) for each in encoded.facts.rejected)
    return len(encoded.rows.records) + ROW_BYTES * len(encoded.rows) + rejected
