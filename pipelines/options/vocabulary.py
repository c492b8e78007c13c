"""The options of vocabularies: the scheme, how it learns and encodes, and the files."""

import argparse
import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.options.job import PairSide
from pipelines.options.reading import not_one_of, options_from, refuse_unchosen
from tokcore.counts.vocab_sample import vocab_sample
from tokcore.counts.weights import temperature
from tokcore.encoding.hub_folders import EXPORT_TARGETS
from tokcore.encoding.scheme import EncodingOptions, LearningOptions, NothingToLearn, Scheme
from tokcore.errors import InputError
from tokcore.options import LANGUAGE, Choice, declared, option, output_path, path, shown
from tokcore.schemes import DEFAULT_SCHEME, find_scheme, scheme_names

PAIR: tuple[PairSide, PairSide] = ('inputs', 'targets')
"""The sides of pairs."""


def schemes_option() -> type:
    """Returns a dataclass with `--scheme`, which may be repeated."""
    scheme = option(
        f'whose tokens are counted; repeated, into OUTPUT/SCHEME of each (default: {DEFAULT_SCHEME})',
        known_scheme,
        'SCHEME',
        default=(DEFAULT_SCHEME,),
        many='repeated',
    )
    fields = [('scheme', tuple[str, ...], scheme)]
    return dataclasses.make_dataclass('SchemesOption', fields, frozen=True, kw_only=True)


def known_scheme(word: str) -> str:
    """The name of a scheme."""
    if word not in scheme_names():
        raise argparse.ArgumentTypeError(not_one_of(word, scheme_names()))
    return word


def scheme_option(default: str | None = DEFAULT_SCHEME) -> type:
    """Returns a dataclass with `--scheme`; without a default, the vocabulary's record decides."""
    default_help = (
        default
        or 'the one recorded next to the vocabulary, else the one that its file has the form of'
    )
    scheme = option(
        f'how text becomes ids (default: {default_help})',
        scheme_names(),
        default=default,
        changes_bytes=True,
    )
    fields = [('scheme', str | None, scheme)]
    return dataclasses.make_dataclass('SchemeOption', fields, frozen=True, kw_only=True)


def token_options() -> Choice:
    """Returns the options that change the tokens of a line: the fields of each scheme."""
    return Choice('scheme', {name: type(find_scheme(name)) for name in scheme_names()})


def learning_options() -> Choice:
    """Returns the options of how a vocabulary is learned, of each scheme."""
    return Choice(
        'scheme', {name: find_scheme(name).options or NothingToLearn for name in scheme_names()}
    )


def encoding_options() -> Choice:
    """Returns the options of how a vocabulary encodes, of each scheme."""
    return Choice('scheme', {name: find_scheme(name).encoding for name in scheme_names()})


def scheme_from_options(
    name: str, values: Mapping[str, object], among: Sequence[str] = ()
) -> Scheme:
    """Returns a scheme with the options of its tokens.

    Args:
        name: of the scheme.
        values: of options, by `Declared.key`; those of other dataclasses are ignored.
        among: the schemes of the command; options of any of them may be given.

    Raises:
        InputError: an option of another scheme, or a value that cannot be.
    """
    choice = token_options()
    own = {field.key for field in declared(choice.kinds[name])}
    others = {field.key for other in among for field in declared(choice.kinds[other])} - own
    known = {key: value for key, value in values.items() if key not in others}
    return _options_of(choice, known, name)


def learning_from_options(
    scheme: Scheme, values: Mapping[str, object]
) -> tuple[Scheme, LearningOptions]:
    """Returns a scheme as it learns, and its options; raises InputError as `scheme_from_options`."""
    options: LearningOptions = _options_of(learning_options(), values, scheme.name)
    scheme = scheme.for_learning(options)
    scheme.check(options)
    return scheme, options


def encoding_from_options(scheme: Scheme, values: Mapping[str, object]) -> EncodingOptions:
    """Returns the options of a scheme's encoder; raises InputError as `scheme_from_options`."""
    return _options_of(encoding_options(), values, scheme.name)


def _options_of(choice: Choice, values: Mapping[str, object], scheme: str) -> Any:
    refuse_unchosen(choice, values, scheme)
    return options_from(choice.kinds[scheme], values)


def two_languages(word: str) -> tuple[str, str]:
    """Two different codes of languages, as en,zh."""
    languages = word.split(',')
    if len(set(languages)) != 2 or not all(map(re.compile(LANGUAGE).fullmatch, languages)):
        raise argparse.ArgumentTypeError(
            f'{shown(word)} is not two languages, of source and target, as en,zh'
        )
    source, target = languages
    return source, target


