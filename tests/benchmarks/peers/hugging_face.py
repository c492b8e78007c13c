"""Hugging Face tokenizers: byte-level BPE and BERT's WordPiece, trained and applied.

Only versions below 1.0 train; both encode. Each function imports what it needs.
"""

from __future__ import annotations

import functools
import importlib.metadata
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer, trainers

from ..outcome import Outcome, Ready, timed

_BATCH_LINES = 10_000  # a list of all encodings at once would take some 50 times the text


def learn_bpe(ready: Ready, *, text: str, vocabulary_size: int) -> Outcome:
    """Trains byte-level BPE on a file."""
    return _learn(ready, *_bpe(vocabulary_size), text)


def learn_wordpiece(ready: Ready, *, text: str, vocabulary_size: int) -> Outcome:
    """Trains WordPiece with BERT's rules, cased, on a file."""
    return _learn(ready, *_wordpiece(vocabulary_size), text)


def train_bpe(ready: Ready, *, text: str, vocabulary_size: int, model: str) -> Outcome:
    """Makes a tokenizer.json of byte-level BPE."""
    return _train(ready, *_bpe(vocabulary_size), text, model)


def train_wordpiece(ready: Ready, *, text: str, vocabulary_size: int, model: str) -> Outcome:
    """Makes a tokenizer.json of WordPiece."""
    return _train(ready, *_wordpiece(vocabulary_size), text, model)


def open_tokenizer(model: str) -> tuple[Callable[[str], Any], Callable[[Sequence[str]], Any]]:
    """Returns the fastest calls that encode a text and a batch, without special tokens around texts."""
    from tokenizers import Tokenizer

    tokenizer: Any = Tokenizer.from_file(model)
    if hasattr(tokenizer, 'compile'):  # from 1.0.0rc4 on, only a compiled one encodes
        tokenizer = tokenizer.compile()
    plain = functools.partial(tokenizer.encode, add_special_tokens=False)
    if not hasattr(tokenizer, 'encode_batch_fast'):
        return plain, functools.partial(tokenizer.encode_batch, add_special_tokens=False)
    # Before 1.0, the others find offsets too.
    batch = functools.partial(tokenizer.encode_batch_fast, add_special_tokens=False)
    return lambda text: batch([text])[0], batch


def encode(ready: Ready, *, text: str, model: str, packages: str | None = None) -> Outcome:
    """Lines in memory to ids; `packages` has another version than the one installed."""
    if packages:
        sys.path.insert(0, packages)
    _, encode_batch = open_tokenizer(model)
    lines = Path(text).read_text(encoding='utf-8').split('\n')
    batches = [lines[start : start + _BATCH_LINES] for start in range(0, len(lines), _BATCH_LINES)]
    ids, seconds = timed(
        ready,
        lambda: sum(sum(map(len, encode_batch(batch))) for batch in batches),
    )
    version = importlib.metadata.version('tokenizers')
    return Outcome(seconds, {'ids': ids, 'digest': ids, 'version': version})


def _bpe(size: int) -> tuple[Tokenizer, trainers.Trainer]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=['<|endoftext|>'],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    return tokenizer, trainer


def _wordpiece(size: int) -> tuple[Tokenizer, trainers.Trainer]:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token='[UNK]'))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, show_progress=False, special_tokens=['[UNK]']
    )
    return tokenizer, trainer


def _learn(ready: Ready, tokenizer: Tokenizer, trainer: trainers.Trainer, text: str) -> Outcome:
    _, seconds = timed(ready, lambda: tokenizer.train([text], trainer))
    return Outcome(seconds, {'size': tokenizer.get_vocab_size()})


def _train(
    ready: Ready, tokenizer: Tokenizer, trainer: trainers.Trainer, text: str, model: str
) -> Outcome:
    outcome = _learn(ready, tokenizer, trainer, text)
    tokenizer.save(model)
    return outcome
