"""A WordPiece vocabulary of one's own text, in one call and in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import numpy as np

from tokcore.corpus.dataset import CorpusFile, Split
from tokcore.corpus.formats.corpus_format import index_ranges, plan_items, read_blocks
from tokcore.corpus.formats.lines import Lines
from tokcore.corpus.formats.work_items import ITEM_BYTES
from tokcore.corpus.storage.compression import compression_of
from tokcore.counts.block_counting import BlockCounter
from tokcore.counts.token_counter import TokenAccumulator
from tokcore.counts.token_table import TokenTable
from tokcore.errors import InputError
from tokcore.regular_files import open_regular
from tokcore.text.sides import Side
from tokcore.wordpiece.learning.wordpiece_options import WordPieceOptions
from tokcore.wordpiece.wordpiece_scheme import WordPieceScheme
from tokcore.wordpiece.wordpiece_vocabulary import SPECIAL_TOKENS, WordPieceVocabulary

_BLOCK_BYTES = 1 << 20
"""Of texts that are counted together: calls hardly cost then."""


def learn_wordpiece_vocabulary(
    texts: Iterable[str] = (),
    *,
    vocab_size: int,
    paths: Iterable[str | os.PathLike] = (),
    special_tokens: Iterable[str] = SPECIAL_TOKENS,
    normalizer: str = 'bert',
    lower_case: bool = True,
    strip_accents: bool | None = None,
    split_cjk: bool = True,
    **learning,
) -> WordPieceVocabulary:
    """Learns what TensorFlow Text's `bert_vocab_from_dataset` does, from BERT's own words.

    Args:
        texts: each may hold several lines.
        vocab_size: pieces to aim for.
        paths: files of lines, UTF-8, plain or gzip; their text is learned from too.
        special_tokens: the first pieces.
        normalizer: 'bert' or 'bert-original', and the next three as `WordPieceTokenizer` has them.
        lower_case: letters become lower case.
        strip_accents: accents are stripped; None: where letters become lower case.
        split_cjk: ideographs are words of their own.
        learning: other fields of `WordPieceOptions`.

    Raises:
        InputError: a text or file is not UTF-8 or cannot be read, or there is no such vocabulary.
    """
    options = WordPieceOptions(
        vocab_size=vocab_size, special_tokens=tuple(special_tokens), **learning
    )
    scheme = WordPieceScheme.of(normalizer, lower_case, strip_accents, split_cjk)
    words = TokenAccumulator()
    for block in _blocks(texts):
        rows = scheme.normalizer.apply(block).side
        words.add_rows(rows.text, rows.starts, rows.ends, scheme.pre_tokenizer)
    in_files = _count_files([os.fspath(path) for path in paths], scheme)
    words.add_tokens(in_files.data, in_files.offsets, in_files.counts)
    return scheme.learn(TokenTable(*words.finish()), options, lambda *_: None).vocabulary


def _blocks(texts: Iterable[str]) -> Iterator[Side]:
    """Yields texts, some together, as rows with a byte between them."""
    if isinstance(texts, str):
        raise TypeError('texts are several strings; put a single one in a list')
    rows: list[bytes] = []
    size = 0
    for number, text in enumerate(texts):
        try:
            rows.append(text.encode())
        except UnicodeEncodeError as error:
            raise InputError(
                f'text {number} has a lone surrogate at character {error.start}, which is no text; '
                'read it with another encoding'
            ) from None
        size += len(rows[-1])
        if size >= _BLOCK_BYTES:
            yield _side(rows)
            rows, size = [], 0
    if rows:
        yield _side(rows)


def _side(rows: list[bytes]) -> Side:
    ends = np.cumsum([len(row) + 1 for row in rows]) - 1
    starts = np.append(0, ends[:-1] + 1)
    return Side(np.frombuffer(b'\n'.join(rows), np.uint8), starts, ends)


def _count_files(paths: list[str], scheme: WordPieceScheme) -> TokenTable:
    files = tuple((_corpus_file(path),) for path in paths)
    split = Split('text', Lines(), files)
    counter = BlockCounter(((0,),), scheme.normalizer, scheme.pre_tokenizer)
    index = [split.format.index(part, open_regular) for part in index_ranges(split, ITEM_BYTES)]
    for item in plan_items(split, index):
        for block in read_blocks(item, open_regular):
            counter.add(block, (split,))
    [table] = counter.finish()
    return table


def _corpus_file(path: str) -> CorpusFile:
    compressed = compression_of(path, open_regular)
    return CorpusFile(path, path, os.stat(path).st_size, compressed)
