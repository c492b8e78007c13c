"""Batches by the rule of TensorFlow NMT's `get_iterator`, of ids that are there.

A row's bucket is that of the longer side: `num_buckets + 1` of them, the last for all that is
longer; the target's length counts the start token (nmt/utils/iterator_utils.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokcore.encoding.templates import NO_TEMPLATE, Template
from tokcore.reading.batch_rules import LEFT_OUT, Batch, padded
from tokcore.reading.shard_rows import Rows

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

    def buckets(self, rows: Rows) -> np.ndarray:
        _, target, kept = self._side(rows, self.target)
        longer = target + 1
        width = _WIDTH
        if self.source is not None:
            _, source, has_source = self._side(rows, self.source)
            kept &= has_source
            if self.num_buckets > 1:
                width = self._width
                return np.where(
                    kept,
                    np.minimum(np.maximum(source // width, longer // width), self.num_buckets),
                    LEFT_OUT,
                )
        if self.num_buckets <= 1:
            return np.where(kept, 0, LEFT_OUT)
        return np.where(kept, np.minimum(longer // width, self.num_buckets), LEFT_OUT)

    @property
    def _width(self) -> int:
        if not self.source_max_length:
            return _WIDTH
        return (self.source_max_length + self.num_buckets - 1) // self.num_buckets

    def _side(self, rows: Rows, feature: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns where rows begin, their lengths after cutting, and whether they hold anything."""
        is_source = feature == self.source
        template = self.source_template if is_source else self.target_template
        most = self.source_max_length if is_source else self.target_max_length
        offsets = rows.offsets[feature]
        lengths = np.maximum(np.diff(offsets) - template.size, 0)
        kept = lengths > 0
        if most:
            lengths = np.minimum(lengths, most)
        return offsets[:-1] + len(template.before), lengths, kept

    def batch(self, rows: Rows, which: np.ndarray, bucket: int) -> Batch:
        starts, lengths, _ = self._side(rows, self.target)
        ids = rows.ids[self.target]
        own = lengths[which]
        width = int(own.max(initial=0)) + 1
        given = padded(ids, starts, lengths, which, self.pad, width, 1)
        given[:, 0] = self.start
        wanted = padded(ids, starts, lengths, which, self.pad, width)
        wanted[np.arange(len(which)), own] = self.end
        batch = {'target_input': given, 'target_output': wanted}
        batch['target_sequence_length'] = (own + 1).astype(np.int32)
        if self.source is not None:
            starts, lengths, _ = self._side(rows, self.source)
            source = padded(rows.ids[self.source], starts, lengths, which, self.pad)
            lengths = lengths[which].astype(np.int32)
            batch = {'source': source, **batch, 'source_sequence_length': lengths}
        return batch

    def signature(self) -> dict[str, tuple[tuple[int | None, ...], type]]:
        arrays = ['source'] * (self.source is not None) + ['target_input', 'target_output']
        lengths = ['target_sequence_length']
        lengths += ['source_sequence_length'] * (self.source is not None)
        return {
            **{name: ((None, None), np.int32) for name in arrays},
            **{name: ((None,), np.int32) for name in lengths},
        }
