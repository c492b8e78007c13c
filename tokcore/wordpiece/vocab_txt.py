r"""BERT's vocab.txt: one piece a line, its line number the id; read as transformers 4 does.

Foreign files may hold what no other reader takes alike: blank lines, pieces twice, white space at
the ends of a piece. They are read so that ids are the same as there; none of it is written.
"""

import re
from collections.abc import Sequence

from tokcore.errors import InputError

_REMEDY = 'give a vocab.txt of one piece a line, as BERT has it'

MOST_BYTES = 16 << 20
"""Sixteen times the largest of BERT's; the trie of its pieces takes some fifty times as much memory."""

MOST_PIECE_BYTES = 4096
"""Ten times the longest word that BERT looks up, of 100 characters; a longer line is no piece, and the
file another one."""

_LONG_LINE = re.compile(rb'(?<![^\r\n])[^\r\n]{%d}' % (MOST_PIECE_BYTES + 1))
_MARKS = (b'[UNK]', b'[CLS]', b'[SEP]')


def dump_pieces(pieces: Sequence[str]) -> bytes:
    r"""Returns the file's bytes: `['[UNK]', 'a', '##a']` gives `b'[UNK]\na\n##a\n'`.

    Raises:
        ValueError: for a piece that not every reader would give back, or not with its id: an empty
            one, one that stands twice, has white space at its ends, a line end or a lone surrogate.
    """
    ids: dict[str, int] = {}
    for id_, piece in enumerate(pieces):
        wrong = _fault(piece)
        if ids.setdefault(piece, id_) != id_:
            wrong = f'is piece {ids[piece]} too'
        if wrong:
            raise ValueError(
                f'piece {id_}, {piece!r}, {wrong}, which a vocab.txt cannot hold; leave it out'
            )
    return ''.join(f'{piece}\n' for piece in pieces).encode()


def _fault(piece: str) -> str | None:
    if not piece:
        return 'is empty'
    if piece != piece.strip():
        return 'has white space at its ends'
    if '\n' in piece or '\r' in piece:
        return 'has a line end'
    try:
        piece.encode()
    except UnicodeEncodeError:
        return 'has a lone surrogate'
    return None


def parse_pieces(data: bytes, name: str) -> list[str]:
    r"""Returns the pieces of a vocab.txt, by id; `name` stands for it in errors.

    Lines end at `\n`, `\r\n` or `\r`, and nothing else is taken off them. Every line has an id: a
    blank one is the piece ''.

    Raises:
        InputError: the file is empty, too large or not UTF-8, or a line is too long.
    """
    if not data:
        raise InputError(f'{name}: the vocabulary file is empty; {_REMEDY}')
    if len(data) > MOST_BYTES:
        raise InputError(
            f'{name}: the vocabulary file has {len(data):,} bytes, and at most {MOST_BYTES:,} are '
            f'read; {_REMEDY}'
        )
    if found := _LONG_LINE.search(data):
        line = _line_at(data, found.start())
        raise InputError(
            f'{name}: line {line} has more than {MOST_PIECE_BYTES:,} bytes; {_REMEDY}'
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = _line_at(data, error.start)
        raise InputError(
            f'{name}: line {line} is not UTF-8 at byte offset {error.start}; {_REMEDY}'
        ) from None
    lines = text.replace('\r\n', '\n').replace('\r', '\n')
    return lines.removesuffix('\n').split('\n')


def _line_at(data: bytes, place: int) -> int:
    return len(re.findall(rb'\r\n?|\n', data[:place])) + 1


def is_vocab_txt(data: bytes) -> bool:
    """Whether a file is BERT's beyond any doubt: its special tokens, and a piece with `##`."""
    lines = set(data.splitlines())
    return lines.issuperset(_MARKS) and any(line.startswith(b'##') for line in lines)
