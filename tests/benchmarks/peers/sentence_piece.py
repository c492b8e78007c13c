"""SentencePiece: byte pair encoding and Unigram, trained and applied."""

import tempfile
from pathlib import Path

import sentencepiece

from ..outcome import Outcome, Ready, timed

_BATCH_LINES = 10_000


def learn(ready: Ready, *, text: str, vocabulary_size: int, threads: int) -> Outcome:
    """Trains on a file."""
    with tempfile.TemporaryDirectory() as folder:
        _, seconds = timed(ready, lambda: _train(text, vocabulary_size, f'{folder}/model', threads))
    return Outcome(seconds, {'size': vocabulary_size})


def train(ready: Ready, *, text: str, vocabulary_size: int, model: str) -> Outcome:
    """Makes a model file."""
    return _made(ready, text, vocabulary_size, model, 'bpe')


def train_unigram(ready: Ready, *, text: str, vocabulary_size: int, model: str) -> Outcome:
    """Makes a model file of Unigram, with the normalizer that it has by default."""
    return _made(ready, text, vocabulary_size, model, 'unigram')


def _made(ready: Ready, text: str, vocabulary_size: int, model: str, kind: str) -> Outcome:
    _, seconds = timed(ready, lambda: _train(text, vocabulary_size, model, 2, kind))
    Path(f'{model}.model').rename(model)
    Path(f'{model}.vocab').unlink()
    return Outcome(seconds)


def encode(ready: Ready, *, text: str, model: str, threads: int) -> Outcome:
    """Lines in memory to ids."""
    processor = sentencepiece.SentencePieceProcessor(model_file=model)
    lines = Path(text).read_text(encoding='utf-8').split('\n')
    batches = [lines[start : start + _BATCH_LINES] for start in range(0, len(lines), _BATCH_LINES)]
    ids, seconds = timed(
        ready,
        lambda: sum(
            sum(map(len, processor.encode(batch, out_type=int, num_threads=threads)))
            for batch in batches
        ),
    )
    return Outcome(seconds, {'ids': ids, 'digest': ids})


def _train(text: str, size: int, prefix: str, threads: int, kind: str = 'bpe') -> None:
    sentencepiece.SentencePieceTrainer.train(
        input=text,
        model_prefix=prefix,
        model_type=kind,
        vocab_size=size,
        num_threads=threads,
        character_coverage=0.9995,  # its own advice for Chinese
        max_sentence_length=1 << 20,  # by default it leaves lines over 4,192 bytes out
        minloglevel=2,
    )
