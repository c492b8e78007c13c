"""The ids of bytes, as Tensor2Tensor's `ByteTextEncoder` gives them."""

import functools
from collections.abc import Iterable

from tokcore.encoding.special_ids import SpecialIds

RESERVED_TOKENS = ('<pad>', '<EOS>')


class ByteVocabulary:
    """A `Vocabulary`: `<pad>` and `<EOS>`, and then a byte and 2."""

    @property
    def vocab_size(self) -> int:
        return len(RESERVED_TOKENS) + 256

    @property
    def special_ids(self) -> SpecialIds:
        return SpecialIds(pad=0, end=1)

    @property
    def pieces(self) -> tuple[str, ...]:
        """The special tokens and the bytes by id: ASCII as it is, others as `<0xE9>`."""
        shown = (chr(byte) if byte < 0x80 else f'<0x{byte:02X}>' for byte in range(256))
        return (*RESERVED_TOKENS, *shown)

    def id_of(self, token: str) -> int | None:
        return RESERVED_TOKENS.index(token) if token in RESERVED_TOKENS else None

    @functools.cached_property
    def model(self):
        from tokcore.byte.byte_model import ByteModel

        return ByteModel(len(RESERVED_TOKENS))

    def dump(self) -> bytes:
        raise ValueError('bytes have no vocabulary file')

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of bytes, U+FFFD where they are no UTF-8; special ids are shown."""
        return self.decode_bytes(ids).decode('utf-8', 'replace')

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns the bytes; special ids are shown."""
        first = len(RESERVED_TOKENS)
        return b''.join(
            RESERVED_TOKENS[id_].encode() if id_ < first else bytes([id_ - first])
            for id_ in ids
            if 0 <= id_ < self.vocab_size
        )
