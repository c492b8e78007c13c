"""Whole words by id, and the files of them: a word on each line."""

import functools
from collections.abc import Iterable, Sequence

from tokcore.encoding.vocabulary import SpecialIds, special_ids_by_name
from tokcore.errors import InputError

NMT_SPECIAL_TOKENS = ('<unk>', '<s>', '</s>')
"""What TensorFlow NMT wants first."""


class WordVocabulary:
    """A `Vocabulary` of whole words; all are different, and none is empty."""

    def __init__(self, words: Sequence[str]):
        """Takes the words by id, special tokens among them."""
        self.words = tuple(words)

    @property
    def vocab_size(self) -> int:
        return len(self.words)

    @functools.cached_property
    def special_ids(self) -> SpecialIds:
        return special_ids_by_name(self.id_of)

    @functools.cached_property
    def _ids(self) -> dict[str, int]:
        return {word: id_ for id_, word in enumerate(self.words)}

    def id_of(self, token: str) -> int | None:
        return self._ids.get(token)

    @functools.cached_property
    def model(self):
        """Unknown words have the id of the unknown one, if there is one."""
        return self._model(self.special_ids.unknown)

    @functools.cached_property
    def strict_model(self):
        """Unknown words are refused."""
        return self._model(None)

    def _model(self, unknown: int | None):
        from tokcore.word.model import WordModel

        return WordModel(self.words, unknown)

    def dump(self) -> bytes:
        """Returns the file. Raises ValueError for words that it cannot hold."""
        if len(self._ids) != len(self.words):
            raise ValueError(
                'a word stands twice in the vocabulary; a file has an id for each line'
            )
        for word in self.words:
            if not word or '\n' in word:
                raise ValueError(f'{word!r} cannot be a line of a vocabulary file')
        return ''.join(f'{word}\n' for word in self.words).encode()

    @property
    def pieces(self) -> tuple[str, ...]:
        """The words by id."""
        return self.words

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns what `decode` gives, in UTF-8."""
        return self.decode(ids).encode()

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the words with spaces between them; an id out of range stands for nothing."""
        size = len(self.words)
        return ' '.join(self.words[id_] for id_ in ids if 0 <= id_ < size)


def parse_words(data: bytes, path: str) -> WordVocabulary:
    r"""Reads a file of words, a line each; lines end at '\n' alone.

    Raises:
        InputError: it is empty or not UTF-8, or a line is blank or there twice: TensorFlow NMT's
            table refuses such files too.
    """
    try:
        lines = data.decode().split('\n')
    except UnicodeDecodeError as error:
        raise InputError(
            f'{path}: invalid UTF-8 at byte {error.start}; give a vocabulary file in UTF-8'
        ) from error
    if lines[-1] == '':
        lines.pop()
    seen: dict[str, int] = {}
    for number, word in enumerate(lines, 1):
        if not word:
            raise InputError(f'{path}, line {number} is blank; take it out, or give another file')
        if word in seen:
            raise InputError(
                f'{path}, line {number}: {word[:60]!r} is on line {seen[word]} too; take one of '
                'them out, or give another file'
            )
        seen[word] = number
    if not lines:
        raise InputError(f'{path} is empty; give a vocabulary file with a word on each line')
    return WordVocabulary(lines)