@dataclass(frozen=True, kw_only=True)
class VocabularyLayout:
    """Whether the sides of pairs share a vocabulary, and the names of the files."""

    shared_vocab: bool = option(
        'learn one vocabulary from both sides (default: one for each side)',
        None,
        default=False,
        changes_bytes=True,
    )
    vocab_languages: tuple[str, str] | None = option(
        'how the names of the vocabularies of source and target end, as en,zh, where the problems of '
        'Tensor2Tensor look for them (default: inputs,targets)',
        two_languages,
        'A,B',
        default=None,
        changes_bytes=True,
        unrecorded_default=True,
    )

    def names(
        self, scheme: Scheme, dataset: str, learning: LearningOptions | None, sides: Sequence[str]
    ) -> dict[PairSide, str]:
        """Returns the file name of each side's vocabulary: `both`, or `inputs` and `targets`.

        A scheme that learns nothing has no such files.

        Args:
            scheme: whose vocabularies these are.
            dataset: the name of the dataset.
            learning: the options of the learner; None if there is none.
            sides: of the corpus's rows.

        Raises:
            InputError: languages where one vocabulary is for all.
        """
        if scheme.options is None or learning is None:
            return {}
        size = learning.size_label
        languages = self.vocab_languages
        if self.shared_vocab or len(sides) < 2:
            if languages:
                raise InputError(
                    '--vocab-languages is for a vocabulary of each side, and here is one for all; '
                    'leave it out'
                )
            return {'both': scheme.vocabulary_name(dataset, size)}
        endings = languages or PAIR
        return {
            side: scheme.vocabulary_name(dataset, size, ending)
            for side, ending in zip(PAIR, endings, strict=True)
        }


@dataclass(frozen=True, kw_only=True)
class SampleOptions:
    """Which rows of the training corpus are counted for the vocabularies."""

    vocab_sample: str | None = option(
        "count a sample for the vocabulary: t2t:100MB takes lines of each file as Tensor2Tensor's "
        'file_byte_budget=1e8 does, of text and bitext, and before any filter; uniform:0.1 a tenth of '
        'the rows of any format, by their order keys of seed 0 (default: all is counted)',
        vocab_sample,
        'HOW',
        default=None,
        changes_bytes=True,
        unrecorded_default=True,
    )


@dataclass(frozen=True, kw_only=True)
class WeightOptions:
    """How the datasets that a vocabulary is learned from are weighted, where they have no weights."""

    temperature: str | None = option(
        'weight each dataset by its share of all bytes to the power of 1/T, as multilingual BERT and XLM do: '
        'with 1 each counts as it is, and the larger T is, the more small ones count (default: no weights)',
        temperature,
        'T',
        default=None,
        changes_bytes=True,
        unrecorded_default=True,
    )


@dataclass(frozen=True, kw_only=True)
class VocabularyFiles:
    """Vocabularies to encode with: one for all sides, or one for each."""

    vocab: tuple[str, ...] = option(
        'vocabulary of all sides, or one of the source and one of the target: a file, the folder of a '
        'tokenizer, or hf://OWNER/NAME',
        path,
        'FILE',
        default=(),
        many='words',
    )


@dataclass(frozen=True, kw_only=True)
class TokenizeOptions:
    """What `tokenize` reads lines with, and what it writes of them."""

    vocab: str | None = option(
        'vocabulary file, the folder of a tokenizer, or hf://OWNER/NAME; byte needs none',
        path,
        'FILE',
        default=None,
    )
    pieces: bool = option(
        'write the pieces themselves, as the vocabulary has them, instead of their ids; white '
        'space in one is written as \\32; and the like',
        None,
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What `export` makes of a vocabulary."""

    to: str = option(
        'whose files: of Hugging Face (tokenizer.json), tiktoken, SentencePiece, BERT (vocab.txt) or '
        'subword-nmt; or a playground, a page that shows the pieces of any text',
        EXPORT_TARGETS,
    )
    output: str = option('folder to make; it must not be there', output_path, 'DIR')


@dataclass(frozen=True, kw_only=True)
class DetokenizeOptions(TokenizeOptions):
    """What `detokenize` reads lines with, and what it writes of them."""

    pieces: bool = option(
        'lines hold pieces, as tokenize --pieces and build --output-format=text write them',
        None,
        default=False,
    )
