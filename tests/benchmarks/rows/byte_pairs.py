"""Rows of byte pair encoding: single stages on one thread."""

from collections.abc import Iterator

from ..contenders import OURS, Contender, Row, one_core_row
from ..corpora import CORPORA, ENGLISH
from ..inputs import Inputs
from ..scale import Scale

CANDIDATE = 'tokenizers 1.0'
CANDIDATES = 'tokenizers>=1.0.0rc3,<2'

_MODEL = 'peers.hugging_face:train_bpe'


def byte_pair_rows(scale: Scale) -> Iterator[Row]:
    """Yields the rows of merges learned from files, and of text to ids."""
    for corpus in CORPORA:
        yield _learn_row(corpus, scale.large_vocabulary)
    yield _codes_row(scale.codes_bytes, scale.codes_merges)
    for corpus in CORPORA:
        yield _ids_row(corpus, scale.large_vocabulary)
    for documents in scale.plotted_documents:
        yield _unbroken_row(documents, scale.large_vocabulary)


def _learn_row(corpus: str, size: int) -> Row:
    return one_core_row(
        f'merges/{corpus}',
        f'count and learn byte-level BPE of {size:,} entries from a file',
        corpus,
        ('stages.byte_pairs:learn', lambda inputs: {'text': inputs.text, 'vocabulary_size': size}),
        {
            'gigabpe': ('peers.trainers:gigabpe', 0.8, {'threads': 1}),
            'rustbpe': ('peers.trainers:rustbpe', 3),
            'tokenizers BPE': ('peers.hugging_face:learn_bpe', 6),
        },
    )


def _codes_row(size: int, merges: int) -> Row:
    def options(inputs: Inputs) -> dict:
        return {'text': inputs.beginning(size), 'vocabulary_size': merges}

    def our_options(inputs: Inputs) -> dict:
        return {**options(inputs), 'preset': 'subword-nmt'}

    return Row(
        f'codes/{ENGLISH}',
        f'{merges:,} codes of subword-nmt from {size / 1e6:g} MB of lines',
        ENGLISH,
        Contender(OURS, 'stages.byte_pairs:learn', our_options, cores=1),
        (Contender('subword-nmt', 'peers.trainers:subword_nmt', options, cores=1),),
        {'subword-nmt': 50},
        patience='once',
    )


def _ids_row(corpus: str, size: int) -> Row:
    def options(inputs: Inputs) -> dict:
        return {'text': inputs.text, 'model': inputs.model(_MODEL, size)}

    return one_core_row(
        f'bpe-ids/{corpus}',
        f'text to ids by byte-level BPE of {size:,} entries',
        corpus,
        ('stages.byte_pairs:encode', options),
        {
            'gigatoken': ('peers.encoders:gigatoken', 0.95, {'parallel': False}),
            CANDIDATE: ('peers.hugging_face:encode', 1, {'packages': candidate_packages}),
            'tokenizers BPE': ('peers.hugging_face:encode', 12),
            'tiktoken': ('peers.encoders:tiktoken', 3),
        },
    )


def candidate_packages(inputs: Inputs) -> str:
    """Returns the folder with the newest release candidate of tokenizers 1.0."""
    return str(inputs.materials.packages(CANDIDATES))


def _unbroken_row(documents: int, size: int) -> Row:
    def options(inputs: Inputs) -> dict:
        return {'documents': documents, 'model': inputs.model(_MODEL, size)}

    return one_core_row(
        f'sizes/unbroken/{documents}MB',
        f'{documents} documents of a million letters without a blank to ids',
        ENGLISH,
        ('stages.byte_pairs:encode_unbroken', options),
        {},
        runs=1,
        size=documents,
        is_extra=True,
    )
