"""Token tables on their way from those who count to those who merge: packed, or left in a file.

Tables are added up within a bundle, so what it puts out follows its distinct tokens. What a bound
leaves no room for goes to files; then only their paths cross the shuffle.
"""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.engines.bundle_bound import BundleOutput, OversizedBundleError
from pipelines.files import filesystem
from pipelines.transport.packed_coder import PackedCoder
from tokcore.counts.block_counting import TableMerger
from tokcore.counts.merging import TokenTable

_TABLE_SHARE = 0.75
"""Of what a bundle may put out. The rest is for paths, facts and rejected lines."""

_MARK = b'@'
"""Begins a path among packed tables, which begin with their own mark."""


@dataclass(frozen=True)
class TableMessage:
    """A packed table, or where it was left."""

    packed: bytes
    path: str = ''

    def to_bytes(self) -> bytes:
        """Returns the table's own bytes, or the path behind a mark."""
        return self.packed or _MARK + self.path.encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> 'TableMessage':
        """Returns what `to_bytes` gave."""
        if data.startswith(_MARK):
            return cls(b'', data[len(_MARK) :].decode())
        return cls(data)


beam.coders.registry.register_coder(TokenTable, PackedCoder)
beam.coders.registry.register_coder(TableMessage, PackedCoder)


def pack_or_spill(packed: bytes, output: BundleOutput, folder: str | None) -> TableMessage:
    """Returns a packed table as it may be put out, and counts it as put out.

    Args:
        packed: the table's bytes.
        output: what the bundle has put out.
        folder: gets a file where the table would be too much; None if there is no such folder.

    Raises:
        OversizedBundleError: it is too much, and there is no folder.
    """
    if output.fits(len(packed), _TABLE_SHARE):
        output.add(len(packed))
        return TableMessage(packed)
    if folder is None:
        raise OversizedBundleError(
            'a bundle has counted more distinct tokens than it may put out; give CountTokens a '
            'folder for its overflow'
        )
    path = filesystem.join(folder, f'table-{uuid.uuid4().hex}')
    filesystem.write_bytes(path, packed)
    output.add(len(path))
    return TableMessage(b'', path)


class _TableAccumulator:
    """The tables that came as such, added up, and the paths of the others.

    As long as there is one table only it stays packed: mostly no other comes, and Beam packs and
    unpacks a sum three times on its way.
    """

    def __init__(self, packed: bytes = b'', paths: Sequence[str] = ()):
        self._packed = packed
        self._merger: TableMerger | None = None
        self.paths = list(paths)

    def add(self, packed: bytes) -> None:
        """Adds a packed table, or nothing."""
        if not packed:
            return
        if self._merger is None and not self._packed:
            self._packed = packed
            return
        if self._merger is None:
            self._merger = TableMerger()
            self._merger.add(TokenTable.from_bytes(self._packed))
            self._packed = b''
        self._merger.add(TokenTable.from_bytes(packed))

    def packed(self) -> bytes:
        """Returns the sum, or nothing if there was none."""
        return self._packed if self._merger is None else self._merger.merged().to_bytes()

    def to_bytes(self) -> bytes:
        """Returns the length of the paths, the paths, and the sum."""
        paths = '\n'.join(self.paths).encode()
        return len(paths).to_bytes(8, 'little') + paths + self.packed()

    @classmethod
    def from_bytes(cls, data: bytes) -> '_TableAccumulator':
        """Returns what `to_bytes` gave."""
        end = 8 + int.from_bytes(data[:8], 'little')
        return cls(data[end:], data[8:end].decode().split('\n') if end > 8 else [])

    def table(self) -> TokenTable:
        if self._merger is not None:
            return self._merger.merged()
        return TokenTable.from_bytes(self._packed) if self._packed else TokenTable.from_items(())


class MergeTablesFn(beam.CombineFn):
    """Adds up packed tables as they come: memory follows the distinct tokens alone.

    Files are read at the end, where the sum stays: combiners in front of a shuffle must not.
    """

    def create_accumulator(self) -> _TableAccumulator:
        return _TableAccumulator()

    def add_input(
        self, mutable_accumulator: _TableAccumulator, element: TableMessage
    ) -> _TableAccumulator:
        if element.path:
            mutable_accumulator.paths.append(element.path)
        mutable_accumulator.add(element.packed)
        return mutable_accumulator

    def merge_accumulators(self, accumulators: Iterable[_TableAccumulator]) -> _TableAccumulator:
        merged = self.create_accumulator()
        for accumulator in accumulators:
            merged.add(accumulator.packed())
            merged.paths += accumulator.paths
        return merged

    def extract_output(self, accumulator: _TableAccumulator) -> TokenTable:
        for path in accumulator.paths:
            accumulator.add(filesystem.read_bytes(path))
        accumulator.paths = []
        return accumulator.table()

    def get_accumulator_coder(self) -> beam.coders.Coder:
        return PackedCoder(_TableAccumulator)
