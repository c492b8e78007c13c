"""BERT's rules and WordPiece: text to counts, text to ids, counts to a vocabulary."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.token_table import TokenTable
from tokcore.wordpiece.options import WordPieceOptions
from tokcore.wordpiece.scheme import SCHEME, WordPieceScheme
from tokcore.wordpiece.vocabulary import WordPieceVocabulary

from ..outcome import Outcome, Ready, second_time, timed
from .blocks import TextBlock, add_tokens, get_ready, ids_of_blocks, text_blocks
from .counting import counts_facts

_CASED = WordPieceScheme(lower_case=False)
"""The peers' models are trained on cased text."""

_WARM_UP = b'warm 1, cold 2; warmer.\n' * 20


def count_words(blocks: Sequence[TextBlock]) -> TokenTable:
    """Returns the counts of the words of all blocks, lowered and without accents."""
    sums = TokenAccumulator()
    add_tokens(sums, blocks, SCHEME.normalizer, SCHEME.pre_tokenizer)
    return TokenTable(*sums.finish())


def count(ready: Ready, *, text: str) -> Outcome:
    """Counts a text in memory."""
    get_ready(SCHEME)
    blocks = text_blocks(Path(text).read_bytes())
    table, first, seconds = second_time(ready, lambda: count_words(blocks))
    return Outcome(seconds, {**counts_facts(table), 'first_seconds': first})


def encode(ready: Ready, *, text: str, model: str) -> Outcome:
    """Text in memory to ids in memory, by the vocabulary of a tokenizer.json."""
    get_ready(_CASED)
    blocks = text_blocks(Path(text).read_bytes())
    ids_by_piece = json.loads(Path(model).read_bytes())['model']['vocab']
    vocabulary = WordPieceVocabulary(sorted(ids_by_piece, key=ids_by_piece.get))
    encoder = _CASED.encoder(vocabulary)
    encoded = ids_of_blocks(encoder, blocks, _CASED.normalizer)
    ids, seconds = timed(ready, lambda: list(encoded))
    return Outcome(seconds, {'ids': sum(map(len, ids))})


def learn(ready: Ready, *, counts: str, vocabulary_size: int) -> Outcome:
    """Searches a vocabulary of a size, from a table in memory."""
    table = TokenTable.from_bytes(Path(counts).read_bytes())
    _learned(count_words(text_blocks(_WARM_UP)), 50)
    pieces, seconds = timed(ready, lambda: _learned(table, vocabulary_size))
    facts = {'digest': pieces_digest(pieces), 'size': len(pieces), 'distinct': len(table)}
    return Outcome(seconds, facts)


def _learned(table: TokenTable, size: int) -> Sequence[str]:
    options = WordPieceOptions(vocab_size=size)
    return SCHEME.learn(table, options, lambda *_: None).vocabulary.pieces


def pieces_digest(pieces: Sequence[str]) -> str:
    """Returns a digest of pieces in their order."""
    return hashlib.sha256('\n'.join(pieces).encode()).hexdigest()[:16]
