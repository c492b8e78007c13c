"""Bytes: text to ids and back, without a vocabulary file."""

import functools
from collections.abc import Iterable

from tokcore.byte.byte_scheme import SCHEME
from tokcore.encoding.row_encoder import SharedEncoder


class ByteTokenizer:
    """Gives each byte of a text's UTF-8 an id, as Tensor2Tensor does; threads can share it.

    >>> ByteTokenizer().encode('a€')
    [99, 228, 132, 174]
    """

    def __init__(self):
        self.vocabulary = SCHEME.fixed
        self._encoder = SharedEncoder(functools.partial(SCHEME.encoder, self.vocabulary))

    @classmethod
    def load(cls) -> 'ByteTokenizer':
        """Returns the only one there is: no file is needed."""
        return cls()

    @property
    def vocab_size(self) -> int:
        """The number of ids: `<pad>`, `<EOS>`, and one for each byte."""
        return self.vocabulary.vocab_size

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without `<EOS>`."""
        return self._encoder.encode(text)

    def tokenize(self, text: str) -> list[bytes]:
        """Returns the bytes of a text, each by itself."""
        return [bytes([byte]) for byte in text.encode('utf-8', 'surrogatepass')]

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids, U+FFFD where their bytes are no UTF-8."""
        return self.vocabulary.decode(ids)
