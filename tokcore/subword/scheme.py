"""Tensor2Tensor's subwords as a scheme: stripped lines, its pre-tokenizer, `<EOS>` after a row."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tokcore.encoding.scheme import (
    EncodingOptions,
    Learned,
    LearningOptions,
    Scheme,
    vocab_size_option,
)
from tokcore.encoding.vocabulary import ReadBeside, read_if_there, without_mark
from tokcore.errors import InputError
from tokcore.learning.size_search import STRATEGIES, Progress, Strategy, search_vocabulary
from tokcore.options import (
    LARGEST_INT64,
    format_number,
    min_count_range,
    option,
    positive,
    reserved_token,
    subtoken_length,
)

if typing.TYPE_CHECKING:
    from tokcore.counts.token_table import TokenTable
    from tokcore.subword.text_encoder import SubwordTextEncoder
    from tokcore.text.rows import Normalizer
    from tokcore.text.t2t import T2TPreTokenizer

WantedLearner = Literal['auto', 'memory', 'beam']

T2T_RANGE = (1, 1000)
"""The min-counts between which Tensor2Tensor's `build_from_generator` searches."""


@dataclass(frozen=True)
class SubwordOptions(LearningOptions):
    """Options of learning subwords."""

    vocab_size: int = vocab_size_option()
    search: Strategy = option(
        "t2t: Tensor2Tensor's path over min-counts; closest: the size nearest to the target "
        '(default: t2t)',
        STRATEGIES,
        default='t2t',
        changes_bytes=True,
    )
    min_count_range: tuple[int, int] | None = option(
        f'min-counts to search between, from 1 to {format_number(LARGEST_INT64)} (default: 1:1000, and '
        'beyond where that is too low; giving 1:1000 forbids going beyond)',
        min_count_range,
        'LOW:HIGH',
        default=None,
        changes_bytes=True,
    )
    max_subtoken_length: int | None = option(
        f'subtokens stay shorter than this many characters, {positive} (default: 200)',
        subtoken_length,
        'N|none',
        default=200,
        changes_bytes=True,
    )
    reserved_tokens: tuple[str, ...] = option(
        'give X an id of its own, from 2 on, which prefixes and templates use; may be repeated',
        reserved_token,
        'X',
        default=(),
        name='reserved-token',
        many='repeated',
        changes_bytes=True,
    )
    learner: WantedLearner = option(
        'memory: in this process; beam: on the workers; auto: in memory where it fits '
        '(default: auto)',
        get_args(WantedLearner),
        default='auto',
    )

    def __post_init__(self):
        if len(set(self.reserved_tokens)) != len(self.reserved_tokens):
            raise InputError('--reserved-token names one token twice')

    def is_beyond(self, min_count: int) -> bool:
        """Whether a min-count is beyond those that Tensor2Tensor itself tries."""
        return self.search == 't2t' and self.min_count_range is None and min_count > T2T_RANGE[1]

    @property
    def lowest_min_count(self) -> int:
        """The lowest min-count of a search: Tensor2Tensor's path may leave the range by one."""
        return max(1, self.min_count_range[0] - 1) if self.min_count_range else 1


@dataclass(frozen=True)
class SubwordScheme(Scheme['SubwordTextEncoder', SubwordOptions, EncodingOptions]):
    """Subwords of the min-count that comes closest to the size, after `<pad>` and `<EOS>`."""

    name = 'subword'
    file_suffix = 'subwords'
    options = SubwordOptions
    default_template = '$A <EOS>'
    beam_learner = 'pipelines.learning.subword_on_beam:search_on_beam'

    @property
    def unstorable(self) -> str:
        from tokcore.subword.text_encoder import UNSTORABLE

        return UNSTORABLE

    @property
    def rows_have_unstorable(self) -> bool:
        return False  # the normalizer drops it

    @property
    def normalizer(self) -> Normalizer:
        from tokcore.text.normalizers import T2T_LINES

        return T2T_LINES

    @property
    def pre_tokenizer(self) -> T2TPreTokenizer:
        from tokcore.text.t2t import T2TPreTokenizer

        return T2TPreTokenizer()

    def learn(
        self, table: TokenTable, options: SubwordOptions, report: Progress
    ) -> Learned[SubwordTextEncoder]:
        from tokcore.subword.learner import MemoryLearner, largest_count

        learner = MemoryLearner(
            table,
            max_subtoken_length=options.max_subtoken_length,
            reserved_tokens=options.reserved_tokens,
        )
        return search_subwords(learner, largest_count(table), options, report)

    def parse(self, data: bytes, path: str, read: ReadBeside = read_if_there) -> SubwordTextEncoder:
        from tokcore.subword.text_encoder import SubwordTextEncoder, parse_vocabulary

        return SubwordTextEncoder(parse_vocabulary(data, path))

    def recognizes(self, data: bytes) -> bool:
        # Tensor2Tensor writes each subtoken between quotes, and no other tool does.
        data = without_mark(data)
        end = data.find(b'\n')
        first = (data if end < 0 else data[:end]).rstrip(b'\r')
        return len(first) > 2 and first[:1] == first[-1:] and first[:1] in (b"'", b'"')

    def special_tokens_in(self, vocabulary: SubwordTextEncoder, prefix: str) -> Mapping[str, int]:
        from tokcore.subword.text_encoder import reserved_tokens_in

        return reserved_tokens_in(vocabulary.subtokens, prefix)

    def tokens(self, text: str) -> Iterable[str]:
        from tokcore.text.t2t import tokenize

        return tokenize(text)

    def vocabulary_of(self, characters: Sequence[str]) -> SubwordTextEncoder:
        from tokcore.subword.text_encoder import SubwordTextEncoder

        alphabet = sorted(set('<pad>EOS_\\u;0123456789').union(characters))
        return SubwordTextEncoder(['<pad>_', '<EOS>_', *alphabet, f'{alphabet[-1]}_'])


def search_subwords(
    learner: Any, largest_count: int, options: SubwordOptions, report: Progress
) -> Learned[SubwordTextEncoder]:
    """Searches the min-count that comes closest to the size.

    Args:
        learner: builds the vocabulary of a min-count, as `MemoryLearner`.
        largest_count: an upper bound of the counts of substrings.
        options: the size, and the min-counts to be tried.
        report: called after each vocabulary that is built.

    Raises:
        InputError: a size below the alphabet, or an empty range.
    """
    from tokcore.subword.text_encoder import SubwordTextEncoder

    result = search_vocabulary(
        learner.build,
        options.vocab_size,
        strategy=options.search,
        min_count_range=options.min_count_range,
        smallest_size=learner.smallest_size,
        largest_count=largest_count,
        report=report,
    )
    return Learned.by_search(SubwordTextEncoder(result.subtokens), result, learner.smallest_size)


SCHEME = SubwordScheme()
