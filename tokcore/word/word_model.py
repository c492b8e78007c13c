"""A vocabulary of whole words as a model of the block engine."""

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from tokcore.compiled.compilation import read_only
from tokcore.compiled.ragged_bytes import row_offsets
from tokcore.text.padded_text import with_margin
from tokcore.text.pre_tokenizer import RowPart
from tokcore.word.word_look_up import NOT_KNOWN, WordIds, WordTable, fill_slots, find_word

_SHOWN = 60


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
