"""The options that name a corpus: each split's files, and which columns and sides are meant."""

import dataclasses
from dataclasses import dataclass
from typing import get_args

from pipelines.options.choices import PairSide
from tokcore.corpus.filters.registry import filter_forms, filter_list
from tokcore.corpus.formats.registry import all_formats
from tokcore.options.option_fields import Declared, declared, field_of, flag, option
from tokcore.options.special_tokens import special_tokens
from tokcore.options.values import path

SPLITS = ('train', 'dev', 'test')


def option_name(split: str, name: str) -> str:
    """Returns what an option is called for a split: `shards`, `dev_shards`."""
    return name if split == 'train' else f'{split}_{name}'


def split_flag(split: str, name: str) -> str:
    """Returns an option of a split as it is typed: `--source`, `--dev-source`."""
    return flag(option_name(split, name))


def paths_option(help: str, metavar: str = 'PATH') -> dataclasses.Field:
    """Returns an option that takes several paths of what is read."""
    return option(help, path, metavar, default=(), many='words', reads=True)


def side_option() -> dataclasses.Field:
    """Returns an option that chooses a side of pairs."""
    help = 'which side of the pairs is counted (default: both)'
    return option(help, get_args(PairSide), default=None, changes_bytes=True)


def split_files(split: str) -> type:
    """Returns a dataclass of what names the files of a split, and of what its format asks for.

    What is not given of the latter is None; it is then the format's default, or, of a later split,
    what the training corpus has. Filters are of their own split alone: what cleans a training
    corpus would change what a test corpus measures.
    """
    formats = all_formats()
    files = [
        (role, tuple[str, ...], paths_option(help))
        for each in formats
        for role, help in zip(each.roles, each.help, strict=True)
    ]
    by_field: dict[str, tuple[Declared, list[str]]] = {}
    for each in formats:
        for one in declared(each):
            # Formats may share an option, which then goes with the files of any of them.
            first, roles = by_field.setdefault(one.field, (one, []))
            if first != one:
                raise ValueError(f'--{one.name} is declared in two ways')
            roles += [role.replace('_', '-') for role in each.roles]
    asked = [
        (name, object, _format_option(one, tuple(roles), split))
        for name, (one, roles) in by_field.items()
    ]
    clean = option(
        'filters of the rows, which act in this order: '
        f'{", ".join(filter_forms())} (default: none, or those of the job file)',
        filter_list,
        'A,B,…',
        default=None,
        changes_bytes=True,
    )
    every = [*files, *asked, ('clean', tuple[str, ...] | None, clean)]
    return dataclasses.make_dataclass('SplitFiles', every, frozen=True, kw_only=True)


def _format_option(one: Declared, roles: tuple[str, ...], split: str) -> dataclasses.Field:
    default = one.option.told_default if split == SPLITS[0] else "the training corpus's"
    changed = dataclasses.replace(
        one.option, help=f'{one.help} (default: {default})', goes_with=roles, changes_bytes=True
    )
    return field_of(changed, None)


@dataclass(frozen=True, kw_only=True)
class CountsToMerge:
    """COUNTS folders in place of text."""

    merge: tuple[str, ...] = paths_option(
        'instead of text: add up folders of earlier counts', 'COUNTS'
    )


@dataclass(frozen=True, kw_only=True)
class PiecesToCount:
    """Pieces in place of tokens."""

    pieces: bool = option(
        'count the pieces that codes make of the text, into a table `piece count`, and write '
        'their ids beside the codes: X.vocab beside X.codes',
        None,
        default=False,
    )
    vocab: str | None = option(
        'with --pieces: the codes', path, 'X.codes', default=None, goes_with=('pieces',)
    )
    special_tokens: tuple[str, ...] | None = option(
        'with --pieces: what has the first ids (default: <pad>,</s>,<unk>)',
        special_tokens,
        'A,B,…',
        default=None,
        goes_with=('pieces',),
    )


@dataclass(frozen=True, kw_only=True)
class CountsToLearn:
    """Counts in place of text."""

    counts: tuple[str, ...] = paths_option(
        'instead of text: folders of `tokbeam count`, Parquet files with columns token and '
        'count, or text with a token and its count on a line',
        'COUNTS',
    )


@dataclass(frozen=True, kw_only=True)
class CountedSide:
    """Which side of pairs is meant."""

    side: PairSide | None = side_option()
