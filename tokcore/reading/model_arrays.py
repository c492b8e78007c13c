"""What a model learns from a batch: the ids that it reads, and for each of them the label.

    for_model='seq2seq'   `a b <EOS>` is shifted right: decoder inputs `<pad> a b`, labels `a b <EOS>`
    for_model='lm'        each id has the next one as its label: of `a b c` inputs `a b`, labels `b c`

Labels are -100, which losses leave out, where nothing is to be learned: at padding, and where the next id
is of another document.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tokcore.reading.batching import Batch, Signature

ForModel = Literal['seq2seq', 'lm']

IGNORED = -100
"""The label that counts in no loss: the default of PyTorch's `cross_entropy` and of Hugging Face's models.
No id is below 0."""

LABELS = 'labels'

_OF_NMT = {
    'source': 'inputs',
    'source_sequence_length': 'inputs_length',
    'target_output': 'targets',
    'target_sequence_length': 'targets_length',
}
"""The arrays of NMT's rule, by the names that other rules have for such."""


@dataclass(frozen=True)
class ModelArrays:
    """Makes the arrays that a model takes of those that a rule makes.

    Attributes:
        for_model: the kind of model.
        feature: whose ids are learned.
        start: the id that each row is shifted right with; None: the first id of a row is no label.
        cross_documents: whether the first id of a document is the label of the id before it.
        positions: whether there are positions and segments of packed rows too.
    """

    for_model: ForModel
    feature: str
    start: int | None = None
    cross_documents: bool = False
    positions: bool = True

    def of(self, batch: Batch) -> Batch:
        """Returns the arrays of a batch, all int32."""
        batch = {_OF_NMT.get(name, name): array for name, array in batch.items()}
        ids, segments = batch[self.feature], batch.get(f'{self.feature}_segmentation')
        if segments is None:
            lengths = batch[f'{self.feature}_length']
            segments = np.where(np.arange(ids.shape[1]) < lengths[:, None], 1, 0)
        if self.start is None:
            batch[LABELS] = next_ids(ids, segments, self.cross_documents)
        else:
            batch[self.feature], batch[LABELS] = shifted_right(ids, segments, self.start)
        if self._has_no_last:
            most = max(ids.shape[1] - 1, 0)
            for name, array in batch.items():
                batch[name] = np.minimum(array, most) if array.ndim == 1 else array[:, :most]
        return {new: array for name, array in batch.items() if (new := self._name(name))}

    def signature(self, signature: Signature) -> Signature:
        """Returns the shape and dtype of each array, from those of a rule."""
        arrays: Signature = {}
        for name, (shape, dtype) in signature.items():
            if new := self._name(_OF_NMT.get(name, name)):
                width = shape[-1] if len(shape) == 2 else None
                if self._has_no_last and width is not None:
                    shape = (shape[0], width - 1)
                arrays[new] = shape, dtype
        return {**arrays, LABELS: arrays[self._inputs]}

    @property
    def _inputs(self) -> str:
        return 'decoder_inputs' if self.for_model == 'seq2seq' else 'inputs'

    @property
    def _has_no_last(self) -> bool:
        """Whether the last id of a row is a label alone."""
        return self.for_model == 'lm' and self.start is None

    def _name(self, name: str) -> str | None:
        """Returns what an array is called here; None if it is left out."""
        if name == LABELS:
            return name
        if name == 'target_input' or (
            not self.positions and name.endswith(('_segmentation', '_position'))
        ):
            return None
        if name.startswith(self.feature):
            return self._inputs + name.removeprefix(self.feature)
        return f'encoder_{name}'


def shifted_right(
    ids: np.ndarray, segments: np.ndarray, start: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ids that a decoder reads, and their labels: int32, both as large as `ids`.

    Args:
        ids: int32[rows, length].
        segments: int[rows, length], the number of the text that each id is of, and 0 at padding.
        start: the first id that is read of each text.

    >>> read, labels = shifted_right(np.array([[5, 6, 1, 7, 1, 0]]), np.array([[1, 1, 1, 2, 2, 0]]), 9)
    >>> read.tolist(), labels.tolist()
    ([[9, 5, 6, 9, 7, 0]], [[5, 6, 1, 7, 1, -100]])
    """
    goes_on = segments[:, 1:] == segments[:, :-1]
    read = np.full_like(ids, start)
    read[:, 1:][goes_on] = ids[:, :-1][goes_on]
    is_text = segments > 0
    return np.where(is_text, read, ids), np.where(is_text, ids, np.full_like(ids, IGNORED))


def next_ids(ids: np.ndarray, segments: np.ndarray, cross_documents: bool = False) -> np.ndarray:
    """Returns the label of each id, int32[rows, length]: the id after it.

    Args:
        ids, segments: as of `shifted_right`.
        cross_documents: whether the first id of a text is a label too.

    >>> next_ids(np.array([[5, 6, 1, 7, 1, 0]]), np.array([[1, 1, 1, 2, 2, 0]])).tolist()
    [[6, 1, -100, 1, -100, -100]]
    """
    is_learned = segments[:, 1:] > 0
    if not cross_documents:
        is_learned &= segments[:, 1:] == segments[:, :-1]
    labels = np.full_like(ids, IGNORED)
    labels[:, :-1][is_learned] = ids[:, 1:][is_learned]
    return labels
