"""Bytes as a scheme, with the ids of Tensor2Tensor's `ByteTextEncoder`.

Nothing is learned, and there is no vocabulary file.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tokcore.encoding.scheme import EncodingOptions, Learned, LearningOptions, Scheme
from tokcore.encoding.vocabulary import ReadBeside, SpecialIds, read_if_there
from tokcore.errors import InputError
from tokcore.learning.size_search import Progress

if typing.TYPE_CHECKING:
    from tokcore.byte.model import ByteModel, BytePreTokenizer
    from tokcore.counts.token_table import TokenTable
    from tokcore.text.rows import Normalizer

RESERVED_TOKENS = ('<pad>', '<EOS>')


class ByteVocabulary:
    """A `Vocabulary`: `<pad>`, `<EOS>`, and the bytes, whose ids are the byte + 2."""

    @property
    def vocab_size(self) -> int:
        return len(RESERVED_TOKENS) + 256

    @property
    def special_ids(self) -> SpecialIds:
        return SpecialIds(pad=0, end=1)

    @functools.cached_property
    def pieces(self) -> tuple[str, ...]:
        """The special tokens and the bytes by id: ASCII characters, or `<0xE9>`."""
        shown = (chr(byte) if byte < 0x80 else f'<0x{byte:02X}>' for byte in range(256))
        return (*RESERVED_TOKENS, *shown)

    def id_of(self, token: str) -> int | None:
        return RESERVED_TOKENS.index(token) if token in RESERVED_TOKENS else None

    @functools.cached_property
    def model(self) -> ByteModel:
        from tokcore.byte.model import ByteModel

        return ByteModel(len(RESERVED_TOKENS))

    def dump(self) -> bytes:
        raise ValueError('bytes have no vocabulary file')

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of bytes, with U+FFFD for invalid UTF-8, and the names of special ids."""
        return self.decode_bytes(ids).decode('utf-8', 'replace')

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns the bytes, and the names of special ids."""
        first = len(RESERVED_TOKENS)
        return b''.join(
            RESERVED_TOKENS[id_].encode() if id_ < first else bytes([id_ - first])
            for id_ in ids
            if 0 <= id_ < self.vocab_size
        )


_VOCABULARY = ByteVocabulary()


@dataclass(frozen=True)
class ByteScheme(Scheme[ByteVocabulary, LearningOptions, EncodingOptions]):
    """Tensor2Tensor's `ByteTextEncoder`: stripped lines, in which the id of a byte is the byte + 2."""

    name = 'byte'
    file_suffix = 'bytes'
    options = None
    default_template = '$A <EOS>'

    @property
    def normalizer(self) -> Normalizer:
        from tokcore.text.normalizers import T2T_LINES

        return T2T_LINES

    @property
    def pre_tokenizer(self) -> BytePreTokenizer:
        from tokcore.byte.model import BytePreTokenizer

        return BytePreTokenizer()

    @property
    def fixed(self) -> ByteVocabulary:
        return _VOCABULARY

    def special_tokens_in(self, vocabulary: ByteVocabulary, prefix: str) -> Mapping[str, int]:
        return {token: id_ for id_, token in enumerate(RESERVED_TOKENS) if token in prefix}

    def learn(
        self, table: TokenTable, options: LearningOptions, report: Progress
    ) -> Learned[ByteVocabulary]:
        return Learned(_VOCABULARY)

    def parse(self, data: bytes, path: str, read: ReadBeside = read_if_there) -> ByteVocabulary:
        raise InputError(
            f'{path} is not a vocabulary of --scheme byte, which has no files; leave --vocab out'
        )

    def tokens(self, text: str) -> Iterable[str]:
        from tokcore.byte.model import SLICE_BYTES

        data = text.encode('utf-8', 'surrogatepass')
        return [
            data[start : start + SLICE_BYTES].decode('latin-1')
            for start in range(0, len(data), SLICE_BYTES)
        ]

    def vocabulary_of(self, characters: Sequence[str]) -> ByteVocabulary:
        return _VOCABULARY


SCHEME = ByteScheme()
