"""The model: a word has one id, the unknown one's if it is not among the entries."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tokcore.encoding.kernels import NO_ROOM, larger_workspace, segment_tokens
from tokcore.kernels.bytes import grown, row_offsets
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.text.pre_tokenizer import RowPart


class Words(NamedTuple):
    """The state: words sorted by their bytes, as they stand in text, and the id of each."""

    data: np.ndarray  # uint8
    offsets: np.ndarray  # int64[words + 1]
    ids: np.ndarray  # int32[words]
    unknown: int


class WordIds(NamedTuple):
    """The workspace."""

    ids: np.ndarray  # int32
    id_bounds: np.ndarray  # uint64


@kernel_without_allocation
def _compare(text, start, end, words, word):
    """Below, at or above 0 as text[start:end] sorts before, at or after a word."""
    place, stop = words.offsets[word], words.offsets[word + 1]
    while start < end and place < stop:
        if text[start] != words.data[place]:
            return np.int64(text[start]) - np.int64(words.data[place])
        start += 1
        place += 1
    return (end - start) - (stop - place)


@kernel_without_allocation
def find_word(text, start, end, words):
    """Returns the id of text[start:end]."""
    low, high = 0, len(words.ids)
    while low < high:
        middle = (low + high) // 2
        order = _compare(text, start, end, words, middle)
        if order == 0:
            return np.int64(words.ids[middle])
        if order < 0:
            high = middle
        else:
            low = middle + 1
    return np.int64(words.unknown)


@segment_tokens.register(Words)
@kernel_without_allocation
def segment_words(tokens, missed, model, work):
    """As `segment_tokens` says; there is no word that cannot be spelt."""
    if len(work.ids) < missed.count:
        return 0, NO_ROOM
    work.id_bounds[0] = 0
    for number in range(missed.count):
        token = missed.numbers[number]
        start, end = np.int64(tokens.starts[token]), np.int64(tokens.ends[token])
        work.ids[number] = find_word(tokens.text, start, end, model)
        work.id_bounds[number + 1] = number + 1
    return 0, 0


@larger_workspace.register(Words)
@kernel
def larger_ids(missed, model, work):
    """As `larger_workspace` says."""
    return WordIds(grown(work.ids, 0, missed.count), work.id_bounds)


class ReverseModel:
    """A `Model` of whole words."""

    def __init__(self, entries: Sequence[str], unknown: int):
        self.size = len(entries)
        words = sorted((entry[::-1].encode(), id_) for id_, entry in enumerate(entries) if id_ > 3)
        data = np.frombuffer(b''.join(word for word, _ in words), np.uint8)
        offsets = row_offsets([len(word) for word, _ in words])
        ids = np.array([id_ for _, id_ in words], np.int32)
        self.state = Words(*map(read_only, (data, offsets, ids)), unknown)

    def workspace(self, tokens: int) -> WordIds:
        return WordIds(np.empty(1, np.int32), np.empty(tokens + 1, np.uint64))

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        yield np.array([find_word(part.text, part.start, part.end, self.state)], np.int32)

    def describe_failure(self, token: str, failure: int) -> str:
        raise AssertionError(f'{token!r} is a word like others')
