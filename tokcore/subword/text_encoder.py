"""Tensor2Tensor's SubwordTextEncoder: text to ids of an invertible subword vocabulary, and back.

Text is cut into tokens, each token is escaped, and the escaped token is cut greedily from the left
into the longest subtokens. All of it is undone by joining.
"""

import functools
import os
import pathlib
import secrets
from collections.abc import Iterable, Sequence

from tokcore.encoding.row_encoder import DEFAULT_CACHE_BYTES, RowEncoder, SharedEncoder
from tokcore.encoding.special_ids import SpecialIds, read_vocabulary_file
from tokcore.subword.subword_model import SubwordModel
from tokcore.subword.vocabulary_file import dump_vocabulary, parse_vocabulary
from tokcore.text.escaping import alphabet_of, escape_token, unescape_token
from tokcore.text.t2t_pre_tokenizer import T2TPreTokenizer
from tokcore.text.t2t_tokens import detokenize

PAD_ID = 0
EOS_ID = 1
_ROLES = {'<pad>': PAD_ID, '<EOS>': EOS_ID}


class SubwordTextEncoder:
    """Encodes and decodes as Tensor2Tensor 1.15.7 does with the same vocabulary.

    Example: with the subtokens `<pad>_ <EOS>_ the_ c at_`, `encode('the cat')` gives `[2, 3, 4]`.
    """

    def __init__(self, subtokens: Sequence[str]):
        """Takes the subtokens by id, reserved ones (`<pad>_`, `<EOS>_`, ...) included.

        Of equal subtokens `encode` gives the last one's id; an empty one only takes an id.
        """
        self._subtokens = tuple(subtokens)
        self._encoder = SharedEncoder(functools.partial(self.row_encoder, cache_bytes=0))

    @property
    def special_ids(self) -> SpecialIds:
        """The ids that have a role: padding, and the end of a row."""
        return SpecialIds(pad=PAD_ID, end=EOS_ID)

    def id_of(self, token: str) -> int | None:
        """Returns the id of a reserved token by its name, `<EOS>`, or None if there is none."""
        if token in _ROLES:
            return _ROLES[token]
        escaped = escape_token(token, alphabet_of([token]))
        return self._subtokens.index(escaped) if escaped in self._subtokens else None

    def dump(self) -> bytes:
        """Returns the file that Tensor2Tensor's `store_to_file` writes.

        Raises ValueError for subtokens that the format cannot hold.
        """
        return dump_vocabulary(self._subtokens)

    @classmethod
    def load(cls, path: str | os.PathLike) -> 'SubwordTextEncoder':
        """Reads a vocabulary file; see `parse_vocabulary` for what is taken.

        Raises InputError if the file cannot be read or is no vocabulary.
        """
        return cls(parse_vocabulary(read_vocabulary_file(path), os.fspath(path)))

    def save(self, path: str | os.PathLike) -> None:
        """Writes the file that Tensor2Tensor's `store_to_file` writes, all of it or nothing.

        Raises ValueError, before writing, for subtokens that the format cannot hold.
        """
        data = self.dump()
        path = pathlib.Path(path)
        temporary = path.with_name(f'.{path.name}.{secrets.token_hex(8)}')
        try:
            with open(temporary, 'xb') as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    @property
    def subtokens(self) -> tuple[str, ...]:
        """The subtokens by id."""
        return self._subtokens

    @property
    def pieces(self) -> tuple[str, ...]:
        """The subtokens by id, as all vocabularies have them."""
        return self._subtokens

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns what `decode` gives, in UTF-8; half of a surrogate pair in three bytes."""
        return self.decode(ids).encode('utf-8', 'surrogatepass')

    @property
    def vocab_size(self) -> int:
        """The number of ids, those of duplicates and empty subtokens included."""
        return len(self._subtokens)

    @functools.cached_property
    def model(self) -> SubwordModel:
        """The vocabulary as the block engine takes it; threads can share it."""
        return SubwordModel(self._subtokens)

    def row_encoder(self, cache_bytes: int = DEFAULT_CACHE_BYTES) -> RowEncoder:
        """Returns an encoder of blocks for one thread; see `RowEncoder`."""
        return RowEncoder(T2TPreTokenizer(), self.model, cache_bytes)

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, as it stands and without EOS.

        Raises ValueError naming the rest of a token that no subtoken begins: the vocabulary then
        lacks a character of its own alphabet, such as those that escaping needs.
        """
        return self._encoder.encode(text)

    def decode(self, ids: Iterable[int], strip_extraneous: bool = False) -> str:
        """Returns the text of ids; `strip_extraneous` drops padding and EOS from the end first.

        An id out of range stands for nothing, elsewhere `<pad>` and `<EOS>` are shown as text.
        """
        ids = list(ids)
        while strip_extraneous and ids and ids[-1] in self.special_ids.at_end:
            ids.pop()
        escaped = ''.join(self.decode_list(ids)).split('_')
        return detokenize(filter(None, map(unescape_token, escaped)))

    def decode_list(self, ids: Iterable[int]) -> list[str]:
        """Returns each id's subtoken as it stands in the vocabulary, '' for an id out of range."""
        return [
            self._subtokens[id_] if 0 <= id_ < len(self._subtokens) else '' for id_ in ids
        ]
