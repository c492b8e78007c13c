"""Batches by the rule of TensorFlow NMT's `get_iterator`, of ids that are there.

A row's bucket is that of the longer side: `num_buckets + 1` of them, the last for all that is
longer; the target's length counts the start token (nmt/utils/iterator_utils.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokcore.encoding.templates import NO_TEMPLATE, Template
from tokcore.reading.batch_rules import LEFT_OUT, Batch, padded
from tokcore.reading.shards.rows import Rows

_WIDTH = 10
"""Of a bucket, where no greatest length of the source is given."""


@dataclass(frozen=True)
class NmtBatches:
    """The rule.

    Attributes:
        batch_size: rows of a batch.
        start, end, pad: ids.
        num_buckets: one less than there are; up to 1 makes none.
        source_max_length, target_max_length: rows are cut to so many ids; None: they are not.
        source: the feature that is the source; None: there are targets alone.
        target: the feature that is the target.
        source_template, target_template: what surrounds the rows, and is taken off.
    """

    batch_size: int
    start: int
    end: int
    pad: int
    num_buckets: int = 5
    source_max_length: int | None = None
    target_max_length: int | None = None
    source: str | None = 'inputs'
    target: str = 'targets'
    source_template: Template = NO_TEMPLATE
    target_template: Template = NO_TEMPLATE

    @property
    def features(self) -> tuple[str, ...]:
        return (self.target,) if self.source is None else (self.source, self.target)

    @property
    def sizes(self) -> np.ndarray:
        return np.full(self.num_buckets + 1 if self.num_buckets > 1 else 1, self.batch_size)

    def look_at(self, rows: Rows) -> NmtRows:
        target = self._side(rows, self.target, self.target_template, self.target_max_length)
        source = None
        if self.source is not None:
            source = self._side(rows, self.source, self.source_template, self.source_max_length)
        return NmtRows(self, source, target)

    @staticmethod
    def _side(rows: Rows, feature: str, template: Template, most: int | None) -> Side:
        offsets = rows.offsets[feature]
        whole = np.maximum(np.diff(offsets) - template.size, 0)
        lengths = np.minimum(whole, most) if most else whole
        return Side(rows.ids[feature], offsets[:-1] + len(template.before), lengths)

    @property
    def width(self) -> int:
        """The lengths in a bucket."""
        if self.source is None or not self.source_max_length or self.num_buckets <= 1:
            return _WIDTH
        return (self.source_max_length + self.num_buckets - 1) // self.num_buckets

    def signature(self) -> dict[str, tuple[tuple[int | None, ...], type]]:
        arrays = ['source'] * (self.source is not None) + ['target_input', 'target_output']
        lengths = ['target_sequence_length']
        lengths += ['source_sequence_length'] * (self.source is not None)
        return {
            **{name: ((None, None), np.int32) for name in arrays},
            **{name: ((None,), np.int32) for name in lengths},
        }


class Side(NamedTuple):
    """One side's rows as batches hold them: without their template, and cut."""

    ids: np.ndarray  # int32, of all rows
    starts: np.ndarray  # int64[rows]
    lengths: np.ndarray  # int64[rows]; a row of 0 is left out

    def padded(self, which: np.ndarray, pad: int, width: int | None = None, column: int = 0):
        """Returns rows as int32[len(which), width], as `batch_rules.padded`."""
        return padded(self.ids, self.starts, self.lengths, which, pad, width, column)


class NmtRows:
    """Rows and their buckets by the rule."""

    def __init__(self, rule: NmtBatches, source: Side | None, target: Side):
        self._rule, self._source, self._target = rule, source, target
        longest, kept = target.lengths + 1, target.lengths > 0
        found = longest // rule.width
        if source is not None:
            kept &= source.lengths > 0
            found = np.maximum(source.lengths // rule.width, found)
        buckets = np.minimum(found, rule.num_buckets) if rule.num_buckets > 1 else 0
        self.buckets = np.where(kept, buckets, LEFT_OUT)

    def batch(self, which: np.ndarray, bucket: int) -> Batch:
        rule, source, target = self._rule, self._source, self._target
        lengths = target.lengths[which]
        width = int(lengths.max()) + 1
        given = target.padded(which, rule.pad, width, 1)
        given[:, 0] = rule.start
        wanted = target.padded(which, rule.pad, width)
        wanted[np.arange(len(which)), lengths] = rule.end
        batch = {'target_input': given, 'target_output': wanted}
        batch['target_sequence_length'] = (lengths + 1).astype(np.int32)
        if source is not None:
            lengths = source.lengths[which].astype(np.int32)
            batch = {
                'source': source.padded(which, rule.pad), **batch, 'source_sequence_length': lengths
            }  # fmt: skip
        return batch
