"""A vocabulary of whole words as a model: a word's id by a hash table over its bytes."""

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tokcore.encoding.kernels import NO_ROOM, larger_workspace, segment_tokens
from tokcore.kernels.bytes import grown, hash_bytes, row_offsets, same_bytes, with_margin
from tokcore.kernels.jit import kernel, kernel_without_allocation, read_only
from tokcore.text.pre_tokenizer import RowPart

_SHOWN = 60

NOT_KNOWN = -1
_0, _1 = np.uint64(0), np.uint64(1)


class WordTable(NamedTuple):
    """The state: word i is data[offsets[i]:offsets[i + 1]], and its id is i."""

    data: np.ndarray  # uint8, with 32 bytes behind the last word
    offsets: np.ndarray  # int64[words + 1]
    slots: np.ndarray  # int32[a power of two]: the number of a word and 1, or 0
    shift: np.uint64  # 64 - log2 of the slots
    unknown: int  # the id of words that are not there, or `NOT_KNOWN` to refuse them


class WordIds(NamedTuple):
    """The workspace."""

    ids: np.ndarray  # int32
    id_bounds: np.ndarray  # uint64


class WordModel:
    """A `Model`: a token is a word, and has one id."""

    def __init__(self, words: Sequence[str], unknown: int | None):
        """Takes the words by id, and the id of all others; None refuses them."""
        self._words = words
        self._unknown = NOT_KNOWN if unknown is None else unknown

    @property
    def size(self) -> int:
        return len(self._words)

    @functools.cached_property
    def state(self) -> WordTable:
        """The words as kernels read them, built at first use."""
        encoded = [word.encode('utf-8', 'surrogatepass') for word in self._words]
        data = with_margin(np.frombuffer(b''.join(encoded), np.uint8))
        offsets = read_only(row_offsets([len(each) for each in encoded]))
        bits = max(4, (2 * len(encoded)).bit_length())
        slots = np.zeros(1 << bits, np.int32)
        fill_slots(WordTable(data, offsets, slots, np.uint64(64 - bits), self._unknown))
        return WordTable(data, offsets, read_only(slots), np.uint64(64 - bits), self._unknown)

    def workspace(self, tokens: int) -> WordIds:
        return WordIds(np.empty(tokens, np.int32), np.empty(tokens + 1, np.uint64))

    def segment_long_token(self, part: RowPart) -> Iterator[np.ndarray]:
        found = find_word(part.text, np.uint64(part.start), np.uint64(part.end), self.state)
        if found == NOT_KNOWN:
            word = part.text[part.start : part.end].tobytes().decode('utf-8', 'replace')
            raise ValueError(self.unspelled(word, len(word)))
        yield np.array([found], np.int32)

    def unspelled(self, token: str, left: int) -> str:
        shown = repr(token) if len(token) <= _SHOWN else f'{token[:_SHOWN]!r}…'
        return (
            f'the word {shown} is not in the vocabulary; give --unknown token and a vocabulary '
            'with an entry for unknown words, or learn a larger one'
        )


@kernel_without_allocation
def fill_slots(table):
    """Enters all words that are not empty. Of equal ones the last is found."""
    mask = np.uint64(len(table.slots) - 1)
    for word in range(len(table.offsets) - 1):
        start, end = np.uint64(table.offsets[word]), np.uint64(table.offsets[word + 1])
        if start == end:
            continue
        slot = hash_bytes(table.data, start, end) >> table.shift
        while table.slots[slot] != 0:
            other = table.slots[slot] - 1
            begin = np.uint64(table.offsets[other])
            if np.uint64(table.offsets[other + 1]) - begin == end - start and same_bytes(
                table.data, start, table.data, begin, end - start
            ):
                break
            slot = (slot + _1) & mask
        table.slots[slot] = word + 1


@kernel_without_allocation
def find_word(text, start, end, table):
    """Returns the id of text[start:end], with 32 bytes behind it, or table.unknown."""
    mask = np.uint64(len(table.slots) - 1)
    slot = hash_bytes(text, start, end) >> table.shift
    while table.slots[slot] != 0:
        word = table.slots[slot] - 1
        begin = np.uint64(table.offsets[word])
        if np.uint64(table.offsets[word + 1]) - begin == end - start and same_bytes(
            text, start, table.data, begin, end - start
        ):
            return np.int64(word)
        slot = (slot + _1) & mask
    return np.int64(table.unknown)


@segment_tokens.register(WordTable)
@kernel_without_allocation
def segment_words(tokens, missed, model, work):
    """As `segment_tokens` says; what cannot be spelt is a word that is not known, all of it."""
    if len(work.ids) < missed.count:
        return 0, NO_ROOM
    work.id_bounds[0] = _0
    for number in range(missed.count):
        token = missed.numbers[number]
        start, end = tokens.starts[token], tokens.ends[token]
        id_ = find_word(tokens.text, start, end, model)
        if id_ < 0:
            return number, np.int64(end - start)
        work.ids[number] = id_
        work.id_bounds[number + 1] = np.uint64(number + 1)
    return 0, 0


@larger_workspace.register(WordTable)
@kernel
def larger_ids(missed, model, work):
    """As `larger_workspace` says."""
    return WordIds(grown(work.ids, 0, missed.count), work.id_bounds)
