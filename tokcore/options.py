"""Options are declared once, as fields of a dataclass; their values are checked within bounds.

    @dataclass(frozen=True, kw_only=True)
    class CountingOptions:
        threads: int = option('threads that count, {range}', WholeNumber(1, 64), 'N', default=4)

On the command line it is `--threads N`, in a job file `threads = 4`, and manifests record it if the
bytes of a result depend on it. A command has the options of several such dataclasses; the value of
one option may choose a dataclass of others (`Choice`). Bounds refuse at once what numpy, Beam or
the filesystem could only fail at, mostly after hours. `--help` imports this module, so it imports
nothing heavy.
"""

import argparse
import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from typing import Any

_KEY = 'option'

MOST_SHARDS = 100_000
"""Each is a file, and Tensor2Tensor's file names have five digits for its number."""

MOST_WORKERS = 1_024
MOST_COLUMN = 65_535
LARGEST_INT32 = (1 << 31) - 1
LARGEST_INT64 = (1 << 63) - 1
LARGEST_UINT64 = (1 << 64) - 1
LARGEST_BLOCK = 1 << 30  # bytes; its tokens and ids take several times as much memory
LARGEST_MEMORY = 1 << 50

_SIZE = re.compile(r'([0-9]+)\s*(|[KMGT]i?B?|B)', re.IGNORECASE)
_UNITS = {'': 1, 'b': 1, 'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30, 't': 1 << 40}

_MOST_DIGITS = 25
"""More than any bound has; Python refuses to parse thousands of digits."""

_MOST_SHOWN = 60
"""Characters of a value in an error."""

_OWN_NAMES = ('.tokbeam', 'tokbeam.')
"""How the names of this program's own files begin."""

NO_END = 'none'
"""What is given as the end of documents where they are joined without one."""

LANGUAGE = r'[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*'
"""A language code (RFC 5646), as a regular expression."""


def option(
    help: str,
    kind: Callable[[str], object] | Sequence[str] | None,
    metavar: str | None = None,
    *,
    default: Any = MISSING,
    **declared: Any,
) -> Any:
    """Returns a dataclass field that is an option; one without a default is required.

    `help`, `kind`, `metavar` and the other arguments are attributes of `Option`.
    """
    choices = kind if kind is None or callable(kind) else tuple(kind)
    return field_of(Option(help, choices, metavar, **declared), default)


@dataclass(frozen=True)
class Option:
    """An option, except for its name and its default.

    Attributes:
        help: for the user; `{range}` stands for the bounds of the kind.
        kind: parses a value, raising `argparse.ArgumentTypeError`; or the words to choose from; or
            None for a flag, which takes no value and is True if given.
        metavar: how the help shows a value; None: by the option's name.
        name: the name on the command line, without its leading dashes; None: that of the field.
        many: 'words' takes several values at once, and more if it is repeated; 'repeated' takes one
            each time. The field is a tuple.
        changes_bytes: whether the bytes of results depend on it, so that manifests record it.
        unrecorded_default: whether manifests omit it while it has its default, as they did before
            there was this option.
        goes_with: other options; one of them must be given too.
        reads: whether it names files that are read.
        default_help: how the help of a format's option shows its default.
        implies: another option and its value, if that one is not given.
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
    default_help: str = ''
    implies: tuple[str, str] | None = None


def field_of(declared: Option, default: Any) -> Any:
    """Returns the dataclass field of an option."""
    return field(default=default, metadata={_KEY: declared})


@dataclass(frozen=True)
class Declared:
    """An option with the field that declares it, and its names."""

    field: str
    name: str  # on the command line: `max-line-size`
    default: object  # MISSING if it is required
    option: Option

    @property
    def key(self) -> str:
        """Its name in manifests and in the namespace of the parser: `max_line_size`."""
        return self.name.replace('-', '_')

    @property
    def help(self) -> str:
        return self.option.help.replace('{range}', str(self.option.kind))


@dataclass(frozen=True)
class Choice:
    """Dataclasses of options; the value of another option chooses one of them.

    Attributes:
        by: the key of that option.
        kinds: the dataclasses by its values.
    """

    by: str
    kinds: Mapping[str, type]


Kind = type | Choice


def declared(kind: Kind) -> list[Declared]:
    """Returns the options of a dataclass, or of all dataclasses of a choice, in the order of fields.

    An option that several of them declare comes once, with the words to choose from and the help of all.

    Raises:
        ValueError: they declare it with different kinds of values.
    """
    if isinstance(kind, Choice):
        variants: dict[str, dict[str, Declared]] = {}
        for value, dataclass_ in kind.kinds.items():
            for one in declared(dataclass_):
                variants.setdefault(one.name, {})[value] = one
        return [_merged(by_value) for by_value in variants.values()]
    return [
        Declared(
            own.name,
            own.metadata[_KEY].name or own.name.replace('_', '-'),
            own.default,
            own.metadata[_KEY],
        )
        for own in dataclasses.fields(kind)
        if _KEY in own.metadata
    ]


def flag(name: str) -> str:
    """Returns an option as it is typed, from its name with dashes or with underscores."""
    return f'--{name}'.replace('_', '-')


def recorded(*options: object) -> dict[str, object]:
    """Returns the options of instances that change bytes, by key, as a manifest records them."""
    values = {}
    for instance in options:
        for one in declared(type(instance)):
            value = getattr(instance, one.field)
            is_omitted = one.option.unrecorded_default and value == one.default
            if one.option.changes_bytes and not is_omitted:
                values[one.key] = value
    return values


def _merged(variants: Mapping[str, Declared]) -> Declared:
    """Returns one option for those that the values of a choice declare under one name."""
    first, *others = variants.values()
    if all(other == first for other in others):
        return first
    kinds: list[Any] = [variant.option.kind for variant in variants.values()]
    kind = kinds[0]
    if all(isinstance(words, tuple) for words in kinds):
        kind = tuple(dict.fromkeys(word for words in kinds for word in words))
    elif any(
        (other.option.kind, other.option.many, other.field)
        != (kind, first.option.many, first.field)
        for other in others
    ):
        raise ValueError(f'--{first.name} is declared twice, with different values')
    by_help: dict[str, list[str]] = {}
    for value, variant in variants.items():
        words = variant.option.kind
        choices = f' {{{", ".join(words)}}}' if isinstance(words, tuple) else ''
        by_help.setdefault(variant.help + choices, []).append(value)
    help = '; '.join(f'of {" and ".join(values)}: {text}' for text, values in by_help.items())
    is_same = all(other.default == first.default for other in others)
    option = dataclasses.replace(first.option, help=help, kind=kind)
    return dataclasses.replace(first, default=first.default if is_same else MISSING, option=option)


def special_token(value: str) -> str:
    """A token of a vocabulary file, one a line: without white space."""
    if text(value).split() != [value]:
        raise argparse.ArgumentTypeError(f'{shown(value)} is empty or has white space in it')
    return value


def token_or_id(value: str) -> str:
    """A token without white space; digits are an id."""
    return special_token(value)


def special_tokens(value: str) -> tuple[str, ...]:
    """Different tokens with commas between them; or none."""
    tokens = tuple(map(special_token, value.split(','))) if value else ()
    if len(set(tokens)) != len(tokens):
        raise argparse.ArgumentTypeError(f'{shown(value)} names a token twice')
    return tokens


def special_tokens_option() -> Any:
    """Returns the field of the special tokens in place of those of a scheme."""
    return option(
        'special tokens in place of those of the scheme: of word <unk>,<s>,</s>, of wordpiece '
        '[PAD],[UNK],[CLS],[SEP],[MASK], of bytes of bpe <|endoftext|> unless --extend is given',
        special_tokens,
        'A,B,…',
        default=None,
        changes_bytes=True,
    )


@dataclass(frozen=True)
class WholeNumber:
    """A whole number within bounds."""

    low: int
    high: int

    def __call__(self, text: str) -> int:
        number = _number(text)
        if number is None or not self.low <= number <= self.high:
            raise argparse.ArgumentTypeError(
                f'{shown(text)} is not a whole number {self}{_written_out(text)}'
            )
        return number

    def __str__(self) -> str:
        return f'from {format_number(self.low)} to {format_number(self.high)}'


@dataclass(frozen=True)
class Decimal:
    """A number within bounds, as `0.75`."""

    low: float
    high: float

    def __call__(self, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = self.low - 1
        if not self.low <= number <= self.high:
            raise argparse.ArgumentTypeError(f'{shown(text)} is not a number {self}')
        return number

    def __str__(self) -> str:
        return f'from {self.low} to {self.high}'


@dataclass(frozen=True)
class ByteSize:
    """A number of bytes, as `64`, `512KiB` or `12MiB`; units are powers of 1,024."""

    high: int

    def __call__(self, text: str) -> int:
        match = _SIZE.fullmatch(text.strip())
        size = (_number(match[1]) or 0) * _UNITS[match[2][:1].lower()] if match else 0
        if not 1 <= size <= self.high:
            raise argparse.ArgumentTypeError(f'{shown(text)} is not a size, as 12MiB, {self}')
        return size

    def __str__(self) -> str:
        return f'up to {format_size(self.high)}'


def columns(text: str) -> tuple[int | str, ...]:
    """One column, or two different ones: by number, as `0,1`, or by name, as `en,zh`."""
    parts: list[int | str] = []
    for part in text.split(','):
        number = _number(part)
        parts.append(part if number is None else number)
    is_wrong = any(part == '' or (isinstance(part, int) and part > MOST_COLUMN) for part in parts)
    if not 1 <= len(parts) <= 2 or is_wrong or text.startswith('-'):
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
    if len(parts) != 2 or parts[0] is None or parts[1] is None:
        raise argparse.ArgumentTypeError(f'{shown(text)} is not two min-counts, as 1:1000')
    low, high = parts[0], parts[1]
    if not 1 <= low <= high <= LARGEST_INT64:
        raise argparse.ArgumentTypeError(
            f'{shown(text)} is not a range within 1 to {format_number(LARGEST_INT64)}'
        )
    return low, high


def subtoken_length(text: str) -> int | None:
    """A whole number above 0, or `none`."""
    return None if text == 'none' else positive(text)


def chance(text: str) -> float:
    """A number from 0 to 1, as `0.1`."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f'{shown(text)} is not a number from 0 to 1, as 0.1')
    return number


def expression(value: str) -> str:
    """A regular expression of Python, not empty."""
    try:
        re.compile(text(value))
    except re.error as error:
        raise argparse.ArgumentTypeError(
            f'{shown(value)} is not a regular expression ({error})'
        ) from None
    if not value:
        raise argparse.ArgumentTypeError(
            "'' is not a regular expression; is a shell variable not set?"
        )
    return value


def path(text: str) -> str:
    """A path or a pattern; like the names of files, it need not be UTF-8."""
    if not text:
        raise argparse.ArgumentTypeError("'' is not a path; is a shell variable not set?")
    if '\0' in text:
        raise argparse.ArgumentTypeError(f'{shown(text)} is not a path: it holds a NUL')
    return text


def output_path(text: str) -> str:
    """A path to write to; none of its parts is named like this program's own files."""
    return _without_names(text, '.tokbeam')


def work_path(text: str) -> str:
    """A folder for temporary files, which may be the `.tokbeam` that this program makes."""
    return _without_names(text, '.tokbeam-')


def vocabulary_path(text: str) -> str:
    """A path to write a vocabulary to, which is not the name of a manifest."""
    name = output_path(text).rstrip('/').rpartition('/')[2]
    if f'.{name}'.endswith(('.tokbeam.json', '.tokbeam.run.json')):
        raise argparse.ArgumentTypeError(f'{shown(text)} is the name of a manifest; give another')
    return text


PATH_KINDS = (path, output_path, vocabulary_path, work_path)


def text(value: str) -> str:
    """Text that can be written as UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f'{shown(value)} is not UTF-8') from None
    return value


def line_of_text(value: str) -> str:
    """Text of a single line."""
    if '\n' in text(value) or '\r' in value:
        raise argparse.ArgumentTypeError(f'{shown(value)} must be a single line')
    return value


def reserved_token(value: str) -> str:
    """A token of a vocabulary file, one a line: without white space at its ends."""
    if not text(value) or value != value.strip() or '\n' in value or '\r' in value:
        raise argparse.ArgumentTypeError(f'{shown(value)} is empty or has white space at its ends')
    return value


def dataset_name(value: str) -> str:
    """A part of file names that are not like this program's own."""
    text(value)
    if not value or '/' in value or any(ord(char) < 32 or ord(char) == 127 for char in value):
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
    """Returns a value in quotes for an error, shortened if it is long."""
    return repr(value) if len(value) <= _MOST_SHOWN else f'{value[:_MOST_SHOWN]!r}…'


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns a question that names the nearest known word; empty if none is near."""
    near = difflib.get_close_matches(word, list(known), 1)
    return f'did you mean {near[0]}?' if near else ''


def format_number(number: int) -> str:
    """Returns a number as people write it: `12,000`, and `2^31 - 1` for the largest of machine words."""
    for bits in (31, 63, 64):
        if number == (1 << bits) - 1:
            return f'2^{bits} - 1'
    return f'{number:,}'


def format_size(size: int) -> str:
    """Returns a number of bytes in the largest unit of which it is a multiple: `1GiB`."""
    for unit, bits in (('PiB', 50), ('TiB', 40), ('GiB', 30), ('MiB', 20), ('KiB', 10)):
        if size % (1 << bits) == 0:
            return f'{size >> bits}{unit}'
    return f'{size}'


def _written_out(text: str) -> str:
    """What to do about `32k`, which is 32,000 to some and 32,768 to others."""
    match = re.fullmatch(r'([0-9]{1,6})k', text.strip(), re.IGNORECASE)
    return f'; write {int(match[1]) * 1000} or {int(match[1]) * 1024}' if match else ''


def _number(digits: str) -> int | None:
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip('0') or '0'
    return int(digits) if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS


positive = WholeNumber(1, LARGEST_INT32)


def _without_names(text: str, prefix: str) -> str:
    if text.startswith('hf://'):
        raise argparse.ArgumentTypeError(
            f'{shown(text)} is on the Hugging Face Hub, to which nothing is written; give a folder here, '
            'and upload it'
        )
    for name in path(text).split('/'):
        if name.startswith(prefix):
            raise argparse.ArgumentTypeError(
                f'{shown(text)} holds the name {shown(name)}, and names that begin with {prefix} '
                "are of this program's own files; give another"
            )
    return text
