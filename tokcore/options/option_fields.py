"""An option is declared once, as a field of a dataclass; all that know of options read that.

    @dataclass(frozen=True, kw_only=True)
    class CountingOptions:
        threads: int = option('threads that count, {range}', WholeNumber(1, 64), 'N', default=4)

The parser makes `--threads N` of it, a job file `threads = 4`, and manifests record it if bytes
depend on it. A command takes its options of several such dataclasses, some of which the value of
another option chooses (`Choice`). Nothing here imports what takes long: help waits for it.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field

_KEY = 'option'


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
        told_default: how the help of a format's option shows its default.
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
    told_default: str = ''


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


Kind = type | Choice


def as_typed(word: str) -> str:
    """The kind of an option of which each chosen dataclass makes a value of its own."""
    return word


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


def _merged(choice: Choice, variants: Mapping[str, Declared]) -> Declared:
    """One option of those that the values of a choice declare under one name."""
    first, *others = variants.values()
    if all(each == first for each in others):
        return first
    shapes = {(each.option.kind is None, each.option.many, each.field) for each in variants.values()}
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
