"""The options of vocabularies: of which scheme they are, and which ones encode."""

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.options.option_reading import options_of, settled
from tokcore.encoding.scheme import Scheme
from tokcore.encoding.scheme_options import EncodingOptions, LearningOptions, NothingToLearn
from tokcore.options.option_fields import Choice, declared, option
from tokcore.options.values import path, shown
from tokcore.schemes import DEFAULT_SCHEME, find_scheme, scheme_names


def schemes_option() -> type:
    """Returns a dataclass with `--scheme`, which may be repeated."""
    declared_ = option(
        f'whose tokens are counted; repeated, into OUTPUT/SCHEME of each (default: {DEFAULT_SCHEME})',
        known_scheme,
        'SCHEME',
        default=(DEFAULT_SCHEME,),
        many='repeated',
    )
    fields = [('scheme', tuple[str, ...], declared_)]
    return dataclasses.make_dataclass('SchemesOption', fields, frozen=True, kw_only=True)


def known_scheme(word: str) -> str:
    """The name of a scheme."""
    if word not in scheme_names():
        raise argparse.ArgumentTypeError(
            f'invalid choice: {shown(word)} (choose from {", ".join(scheme_names())})'
        )
    return word


def scheme_option(default: str | None = DEFAULT_SCHEME) -> type:
    """Returns a dataclass with `--scheme`; without a default, a vocabulary's record is asked."""
    told = default or "the one recorded beside the vocabulary, else the one that its file's form tells"
    declared = option(
        f'how text becomes ids (default: {told})', scheme_names(), default=default, changes_bytes=True
    )
    fields = [('scheme', str | None, declared)]
    return dataclasses.make_dataclass('SchemeOption', fields, frozen=True, kw_only=True)


def token_options() -> Choice:
    """Returns the options that change which tokens a line has: each scheme is its own."""
    return Choice('scheme', {name: type(find_scheme(name)) for name in scheme_names()})


def learning_options() -> Choice:
    """Returns the options of how a vocabulary is learned, of each scheme."""
    return Choice(
        'scheme', {name: find_scheme(name).options or NothingToLearn for name in scheme_names()}
    )


def encoding_options() -> Choice:
    """Returns the options of how a vocabulary encodes, of each scheme."""
    return Choice('scheme', {name: find_scheme(name).encoding for name in scheme_names()})


def asked_scheme(
    name: str, values: Mapping[str, object], among: Sequence[str] = ()
) -> Scheme:
    """Returns a scheme with what is asked for of its tokens.

    Args:
        name: of the scheme.
        values: what was given, by `Declared.key`.
        among: those that are asked for at once; options of any of them may be given.

    Raises:
        InputError: an option of another scheme, or a value that cannot be.
    """
    choice = token_options()
    own = {each.key for each in declared(choice.chosen(name))}
    others = {each.key for other in among for each in declared(choice.chosen(other))} - own
    given = {key: value for key, value in values.items() if key not in others}
    return options_of(choice.chosen(name), settled(choice, given, name))


def asked_learning(scheme: Scheme, values: Mapping[str, object]) -> LearningOptions:
    """Returns what is asked of a scheme's learner; raises InputError as `asked_scheme`."""
    choice = learning_options()
    found = options_of(choice.chosen(scheme.name), settled(choice, values, scheme.name))
    scheme.check(found)
    return found


def asked_encoding(scheme: Scheme, values: Mapping[str, object]) -> EncodingOptions:
    """Returns what is asked of a scheme's encoder; raises InputError as `asked_scheme`."""
    choice = encoding_options()
    return options_of(choice.chosen(scheme.name), settled(choice, values, scheme.name))


@dataclass(frozen=True, kw_only=True)
class SharedVocabulary:
    """Whether the sides of pairs have one vocabulary."""

    shared_vocab: bool = option(
        'learn one vocabulary from both sides (default: one for each side)',
        None,
        default=False,
        changes_bytes=True,
    )


@dataclass(frozen=True, kw_only=True)
class GivenVocabularies:
    """Vocabularies to encode with: one of all sides, or one of each."""

    vocab: str | None = option('vocabulary of all sides', path, 'FILE', default=None)
    source_vocab: str | None = option(
        'vocabulary of the source side', path, 'FILE', default=None
    )
    target_vocab: str | None = option(
        'vocabulary of the target side', path, 'FILE', default=None
    )


@dataclass(frozen=True, kw_only=True)
class LineVocabulary:
    """The vocabulary of a command that takes lines."""

    vocab: str | None = option(
        'vocabulary file; of byte there is none', path, 'FILE', default=None
    )


@dataclass(frozen=True, kw_only=True)
class LinePieces:
    """Pieces instead of ids."""

    pieces: bool = option(
        'write the pieces themselves, as the vocabulary has them, instead of their ids; white '
        'space in one is written as \\32; and the like',
        None,
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class LineBytes:
    """What lines hold, and bytes as they are."""

    pieces: bool = option(
        'lines hold pieces, as tokenize --pieces and build --output-format=text write them',
        None,
        default=False,
    )
    raw: bool = option(
        'write the bytes of ids exactly as they are, also where they are no UTF-8 or hold a line '
        'feed (default: U+FFFD, and a space)',
        None,
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class LineEnding:
    """What stands behind the ids of a line."""

    eos: bool = option(
        "put around each line what the scheme's examples have around it: of subword, the id of "
        '<EOS> behind it',
        None,
        default=False,
    )
