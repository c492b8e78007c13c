"""Options are declared once, as fields of a dataclass; their values are checked within bounds.

    @dataclass(frozen=True, kw_only=True)
    class CountingOptions:
        threads: int = option('threads that count, {range}', WholeNumber(1, 64), 'N', default=4)

The parser makes `--threads N` of it, a job file `threads = 4`, and manifests record it if bytes
depend on it. A command takes its options from several such dataclasses, some of which the value of
another option chooses (`Choice`). Bounds keep out numbers that numpy, Beam and the filesystem could
only fail at, mostly after hours. Nothing here imports what takes long: help waits for it.
"""

import argparse
import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field

_KEY = 'option'

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


def option(
    help: str,
    kind: Callable[[str], object] | Sequence[str] | None,
    metavar: str | None = None,
    *,
    default: object = MISSING,
    **declared,
) -> dataclasses.Field:
    """Returns a field that is an option; without a default it must be given.

    Args:
        help: as `Option` has it, and the next two too.
        kind: how a word becomes a value.
        metavar: how the help shows a value.
        default: of the field.
        declared: other attributes of `Option`.
    """
    words = kind if kind is None or callable(kind) else tuple(kind)
    return field_of(Option(help, words, metavar, **declared), default)


@dataclass(frozen=True)
class Option:
    """What a field declares of an option, beside its name and its default.

    Attributes:
        help: for the user; `{range}` in it is what the kind says of itself.
        kind: makes the value of a word, raising `argparse.ArgumentTypeError`; or the words that may
            be given; or None for what is given without a value and then True.
        metavar: how the help shows a value; None for the option's name.
        name: as it is typed, without its dashes before it; of the field if None.
        many: 'words' takes several at once, and more if it is repeated; 'repeated' one each time.
            The field is a tuple.
        changes_bytes: whether results depend on it, so that manifests record it.
        unrecorded_default: a newer option: manifests say nothing of it while it has its default.
        goes_with: options of which one must be given too, else it is refused.
        reads: whether it names what is read.
        after: the option that the help tells before it, where that is another dataclass's.
        default_help: how the help of a format's option shows its default.
    """

    help: str
    kind: Callable[[str], object] | tuple[str, ...] | None
    metavar: str | None = None
    name: str | None = None
    many: str | None = None
    changes_bytes: bool = False
    unrecorded_default: bool = False
    goes_with: tuple[str, ...] = ()
    reads: bool = False
    after: str | None = None
    default_help: str = ''


def field_of(declared: Option, default: object) -> dataclasses.Field:
    """Returns a field that is the option declared."""
    return field(default=default, metadata={_KEY: declared})


@dataclass(frozen=True)
class Declared:
    """An option of a dataclass: its field, and the name under which it is typed and recorded."""

    field: str
    name: str  # with dashes, as it is typed: `max-line-size`
    default: object  # MISSING if it must be given
    option: Option

    @property
    def key(self) -> str:
        """Its name in manifests and in the parser's result: `max_line_size`."""
        return self.name.replace('-', '_')

    @property
    def help(self) -> str:
        return self.option.help.replace('{range}', str(self.option.kind))


@dataclass(frozen=True)
class Choice:
    """Dataclasses of options, one of which is chosen by the value of another option.

    Attributes:
        by: that option's name.
        kinds: by its values; the first is taken where no value is given.
    """

    by: str
    kinds: Mapping[str, type]

    def chosen(self, value: str | None) -> type:
        """Returns the dataclass of a value."""
        return self.kinds[next(iter(self.kinds)) if value is None else value]


def as_typed(word: str) -> str:
    """The kind of an option of which each chosen dataclass makes a value of its own."""
    return word


Kind = type | Choice


def declared(kind: Kind) -> list[Declared]:
    """Returns the options of a dataclass in the order of its fields, or of all that one may choose.

    Those that several of these declare differently are given once, with their values `as_typed`.

    Raises:
        ValueError: one is typed with a value here, and without or several times there.
    """
    if isinstance(kind, Choice):
        found: dict[str, dict[str, Declared]] = {}
        for value, each in kind.kinds.items():
            for one in declared(each):
                found.setdefault(one.name, {})[value] = one
        return [_merged(kind, variants) for variants in found.values()]
    return [
        Declared(
            each.name,
            each.metadata[_KEY].name or each.name.replace('_', '-'),
            each.default,
            each.metadata[_KEY],
        )
        for each in dataclasses.fields(kind)
        if _KEY in each.metadata
    ]


