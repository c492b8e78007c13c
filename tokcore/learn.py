"""Learning a vocabulary from Python: options as keywords, counts of texts and files, the files made."""

from __future__ import annotations

import logging
import os
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tokcore.corpus.contents import refuse
from tokcore.corpus.corpus import CorpusFile, OpenBinary, Split
from tokcore.corpus.declarations import PlainText
from tokcore.corpus.formats import read_blocks
from tokcore.corpus.looks import Looks
from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.tables import (
    COUNT_PARTITIONS,
    BlockCounter,
    concatenate_tables,
    merge_tables,
    partition_table,
    refuse_unstorable,
)
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.encoder import side_of_rows
from tokcore.encoding.last_word import SENTENCE_END, CorpusEnd, with_last_word, work_items
from tokcore.encoding.scheme import Learned, LearningOptions, Scheme, refuse_options
from tokcore.encoding.vocabulary import Vocabulary
from tokcore.errors import InputError
from tokcore.keywords import keyword_fields, split_keywords
from tokcore.regular_files import open_regular
from tokcore.schemes import find_scheme
from tokcore.text.rows import Side

_LOGGER = logging.getLogger(__name__)

_BLOCK_BYTES = 1 << 20
"""Bytes of texts that are counted together, so that a call costs little for each text."""


def learning_of(
    scheme: str | Scheme, options: Mapping[str, object], call: str
) -> tuple[Scheme, LearningOptions]:
    """Returns a scheme and the options of its learner from the keyword arguments of a call.

    Raises:
        InputError: the scheme learns nothing, or options cannot have their values or do not go
            together.
        TypeError: neither has such an option, or it has a value of another type.
    """
    resolved = find_scheme(scheme)
    kind = resolved.options
    if kind is None:
        raise InputError(f'the scheme {resolved.name} learns nothing; leave {call} out')
    refuse_options(resolved, options)
    name = f'{call} with the scheme {resolved.name}'
    of_scheme, of_learner = split_keywords([type(resolved), kind], options, name)
    resolved = find_scheme(resolved, **typing.cast(typing.Any, of_scheme))
    fields = keyword_fields(kind, of_learner, name)
    try:
        learning = kind(**fields)
    except TypeError:
        raise TypeError(f'{name} has no vocab_size; give it') from None
    resolved = resolved.for_learning(learning)
    resolved.check(learning)
    return resolved, learning


def learn_from_table(scheme: Scheme, learning: LearningOptions, table: TokenTable) -> Learned:
    """Learns a vocabulary of counted tokens, in memory; warns if it has not the wanted size.

    Raises:
        InputError: there are no tokens, one cannot be stored in the vocabulary's file, or there is
            no vocabulary of this size.
    """
    if len(table) == 0:
        raise InputError('no token was counted, so there is nothing to learn from; check the texts')
    refuse_unstorable('the table of counts', table.data, table.offsets, scheme.unstorable)
    learned = scheme.learn(table, learning, lambda *_: None)
    size = learned.vocabulary.vocab_size
    # Codes do not hold all that the size counts.
    if scheme.entries_name('vocab') is None and not learning.is_met(size):
        near = ' and '.join(f'{size} at min-count {count}' for count, size in learned.reachable)
        _LOGGER.warning(
            'the vocabulary has %d entries, and vocab_size is %s%s',
            size,
            learning.vocab_size,
            f'; reachable around it are {near}' if near else '',
        )
    return learned


def vocabulary_files(
    vocabulary: Vocabulary, scheme: Scheme, table: TokenTable, name: str
) -> dict[str, bytes]:
    """Returns the files of a vocabulary by their names: its own, and that of ids if it holds none."""
    files = {name: vocabulary.dump()}
    if (entries := scheme.entries_name(name)) is not None:
        files[entries] = scheme.entries(vocabulary, table)
    return files


def count_tokens(
    scheme: Scheme, texts: Iterable[str] = (), paths: Iterable[str | os.PathLike] = ()
) -> TokenTable:
    """Returns the tokens of texts, and of the lines of text files, as `tokbeam count` has them.

    Raises:
        InputError: a text or file is not UTF-8 or cannot be read.
    """
    words = TokenAccumulator()
    ends: list[bytes] = []
    empty = 0
    pre_tokenizer: Any = scheme.pre_tokenizer
    for block in _blocks(texts):
        rows = scheme.counting_normalizer.apply(block).side
        words.add_rows(rows.text, rows.starts, rows.ends, pre_tokenizer)
        if scheme.counts_last_word:
            tokens = pre_tokenizer.last_tokens(rows, len(rows))
            empty += tokens.count(SENTENCE_END.encode())
            # Texts that follow add at least as many sentences as empty ones.
            ends = [*ends, *tokens][-1 - empty :]
    in_files, end = count_files([os.fspath(path) for path in paths], scheme)
    table = merge_tables([TokenTable(*words.finish()), in_files])
    parts = [part.sorted() for _, part in partition_table(table, COUNT_PARTITIONS)]
    table = concatenate_tables(parts) if parts else table
    if scheme.counts_last_word:
        table = with_last_word(table, end, (0,), ends)
    return table


def _blocks(texts: Iterable[str]) -> Iterator[Side]:
    """Yields texts as rows, several together with a byte between them."""
    if isinstance(texts, str):
        raise TypeError('texts are several strings; put a single one in a list')
    rows: list[bytes] = []
    size = 0
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f'text {number} is of type {type(text).__name__}; give strings')
        try:
            rows.append(text.encode())
        except UnicodeEncodeError as error:
            raise InputError(
                f'text {number} has a lone surrogate at character {error.start}, which is not text; '
                'read it with another encoding'
            ) from None
        size += len(rows[-1])
        if size >= _BLOCK_BYTES:
            yield side_of_rows(rows)
            rows, size = [], 0
    if rows:
        yield side_of_rows(rows)


def count_files(
    paths: list[str], scheme: Scheme, open_binary: OpenBinary = open_regular
) -> tuple[TokenTable, CorpusEnd]:
    """Returns the tokens of the lines of text files, in any order, and the end of the files.

    Raises:
        InputError: one is not UTF-8 or cannot be read.
    """
    looks = Looks(open_binary)
    files = []
    for path in paths:
        seen = looks.at(path)
        refuse(path, seen)
        with open_binary(path) as stream:
            size = stream.seek(0, os.SEEK_END)
        files.append((CorpusFile(path, path, size, seen.compression),))
    split = Split('text', PlainText(), tuple(files))
    counter = BlockCounter(
        ((0,),), scheme.counting_normalizer, scheme.pre_tokenizer, row_check=scheme.row_check
    )
    items = work_items([split], open_binary)
    for item in items:
        for block in read_blocks(item, open_binary):
            counter.add(block, (split,))
    [table] = counter.finish()
    return table, CorpusEnd(scheme, (split,), open_binary, items)
