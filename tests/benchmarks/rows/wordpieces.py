"""Rows of BERT's rules and WordPiece, stages alone, one thread."""

from collections.abc import Iterator

from ..contenders import DEFAULT_RUNS, OURS, Contender, Row
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
    def options(inputs: Inputs) -> dict:
        return {'text': inputs.text}

    peer = Contender('BasicTokenizer + Counter', 'peers.basic_tokenizer:count', options, cores=1)
    return Row(
        f'words/{MIXED}',
        "count words by BERT's rules for the second time",
        MIXED,
        Contender(OURS, 'stages.wordpieces:count', options, cores=1),
        (peer,),
        {peer.label: 40},
        patience='once',
    )


def _ids_row(corpus: str, size: int) -> Row:
    def options(inputs: Inputs) -> dict:
        return {'text': inputs.text, 'model': inputs.model(_MODEL, size)}

    def nanotoken_options(inputs: Inputs) -> dict:
        return {**options(inputs), 'parallel': False}

    return Row(
        f'wordpiece-ids/{corpus}',
        f'text to ids by a WordPiece vocabulary of {size:,} entries',
        corpus,
        Contender(OURS, 'stages.wordpieces:encode', options, cores=1),
        (
            Contender('nanotoken', 'peers.nano_token:encode', nanotoken_options, cores=1),
            Contender('tokenizers WordPiece', 'peers.hugging_face:encode', options, cores=1),
        ),
        {'nanotoken': 1.0, 'tokenizers WordPiece': 24},
        runs=DEFAULT_RUNS,
    )


def _learn_row(corpus: str, every: int, scale: Scale) -> Row:
    size = scale.small_vocabulary

    def options(inputs: Inputs) -> dict:
        return {'counts': inputs.word_counts(every), 'vocabulary_size': size}

    peer = Contender('TensorFlow Text', 'peers.tensorflow_text:learn', options, cores=1)
    part = f', each {every}th word' if every > 1 else ''
    return Row(
        f'pieces/{corpus}',
        f'WordPiece vocabulary of {size:,} entries from counts of words{part}',
        corpus,
        Contender(OURS, 'stages.wordpieces:learn', options, cores=1),
        (peer,),
        {peer.label: 100},
        patience='once',
    )
