"""Rows of BERT's rules and WordPiece: single stages on one thread."""

from collections.abc import Iterator

from ..contenders import Row, one_core_row
from ..corpora import CORPORA, ENGLISH, MIXED, SOURCES
from ..inputs import Inputs
from ..scale import Scale

_MODEL = 'peers.hugging_face:train_wordpiece'


def wordpiece_rows(scale: Scale) -> Iterator[Row]:
    """Yields the rows of words counted, text to ids, and a vocabulary from counts."""
    yield _count_row()
    for corpus in CORPORA:
        yield _ids_row(corpus, scale.large_vocabulary)
    yield _learn_row(SOURCES, scale.column_every, scale)
    yield _learn_row(ENGLISH, scale.every, scale)


def _count_row() -> Row:
    return one_core_row(
        f'words/{MIXED}',
        "count words by BERT's rules for the second time",
        MIXED,
        ('stages.wordpieces:count', lambda inputs: {'text': inputs.text}),
        {'BasicTokenizer + Counter': ('peers.scripts:count_words', 40)},
        patience='once',
    )


def _ids_row(corpus: str, size: int) -> Row:
    def options(inputs: Inputs) -> dict:
        return {'text': inputs.text, 'model': inputs.model(_MODEL, size)}

    return one_core_row(
        f'wordpiece-ids/{corpus}',
        f'text to ids by a WordPiece vocabulary of {size:,} entries',
        corpus,
        ('stages.wordpieces:encode', options),
        {
            'nanotoken': ('peers.encoders:nanotoken', 1.0, {'parallel': False}),
            'tokenizers WordPiece': ('peers.hugging_face:encode', 24),
        },
    )


def _learn_row(corpus: str, every: int, scale: Scale) -> Row:
    size = scale.small_vocabulary

    def options(inputs: Inputs) -> dict:
        return {'counts': inputs.word_counts(every), 'vocabulary_size': size}

    part = f', each {every}th word' if every > 1 else ''
    return one_core_row(
        f'pieces/{corpus}',
        f'WordPiece vocabulary of {size:,} entries from counts of words{part}',
        corpus,
        ('stages.wordpieces:learn', options),
        {'TensorFlow Text': ('peers.tensorflow_tools:learn', 100)},
        patience='once',
    )
