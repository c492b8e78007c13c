"""A WordPiece vocabulary, and BERT's vocab.txt: a piece on each line, by id.

Files are read as transformers 4 reads them, with equal ids. Readers differ about blank lines,
duplicate pieces and white space at the ends of a piece; so none of these is written.
"""

from __future__ import annotations

import functools
import re
import typing
from collections.abc import Iterable, Sequence

from tokcore.encoding.vocabulary import SpecialIds, special_ids_by_name, without_mark
from tokcore.errors import InputError
from tokcore.wordpiece.options import SPECIAL_TOKENS

if typing.TYPE_CHECKING:
    from tokcore.wordpiece.model import DoubleArrayTrie, WordPieceModel

JOINER = '##'

MAX_WORD_LENGTH = 100
"""Code points; transformers' `BertTokenizer` has the limit too."""

_SHOWN_UNKNOWN = '[UNK]'

WITHOUT_SPACE = (
    (' .', '.'), (' ?', '?'), (' !', '!'), (' ,', ','), (" ' ", "'"),
    (" n't", "n't"), (" 'm", "'m"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip
"""The replacements of transformers' decoder, in its order."""

_REMEDY = 'give a vocab.txt of one piece a line, as BERT has it'

MOST_BYTES = 16 << 20
"""Sixteen times the largest of BERT's files. The trie takes some fifty times as much memory."""

MOST_PIECE_BYTES = 4096
"""Ten times the longest word of BERT, of 100 characters. A file with a longer line is not a
vocabulary."""

_LONG_LINE = re.compile(rb'(?<![^\r\n])[^\r\n]{%d}' % (MOST_PIECE_BYTES + 1))
_SURROGATE = re.compile('[\ud800-\udfff]')
_MARKS = (b'[UNK]', b'[CLS]', b'[SEP]')


class WordPieceVocabulary:
    """Pieces by id; threads can share it."""

    def __init__(self, pieces: Sequence[str], joiner: str = JOINER):
        """Takes the pieces by id, and the prefix of pieces that do not start a word.

        Of equal pieces the last one's id is used; an empty one only takes an id.
        """
        self.pieces, self.joiner = tuple(pieces), joiner

    @property
    def vocab_size(self) -> int:
        """The number of ids, including those of duplicates and empty pieces."""
        return len(self.pieces)

    @functools.cached_property
    def ids(self) -> dict[str, int]:
        """The id of each piece that is used."""
        return {piece: id_ for id_, piece in enumerate(self.pieces)}

    @functools.cached_property
    def special_ids(self) -> SpecialIds:
        """The ids of `[PAD]`, `[CLS]`, `[SEP]` and `[UNK]`, if they are pieces."""
        return special_ids_by_name(self.id_of)

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """BERT's special tokens that are pieces."""
        return tuple(token for token in SPECIAL_TOKENS if token in self.ids)

    def id_of(self, token: str) -> int | None:
        """Returns the id of a piece, or None if there is none."""
        return self.ids.get(token)

    @property
    def model(self) -> WordPieceModel:
        """The model with BERT's longest word."""
        return self.model_for(MAX_WORD_LENGTH)

    def model_for(self, max_word_length: int) -> WordPieceModel:
        """Returns the model to which words of more code points are unknown."""
        from tokcore.wordpiece.model import WordPieceModel

        unknown = self.special_ids.unknown
        return WordPieceModel(self._trie, self.vocab_size, unknown, max_word_length)

    @functools.cached_property
    def _trie(self) -> DoubleArrayTrie:
        from tokcore.wordpiece.model import double_array_trie

        return double_array_trie(self.ids.items(), self.joiner)

    def dump(self) -> bytes:
        r"""Returns the bytes of the vocab.txt: `['[UNK]', 'a', '##a']` gives `b'[UNK]\na\n##a\n'`.

        Raises:
            ValueError: readers would differ about a piece: it is empty or a duplicate, has white space
                at its ends, has a line end or a lone surrogate, or is the first and begins with a byte
                order mark.
        """
        ids: dict[str, int] = {}
        for id_, piece in enumerate(self.pieces):
            faults = {
                f'is piece {ids.setdefault(piece, id_)} too': ids.setdefault(piece, id_) != id_,
                'begins with a byte order mark': not id_ and piece.startswith('\ufeff'),
                'is empty': not piece,
                'has white space at its ends': piece != piece.strip(),
                'has a line end': '\n' in piece or '\r' in piece,
                'has a lone surrogate': _SURROGATE.search(piece),
            }
            if fault := next((fault for fault, is_there in faults.items() if is_there), None):
                raise ValueError(
                    f'piece {id_}, {piece!r}, {fault}, which a vocab.txt cannot hold; leave it out'
                )
        return ''.join(f'{piece}\n' for piece in self.pieces).encode()

    def pieces_of(self, ids: Iterable[int]) -> list[str]:
        """Returns the piece of each id; `[UNK]` for ids out of range and those of earlier duplicates."""
        return [
            self.pieces[id_]
            if 0 <= id_ < len(self.pieces) and self.ids[self.pieces[id_]] == id_
            else _SHOWN_UNKNOWN
            for id_ in ids
        ]

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Returns `decode` in UTF-8."""
        return self.decode(ids).encode()

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the text of ids as `BertTokenizer.decode` of transformers 4 does.

        Pieces are joined, and spaces before English punctuation are removed. It is not the inverse
        of encoding: ids do not record spaces, accents and capital letters.
        """
        text = ' '.join(self.pieces_of(ids)).replace(f' {self.joiner}', '').strip()
        for spaced, joined in WITHOUT_SPACE:
            text = text.replace(spaced, joined)
        return text


def parse_pieces(data: bytes, name: str) -> list[str]:
    r"""Returns the pieces of a vocab.txt by id; errors name it `name`.

    Lines end with `\n`, `\r\n` or `\r`, and are not stripped. A blank line is the piece ''. A byte
    order mark at the start is part of no piece; transformers 4 has it in the first one, which no text
    becomes then.

    Raises:
        InputError: the file is empty, too large or not UTF-8, or a line is too long.
    """
    data = without_mark(data)
    if not data:
        raise InputError(f'{name}: the vocabulary file is empty; {_REMEDY}')
    if len(data) > MOST_BYTES:
        raise InputError(
            f'{name}: the vocabulary file has {len(data):,} bytes, and at most {MOST_BYTES:,} are '
            f'read; {_REMEDY}'
        )
    if long_line := _LONG_LINE.search(data):
        line = _line_at(data, long_line.start())
        raise InputError(f'{name}: line {line} has more than {MOST_PIECE_BYTES:,} bytes; {_REMEDY}')
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = _line_at(data, error.start)
        raise InputError(
            f'{name}: line {line} is not UTF-8 at byte offset {error.start}; {_REMEDY}'
        ) from None
    lines = text.replace('\r\n', '\n').replace('\r', '\n')
    return lines.removesuffix('\n').split('\n')


def is_vocab_txt(data: bytes) -> bool:
    """Whether a file is certainly BERT's: it has the special tokens, and a piece with `##`."""
    if not all(mark in data for mark in _MARKS):  # so files of megabytes are not cut into lines
        return False
    lines = set(without_mark(data).splitlines())
    return lines.issuperset(_MARKS) and any(line.startswith(b'##') for line in lines)


def _line_at(data: bytes, offset: int) -> int:
    return len(re.findall(rb'\r\n?|\n', data[:offset])) + 1
