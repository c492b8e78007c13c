"""Values of options as they are typed: each means something, within stated bounds, or is refused.

Bounds keep numbers out of numpy, Beam and the filesystem that these could only fail at, mostly
after hours. Nothing here imports what takes long, since help and a wrong option wait for it.
"""

import argparse
import re

MOST_SHARDS = 100_000
"""Each is a file, and its number has five digits in the names as Tensor2Tensor forms them."""

MOST_WORKERS = 1_024
MOST_COLUMN = 65_535
LARGEST_INT32 = (1 << 31) - 1
LARGEST_INT64 = (1 << 63) - 1
LARGEST_UINT64 = (1 << 64) - 1
LARGEST_BLOCK = 1 << 30  # bytes; what is made of a block is several times as large
LARGEST_BUFFER = 1 << 40
LARGEST_MEMORY = 1 << 50
_MOST_HOURS = 10_000

_SIZE = re.compile(r'([0-9]+)\s*(|[KMGT]i?B?|B)', re.IGNORECASE)
_TIME = re.compile(r'([0-9]+)\s*(s|min|h)')
_SECONDS = {'s': 1, 'min': 60, 'h': 3600}
_UNITS = {'': 1, 'b': 1, 'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30, 't': 1 << 40}

_MOST_DIGITS = 25
"""More than any bound has; of some thousand digits Python makes no number."""

_SHOWN = 60
"""Characters of a value that an error shows."""

_OWN_NAMES = ('.tokbeam', 'tokbeam.')
"""What names of this program's own files begin with."""

LANGUAGE = r'[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*'
"""A language's code (RFC 5646), as a regular expression."""


class WholeNumber:
    """A whole number within bounds."""

    __name__ = 'whole_number'

    def __init__(self, low: int, high: int):
        self.low = low
        self.high = high

    def __call__(self, text: str) -> int:
        number = _number(text)
        if number is None or not self.low <= number <= self.high:
            raise argparse.ArgumentTypeError(f'{shown(text)} is not a whole number {self}')
        return number

    def __str__(self) -> str:
        return f'from {said(self.low)} to {said(self.high)}'


positive = WholeNumber(1, LARGEST_INT32)


class ByteSize:
    """A number of bytes, as `64`, `512KiB` or `12MiB`; units are powers of 1,024."""

    __name__ = 'byte_size'

    def __init__(self, high: int):
        self.high = high

    def __call__(self, text: str) -> int:
        match = _SIZE.fullmatch(text.strip())
        number = _number(match[1]) if match else None
        size = 0 if number is None else number * _UNITS[match[2][:1].lower()]
        if not 1 <= size <= self.high:
            raise argparse.ArgumentTypeError(
                f'{shown(text)} is not a size, as 12MiB, {self}'
            )
        return size

    def __str__(self) -> str:
        return f'up to {said_size(self.high)}'


def columns(text: str) -> tuple[int | str, ...]:
    """One column, or two different ones: by number, as `0,1`, or by name, as `en,zh`."""
    parts = [_number(part) if part.isascii() and part.isdigit() else part for part in text.split(',')]
    wrong = [
        part for part in parts if part in ('', None) or (isinstance(part, int) and part > MOST_COLUMN)
    ]
    if not 1 <= len(parts) <= 2 or wrong or text.startswith('-'):
        raise argparse.ArgumentTypeError(
            f'{shown(text)} is not one column or two from 0 to {MOST_COLUMN:,}, as 0,1, nor their '
            'names in a header'
        )
    if len(set(parts)) < len(parts):
        raise argparse.ArgumentTypeError(f'{shown(text)} names one column twice')
    return tuple(parts)


def min_count_range(text: str) -> tuple[int, int]:
    """Two min-counts, as `1:1000`."""
    parts = [_number(part) for part in text.split(':')]
    if len(parts) != 2 or None in parts:
        raise argparse.ArgumentTypeError(f'{shown(text)} is not two min-counts, as 1:1000')
    low, high = parts
    if not 1 <= low <= high <= LARGEST_INT64:
        raise argparse.ArgumentTypeError(
            f'{shown(text)} is not a range from 1 up, to {said(LARGEST_INT64)} at most'
        )
    return low, high


def subtoken_length(text: str) -> int | None:
    """A whole number above 0, or `none`."""
    return None if text == 'none' else positive(text)


def duration(text: str) -> float:
    """A time in seconds, as `90s`, `30min` or `12h`."""
    match = _TIME.fullmatch(text.strip())
    number = _number(match[1]) if match else None
    seconds = 0 if number is None else number * _SECONDS[match[2]]
    if not 1 <= seconds <= _MOST_HOURS * 3600:
        raise argparse.ArgumentTypeError(
            f'{shown(text)} is not a time, as 90s, 30min or 12h, up to {_MOST_HOURS:,}h'
        )
    return float(seconds)


def path(text: str) -> str:
    """A path or a pattern; it need not be UTF-8, as names of files need not."""
    if not text:
        raise argparse.ArgumentTypeError("'' is no path; is a shell variable not set?")
    if '\0' in text:
        raise argparse.ArgumentTypeError(f'{shown(text)} is no path: it holds a NUL')
    return text


def output_path(text: str) -> str:
    """A path to write to, which must not be taken for one of this program's own files."""
    return _without_names(text, '.tokbeam')


def work_path(text: str) -> str:
    """A folder to work in, which may be `.tokbeam` as this program makes it."""
    return _without_names(text, '.tokbeam-')


def _without_names(text: str, prefix: str) -> str:
    for name in path(text).split('/'):
        if name.startswith(prefix):
            raise argparse.ArgumentTypeError(
                f'{shown(text)} holds the name {shown(name)}, and names that begin with {prefix} '
                "are of this program's own files; give another"
            )
    return text


def vocabulary_path(text: str) -> str:
    """A path to write a vocabulary to; names beside it are its manifest's."""
    name = output_path(text).rstrip('/').rpartition('/')[2]
    if name in ('tokbeam.json', 'tokbeam.run.json') or name.endswith(
        ('.tokbeam.json', '.tokbeam.run.json')
    ):
        raise argparse.ArgumentTypeError(
            f'{shown(text)} is the name of a manifest; give another'
        )
    return text


def text(value: str) -> str:
    """Text that goes into files, which are UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f'{shown(value)} is not UTF-8') from None
    return value


def line_of_text(value: str) -> str:
    """Text that stays within a line."""
    if '\n' in text(value) or '\r' in value:
        raise argparse.ArgumentTypeError(f'{shown(value)} must be a single line')
    return value


def reserved_token(value: str) -> str:
    """A token of a vocabulary file, a line of which holds it."""
    if not text(value) or value != value.strip() or '\n' in value or '\r' in value:
        raise argparse.ArgumentTypeError(f'{shown(value)} is empty or has white space at its ends')
    return value


def dataset_name(value: str) -> str:
    """A part of names of files, and none of this program's own."""
    text(value)
    if not value or '/' in value or any(ord(each) < 32 or ord(each) == 127 for each in value):
        raise argparse.ArgumentTypeError(
            f'{shown(value)} cannot be part of a file name here: it must not be empty, nor hold '
            'a slash or a control character'
        )
    if value.startswith(_OWN_NAMES):
        raise argparse.ArgumentTypeError(
            f"{shown(value)} begins as this program's own files do; give another"
        )
    return value


def shown(value: str) -> str:
    """Returns a value in quotes, not all of it if it is long."""
    return repr(value) if len(value) <= _SHOWN else f'{value[:_SHOWN]!r}…'


def said(number: int) -> str:
    """Returns a number as people write it: `2^31 - 1` for the bounds of machine words."""
    for bits in (31, 63, 64):
        if number == (1 << bits) - 1:
            return f'2^{bits} - 1'
    return f'{number:,}'


def said_size(size: int) -> str:
    """Returns a number of bytes, as `1GiB`, in the largest unit of which it is a multiple."""
    for unit, bits in (('PiB', 50), ('TiB', 40), ('GiB', 30), ('MiB', 20), ('KiB', 10)):
        if size % (1 << bits) == 0:
            return f'{size >> bits}{unit}'
    return f'{size}'


def _number(digits: str) -> int | None:
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip('0') or '0'
    return int(digits) if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS
