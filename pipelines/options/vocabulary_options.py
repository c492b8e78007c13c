"""The options of vocabularies: of which scheme they are, and which ones encode."""

import dataclasses
from dataclasses import dataclass

from tokcore.options.option_fields import Choice, option
from tokcore.options.values import path
from tokcore.schemes import DEFAULT_SCHEME, find_scheme, scheme_names


def scheme_option(default: str | None = DEFAULT_SCHEME) -> type:
    """Returns a dataclass with `--scheme`; without a default, a vocabulary's record is asked."""
    told = default or f'the one recorded beside the vocabulary, else {DEFAULT_SCHEME}'
    declared = option(
        f'how text becomes ids (default: {told})', scheme_names(), default=default, changes_bytes=True
    )
    fields = [('scheme', str | None, declared)]
    return dataclasses.make_dataclass('SchemeOption', fields, frozen=True, kw_only=True)


def learning_options() -> Choice:
    """Returns the options of how a vocabulary is learned, of each scheme."""
    return Choice('scheme', {name: find_scheme(name).options for name in scheme_names()})


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

    vocab: str = option('vocabulary file', path, 'FILE')


@dataclass(frozen=True, kw_only=True)
class LineEnding:
    """What stands behind the ids of a line."""

    eos: bool = option(
        'put around each line what examples have around it: of subword the id of <EOS> behind it',
        None,
        default=False,
    )
