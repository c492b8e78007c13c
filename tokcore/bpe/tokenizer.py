"""Byte pair encoding's tokenizer: text to ids or pieces, and back."""

from __future__ import annotations

import functools
import os
import pathlib
import secrets
import unicodedata
from collections.abc import Iterable, Iterator

from tokcore.bpe.added_tokens import finder, matched_tokens, row_encoder
from tokcore.bpe.bpe_scheme import SCHEME
from tokcore.bpe.piece_lines import PieceLines
from tokcore.bpe.vocabulary.bpe_vocabulary import BpeVocabulary
from tokcore.bpe.vocabulary.vocabulary_files import AnyVocabulary, parse_bpe_file
from tokcore.encoding.row_encoder import DEFAULT_CACHE_BYTES, RowEncoder, SharedEncoder
from tokcore.encoding.special_ids import read_vocabulary_file


class BpeTokenizer:
    """Gives the ids that `tokenizers` gives with the same file; threads can share it.

    Example: with a file whose merges are `t h` and `th e`, `tokenize('the')` gives `['the']`.
    """

    def __init__(self, vocabulary: AnyVocabulary, *, allow_special_tokens: bool = False):
        """Takes a vocabulary.

        Args:
            vocabulary: of any kind; codes have ids if a list of their pieces is there.
            allow_special_tokens: `<|endoftext|>` in text is that token, as in `tokenizers`, and not
                text.

        Raises InputError for an added token that is to be found in a way that is not supported.
        """
        self.vocabulary = vocabulary
        self._allow = allow_special_tokens
        self._scheme = SCHEME.configured_for(vocabulary)
        self._template = self._scheme.template(vocabulary)
        self._find = self._form = None
        if isinstance(vocabulary, BpeVocabulary):
            self._form = vocabulary.parts.form
            before, _ = matched_tokens(vocabulary, allow_special_tokens)
            self._find = finder(before) if self._form else None
        self._encoder = SharedEncoder(functools.partial(self.row_encoder, cache_bytes=0))

    @classmethod
    def load(cls, path: str | os.PathLike, allow_special_tokens: bool = False) -> BpeTokenizer:
        """Reads a tokenizer.json, a vocab.json or merges.txt with the other beside it, or codes.

        Raises InputError if the file cannot be read, is none of these, or asks for what would not
        be encoded exactly.
        """
        vocabulary = parse_bpe_file(read_vocabulary_file(path), os.fspath(path))
        return cls(vocabulary, allow_special_tokens=allow_special_tokens)

    def save(self, path: str | os.PathLike) -> None:
        """Writes tokenizer.json, or codes, all of it or nothing."""
        data = self.vocabulary.dump()
        path = pathlib.Path(path)
        temporary = path.with_name(f'.{path.name}.{secrets.token_hex(8)}')
        try:
            temporary.write_bytes(data)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return self.vocabulary.vocab_size

    def row_encoder(self, cache_bytes: int = DEFAULT_CACHE_BYTES) -> RowEncoder:
        """Returns an encoder of blocks of normalized rows, for one thread; see `RowEncoder`."""
        if isinstance(self.vocabulary, BpeVocabulary):
            return row_encoder(
                self._scheme.pre_tokenizer, self.vocabulary, self._allow, cache_bytes,
                in_raw_text=self._form is None,
            )  # fmt: skip
        return RowEncoder(self._scheme.pre_tokenizer, self.vocabulary.model, cache_bytes)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Returns the ids of a text, with what the file's template puts around it if wanted.

        Raises InputError for codes without ids, ValueError for a piece that has none.
        """
        before, after = self._template if add_special_tokens else ((), ())
        if self._form is None:
            return self._encoder.encode(text, before, after)
        return [*before, *self._encode_normalized(text), *after]

    def _encode_normalized(self, text: str) -> Iterator[int]:
        data = text.encode('utf-8', 'surrogatepass')
        end = 0
        for start, stop, id_ in self._find(data) if self._find else ():
            yield from self._encode_part(data[end:start])
            yield id_
            end = stop
        yield from self._encode_part(data[end:])

    def _encode_part(self, data: bytes) -> list[int]:
        text = unicodedata.normalize(self._form, data.decode('utf-8', 'surrogatepass'))
        return self._encoder.encode(text) if text else []

    def tokenize(self, text: str) -> list[str]:
        """Returns the pieces of a text: as a tokenizer.json has them, or as subword-nmt does."""
        if isinstance(self.vocabulary, BpeVocabulary):
            pieces = self.vocabulary.pieces
            return [pieces[id_] for id_ in self.encode(text, add_special_tokens=False)]
        return PieceLines(self.vocabulary).pieces(text)

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids; bytes that are not UTF-8 become U+FFFD."""
        return self.vocabulary.decode(ids)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns the bytes of ids, exactly."""
        if isinstance(self.vocabulary, BpeVocabulary):
            return self.vocabulary.decode_bytes(ids)
        return self.vocabulary.decode(ids).encode()
