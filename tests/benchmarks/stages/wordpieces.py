"""BERT's rules and WordPiece: text to counts, text to ids, counts to a vocabulary."""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tokcore.corpus.line_rows import text_rows
from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.token_table import TokenTable
from tokcore.wordpiece.options import WordPieceOptions
from tokcore.wordpiece.scheme import SCHEME, WordPieceScheme
from tokcore.wordpiece.vocabulary import WordPieceVocabulary

from ..outcome import Outcome, second_time
from .blocks import TextBlock, get_ready, text_blocks
from .counting import counts_digest

_CASED = WordPieceScheme(lower_case=False)
"""As the peers' models are trained."""

_WARM_UP = b'warm 1, cold 2; warmer.\n' * 20


def count_words(blocks: Sequence[TextBlock]) -> TokenTable:
    """Returns the counts of the words of all blocks, lowered and without accents."""
    sums = TokenAccumulator()
    for block in blocks:
        (side,) = text_rows(block.data, block.offset, SCHEME.normalizer).sides
        sums.add_rows(side.text, side.starts, side.ends, SCHEME.pre_tokenizer)
    return TokenTable(*sums.finish())


def count(ready: Callable[[], None], *, text: str) -> Outcome:
    """Counts a text in memory."""
    get_ready(SCHEME)
    blocks = text_blocks(Path(text).read_bytes())
    ready()
    table, first, seconds = second_time(lambda: count_words(blocks))
    facts = {'digest': counts_digest(table), 'tokens': table.total}
    return Outcome(seconds, {**facts, 'distinct': len(table), 'first_seconds': first})


def encode(ready: Callable[[], None], *, text: str, model: str) -> Outcome:
    """Text in memory to ids in memory, by the vocabulary of a tokenizer.json."""
    get_ready(_CASED)
    blocks = text_blocks(Path(text).read_bytes())
    ids_by_piece = json.loads(Path(model).read_bytes())['model']['vocab']
    vocabulary = WordPieceVocabulary(sorted(ids_by_piece, key=ids_by_piece.get))
    encoder = _CASED.encoder(vocabulary)
    ready()
    started = time.perf_counter()
    rows = (text_rows(block.data, block.offset, _CASED.normalizer) for block in blocks)
    ids = [encoder.encode_side(each.sides[0]).ids for each in rows]
    seconds = time.perf_counter() - started
    return Outcome(seconds, {'ids': sum(map(len, ids))})


def learn(ready: Callable[[], None], *, counts: str, vocabulary_size: int) -> Outcome:
    """Searches a vocabulary of a size, from a table in memory."""
    table = TokenTable.from_bytes(Path(counts).read_bytes())
    _learned(count_words(text_blocks(_WARM_UP)), 50)
    ready()
    started = time.perf_counter()
    pieces = _learned(table, vocabulary_size)
    seconds = time.perf_counter() - started
    facts = {'digest': pieces_digest(pieces), 'size': len(pieces), 'distinct': len(table)}
    return Outcome(seconds, facts)


def _learned(table: TokenTable, size: int) -> Sequence[str]:
    options = WordPieceOptions(vocab_size=size)
    return SCHEME.learn(table, options, lambda *_: None).vocabulary.pieces


def pieces_digest(pieces: Sequence[str]) -> str:
    """Returns a digest of pieces in their order."""
    return hashlib.sha256('\n'.join(pieces).encode()).hexdigest()[:16]
