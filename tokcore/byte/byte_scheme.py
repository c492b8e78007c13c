"""Bytes as a scheme: nothing is learned, and there is no vocabulary file."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokcore.byte.byte_vocabulary import ByteVocabulary
from tokcore.encoding.scheme import Learned, Scheme
from tokcore.encoding.scheme_options import LearningOptions
from tokcore.encoding.special_ids import ReadBeside, read_if_there
from tokcore.errors import InputError
from tokcore.learning.size_search import Report

if typing.TYPE_CHECKING:
    from tokcore.byte.byte_model import BytePreTokenizer
    from tokcore.counts.token_table import TokenTable
    from tokcore.text.normalizer import Normalizer

_VOCABULARY = ByteVocabulary()


@dataclass(frozen=True)
class ByteScheme(Scheme):
    """Tensor2Tensor's `ByteTextEncoder`: lines as it strips them, a byte and 2 as its id."""

    name = 'byte'
    file_suffix = 'bytes'
    options = None
    default_template = '$A <EOS>'

    @property
    def normalizer(self) -> Normalizer:
        from tokcore.text.t2t_lines import T2T_LINES

        return T2T_LINES

    @property
    def pre_tokenizer(self) -> BytePreTokenizer:
        from tokcore.byte.byte_model import BytePreTokenizer

        return BytePreTokenizer()

    @property
    def fixed(self) -> ByteVocabulary:
        return _VOCABULARY

    def learn(self, table: TokenTable, options: LearningOptions, report: Report) -> Learned:
        return Learned(_VOCABULARY)

    def parse(
        self, data: bytes, path: str, read: ReadBeside = read_if_there
    ) -> ByteVocabulary:
        raise InputError(
            f'{path} is no vocabulary of --scheme byte: it has no files; leave --vocab out'
        )

    def tokens(self, text: str) -> Iterable[str]:
        from tokcore.byte.byte_kernels import SLICE_BYTES

        data = text.encode('utf-8', 'surrogatepass')
        return [
            data[place : place + SLICE_BYTES].decode('latin-1')
            for place in range(0, len(data), SLICE_BYTES)
        ]

    def vocabulary_of(self, characters: Sequence[str]) -> ByteVocabulary:
        return _VOCABULARY


SCHEME = ByteScheme()
