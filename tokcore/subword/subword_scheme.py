"""Tensor2Tensor's subwords as a scheme: lines stripped, tokens by its rule, `<EOS>` behind a row."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokcore.encoding.scheme import Learned, Scheme
from tokcore.encoding.special_ids import ReadBeside, read_if_there
from tokcore.learning.size_search import Report
from tokcore.subword.subword_options import SubwordOptions

if typing.TYPE_CHECKING:
    from tokcore.counts.token_table import TokenTable
    from tokcore.subword.text_encoder import SubwordTextEncoder
    from tokcore.text.normalizer import Normalizer
    from tokcore.text.t2t_pre_tokenizer import T2TPreTokenizer


@dataclass(frozen=True)
class SubwordScheme(Scheme):
    """`<pad>` and `<EOS>` first, then what a search for a min-count has found."""

    name = 'subword'
    file_suffix = 'subwords'
    options = SubwordOptions
    default_template = '$A <EOS>'
    beam_learner = 'pipelines.learning.subword_search:search_on_beam'

    @property
    def unstorable(self) -> str:
        from tokcore.subword.vocabulary_file import UNSTORABLE

        return UNSTORABLE

    @property
    def rows_have_unstorable(self) -> bool:
        return False  # the normalizer drops it

    @property
    def normalizer(self) -> Normalizer:
        from tokcore.text.t2t_lines import T2T_LINES

        return T2T_LINES

    @property
    def pre_tokenizer(self) -> T2TPreTokenizer:
        from tokcore.text.t2t_pre_tokenizer import T2TPreTokenizer

        return T2TPreTokenizer()

    def learn(self, table: TokenTable, options: SubwordOptions, report: Report) -> Learned:
        from tokcore.subword.learner import MemoryLearner
        from tokcore.subword.subword_search import largest_count, search_subwords

        learner = MemoryLearner(
            table,
            max_subtoken_length=options.max_subtoken_length,
            reserved_tokens=options.reserved_tokens,
        )
        return search_subwords(learner, largest_count(table), options, report)

    def parse(
        self, data: bytes, path: str, read: ReadBeside = read_if_there
    ) -> SubwordTextEncoder:
        from tokcore.subword.text_encoder import SubwordTextEncoder
        from tokcore.subword.vocabulary_file import parse_vocabulary

        return SubwordTextEncoder(parse_vocabulary(data, path))

    def recognizes(self, data: bytes) -> bool:
        # Tensor2Tensor writes each subtoken between quotes, and no other tool does.
        first = data.split(b'\n', 1)[0].rstrip(b'\r')
        return len(first) > 2 and first[:1] == first[-1:] and first[:1] in (b"'", b'"')

    def tokens(self, text: str) -> Iterable[str]:
        from tokcore.text.t2t_tokens import tokenize

        return tokenize(text)

    def vocabulary_of(self, characters: Sequence[str]) -> SubwordTextEncoder:
        from tokcore.subword.text_encoder import SubwordTextEncoder

        alphabet = sorted(set('<pad>EOS_\\u;0123456789').union(characters))
        return SubwordTextEncoder(['<pad>_', '<EOS>_', *alphabet, f'{alphabet[-1]}_'])


SCHEME = SubwordScheme()
