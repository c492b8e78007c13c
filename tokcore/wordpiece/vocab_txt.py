r"""BERT's vocab.txt: one piece a line, its line number the id; read as transformers 4 does.

Foreign files may hold what no other reader takes alike: blank lines, pieces twice, white space at
the ends of a piece. They are read so that ids are the same as there; none of it is written.
"""

import re
from collections.abc import Sequence

from tokcore.errors import InputError

_REMEDY = 'give a vocab.txt of one piece a line, as BERT has it'
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
        InputError: the file is empty or not UTF-8.
    """
    if not data:
        raise InputError(f'{name}: the vocabulary file is empty; {_REMEDY}')
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = len(re.findall(rb'\r\n?|\n', data[: error.start])) + 1
        raise InputError(
            f'{name}: line {line} is not UTF-8 at byte offset {error.start}; {_REMEDY}'
        ) from None
    lines = text.replace('\r\n', '\n').replace('\r', '\n')
    return lines.removesuffix('\n').split('\n')


def is_vocab_txt(data: bytes) -> bool:
    """Whether a file is BERT's beyond any doubt: its special tokens, and a piece with `##`."""
    lines = set(data.splitlines())
    return lines.issuperset(_MARKS) and any(line.startswith(b'##') for line in lines)
