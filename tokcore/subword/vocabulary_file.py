r"""The file of a subword vocabulary: one subtoken a line in single quotes, its line number the id.

Tensor2Tensor's format, both ways. Nothing is escaped inside the quotes, so a subtoken with a line
end cannot be written. A line feed by itself is a subtoken of every vocabulary whose text has any,
as all its characters are; but tokens are spelled with `\10;` in its place, so no text is ever cut
into it. It stands in the file as `''`, which takes its id. (Tensor2Tensor breaks the line there: it
then reads two subtokens, and the ids behind them are one too high.)
"""

from collections.abc import Iterable

from tokcore.errors import InputError

UNSTORABLE = '\r'
"""What no subtoken of a file can have: whoever reads it drops this, as Tensor2Tensor does."""

_REMEDY = 'give a subword vocabulary as written by tokbeam or Tensor2Tensor'


def dump_vocabulary(subtokens: Iterable[str]) -> bytes:
    r"""Returns the file's bytes: `['<pad>_', 'a']` gives `b"'<pad>_'\n'a'\n"`.

    `'\n'` gives `b"''\n"`. Raises ValueError for another subtoken that would not come back: one with
    `\n`, `\r` or a surrogate.
    """
    lines = []
    for id_, subtoken in enumerate(subtokens):
        if subtoken == '\n':
            subtoken = ''
        if '\n' in subtoken or '\r' in subtoken:
            raise ValueError(
                f'subtoken {id_}, {subtoken!r}, has a line end, which a vocabulary file cannot hold'
            )
        try:
            lines.append(b"'%b'\n" % subtoken.encode())
        except UnicodeEncodeError as error:
            raise ValueError(
                f'subtoken {id_}, {subtoken!r}, has a lone surrogate, which UTF-8 cannot hold'
            ) from error
    return b''.join(lines)


def parse_vocabulary(data: bytes, name: str) -> list[str]:
    r"""Returns the subtokens of a vocabulary file, by id; `name` stands for it in errors.

    As Tensor2Tensor reads it: lines end at `\n`, every `\r` is dropped, whitespace at the end too,
    and then one pair of single or double quotes. Every line has an id, also a blank one.

    Raises InputError if this is no vocabulary: empty, not UTF-8, or not beginning with `<pad>` and
    `<EOS>` (or `<pad>_` and `<EOS>_`, as Tensor2Tensor writes them since July 2018).
    """
    if not data:
        raise InputError(f'{name}: the vocabulary file is empty; {_REMEDY}')
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b'\n', 0, error.start) + 1
        raise InputError(
            f'{name}: line {line} is not UTF-8 at byte offset {error.start}; {_REMEDY}'
        ) from None
    lines = text.replace('\r', '').removesuffix('\n').split('\n')
    subtokens = [_unquoted(line.rstrip()) for line in lines]
    _check_reserved(subtokens, name)
    return subtokens


def _unquoted(line: str) -> str:
    # A line of a single quote is its own pair, so it gives '' as in Tensor2Tensor.
    return line[1:-1] if line[:1] in ("'", '"') and line[0] == line[-1] else line


def _check_reserved(subtokens: list[str], name: str) -> None:
    for place, reserved in enumerate(('<pad>', '<EOS>')):
        if place == len(subtokens):
            raise InputError(
                f'{name}: the file ends before line {place + 1}, which must be {reserved!r}; '
                f'{_REMEDY}'
            )
        found = subtokens[place].removesuffix('_')
        if found.lower() != reserved.lower():
            # A file that is something else may have very long lines.
            shown = subtokens[place] if len(subtokens[place]) <= 40 else subtokens[place][:40] + '…'
            raise InputError(
                f'{name}: line {place + 1} is {shown!r} where a vocabulary has {reserved!r}; '
                f'{_REMEDY}'
            )