def in_order(kinds: Sequence[Kind]) -> list[Declared]:
    """Returns the options of several dataclasses as the help tells them."""
    ordered: list[Declared] = []
    for each in (each for kind in kinds for each in declared(kind)):
        names = [before.name for before in ordered]
        after = each.option.after
        ordered.insert(names.index(after) + 1 if after in names else len(ordered), each)
    return ordered


def flag(name: str, prefix: str = '') -> str:
    """Returns an option as it is typed, of its name with dashes or as manifests have it."""
    return f'--{prefix}{name}'.replace('_', '-')


def recorded(options: object) -> dict[str, object]:
    """Returns for a manifest the options of an instance that results depend on, by their names."""
    found = {}
    for each in declared(type(options)):
        value = getattr(options, each.field)
        is_silent = each.option.unrecorded_default and value == each.default
        if each.option.changes_bytes and not is_silent:
            found[each.key] = value
    return found


def _merged(choice: Choice, variants: Mapping[str, Declared]) -> Declared:
    """One option of those that the values of a choice declare under one name."""
    first, *others = variants.values()
    if all(each == first for each in others):
        return first
    shapes = {
        (each.option.kind is None, each.option.many, each.field) for each in variants.values()
    }
    if len(shapes) > 1:
        raise ValueError(f'--{first.name} is declared twice, and not typed alike')
    by_help: dict[str, list[str]] = {}
    for value, each in variants.items():
        words = each.option.kind if isinstance(each.option.kind, tuple) else ()
        said = f'{each.help} {{{", ".join(words)}}}' if words else each.help
        by_help.setdefault(said, []).append(value)
    told = '; '.join(f'of {" and ".join(values)}: {said}' for said, values in by_help.items())
    metavar = next((each.option.metavar for each in variants.values() if each.option.metavar), None)
    option = dataclasses.replace(first.option, help=told, kind=as_typed, metavar=metavar)
    return dataclasses.replace(first, default=MISSING, option=option)


def special_token(value: str) -> str:
    """A token of a vocabulary file: a line of it, without white space."""
    if text(value).split() != [value]:
        raise argparse.ArgumentTypeError(f'{shown(value)} is empty or has white space in it')
    return value


def special_tokens(value: str) -> tuple[str, ...]:
    """Several tokens with commas between them, all different; none if there is nothing."""
    tokens = tuple(map(special_token, value.split(','))) if value else ()
    if len(set(tokens)) != len(tokens):
        raise argparse.ArgumentTypeError(f'{shown(value)} names a token twice')
    return tokens


def with_added(
    given: Sequence[str] | None, own: Sequence[str], added: Iterable[str]
) -> tuple[str, ...]:
    """Returns a scheme's own tokens, or those given in their place, and those added, each once."""
    return tuple(dict.fromkeys([*(own if given is None else given), *added]))


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
            raise argparse.ArgumentTypeError(f'{shown(text)} is not a size, as 12MiB, {self}')
        return size

    def __str__(self) -> str:
        return f'up to {said_size(self.high)}'


def columns(text: str) -> tuple[int | str, ...]:
    """One column, or two different ones: by number, as `0,1`, or by name, as `en,zh`."""
    parts = [
        _number(part) if part.isascii() and part.isdigit() else part for part in text.split(',')
    ]
    wrong = [
        part
        for part in parts
        if part in ('', None) or (isinstance(part, int) and part > MOST_COLUMN)
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


def vocabulary_path(text: str) -> str:
    """A path to write a vocabulary to; names beside it are its manifest's."""
    name = output_path(text).rstrip('/').rpartition('/')[2]
    if name in ('tokbeam.json', 'tokbeam.run.json') or name.endswith(
        ('.tokbeam.json', '.tokbeam.run.json')
    ):
        raise argparse.ArgumentTypeError(f'{shown(text)} is the name of a manifest; give another')
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


positive = WholeNumber(1, LARGEST_INT32)


def _without_names(text: str, prefix: str) -> str:
    for name in path(text).split('/'):
        if name.startswith(prefix):
            raise argparse.ArgumentTypeError(
                f'{shown(text)} holds the name {shown(name)}, and names that begin with {prefix} '
                "are of this program's own files; give another"
            )
    return text
