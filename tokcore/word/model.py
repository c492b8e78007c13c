"""Whole words: which words of a token table have ids, and the model that looks them up."""

import functools
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tokcore.counts.token_table import TokenTable
from tokcore.encoding.kernels import NO_ROOM, PieceIds, larger_workspace, segment_tokens
from tokcore.kernels.bytes import grown
from tokcore.kernels.hash_tables import TokenLookup, find_token, token_lookup
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only_state
from tokcore.options import shown
from tokcore.text.pre_tokenizer import RowPart

_NO_ID = -1


def most_frequent_words(
    table: TokenTable, min_count: int, most: int | None, excluded: Collection[str]
) -> tuple[list[str], int | None]:
    """Returns words by count, then by code points, and the smallest of their counts.

    Words that occur less often than `min_count`, and excluded ones, are left out; None: any number.
    """
    most = len(table) if most is None else max(0, most)
    indices = np.flatnonzero(table.counts >= min_count)
    # Only words that can be among the most frequent ones are sorted.
    candidates = most + len(excluded)
    if 0 < candidates < len(indices):
        counts = table.counts[indices]
        cut = len(indices) - candidates
        indices = indices[counts >= np.partition(counts, cut)[cut]]
    frequent = table.pick(indices).sorted()
    by_count = frequent.pick(np.argsort(-frequent.counts, kind='stable'))
    words: list[str] = []
    smallest = None
    for word, count in by_count.items():
        if len(words) == most:
            break
        if word not in excluded:
            words.append(word)
            smallest = count
    return words, smallest


class WordModel:
    """A `Model`: each token is a word and has one id."""

    def __init__(self, words: Sequence[str], unknown: int | None):
        """Takes the words by id, and the id of unknown words; None: they are errors.

        Of equal words the last one's id is used; an empty one only takes an id.
        """
        self._words = words
        self._unknown = _NO_ID if unknown is None else unknown

    @property
    def size(self) -> int:
        return len(self._words)

    @functools.cached_property
    def state(self) -> 'WordIds':
        """The words as kernels read them, built at first use."""
        ids = {word.encode('utf-8', 'surrogatepass'): id_ for id_, word in enumerate(self._words)}
        ids.pop(b'', None)
        return WordIds(token_lookup(ids), self._unknown)

    def workspace(self, tokens: int) -> PieceIds:
        return PieceIds.of(tokens, room=tokens)

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        start, end = np.uint64(part.start), np.uint64(part.end)
        id_ = _find_id(part.text, start, end, read_only_state(self.state))
        if id_ == _NO_ID:
            word = part.text[part.start : part.end].tobytes().decode('utf-8', 'replace')
            raise ValueError(self.describe_failure(word, len(word)))
        yield np.array([id_], np.int32)

    def describe_failure(self, token: str, failure: int) -> str:
        return (
            f'the word {shown(token)} is not in the vocabulary; give --unknown token and a vocabulary '
            'with an entry for unknown words, or learn a larger one'
        )


class WordIds(NamedTuple):
    """The state."""

    ids: TokenLookup
    unknown: int  # the id of other words, or `_NO_ID`


@kernel_without_allocation
def _find_id(text, start, end, model):
    """Returns the id of the word text[start:end], or that of unknown words."""
    id_ = find_token(text, start, end, model.ids)
    return id_ if id_ >= 0 else np.int64(model.unknown)


@segment_tokens.register(WordIds)
@kernel_without_allocation
def segment_words(tokens, missed, model, work):
    """As `segment_tokens` says; `failure` is the length of the unknown word."""
    if len(work.ids) < missed.count:
        return 0, NO_ROOM
    work.id_bounds[0] = np.uint64(0)
    for miss in range(missed.count):
        token = missed.numbers[miss]
        start, end = tokens.starts[token], tokens.ends[token]
        id_ = _find_id(tokens.text, start, end, model)
        if id_ < 0:
            return miss, np.int64(end - start)
        work.ids[miss] = id_
        work.id_bounds[miss + 1] = np.uint64(miss + 1)
    return 0, 0


@larger_workspace.register(WordIds)
@kernel
def _larger_word_work(missed, model, work):
    """As `larger_workspace` says."""
    return PieceIds(grown(work.ids, 0, missed.count), work.id_bounds)
