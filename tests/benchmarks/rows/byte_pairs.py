"""Rows of byte pair encoding, stages alone, one thread."""

from collections.abc import Iterator

from ..contenders import DEFAULT_RUNS, OURS, Contender, Row
from ..corpora import CORPORA, ENGLISH
from ..inputs import Inputs
from ..peers.tokenizers_rc import REQUIREMENT
from ..scale import Scale

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
    def options(inputs: Inputs) -> dict:
        return {'text': inputs.text, 'vocabulary_size': size}

    def giga_options(inputs: Inputs) -> dict:
        return {**options(inputs), 'threads': 1}

    return Row(
        f'merges/{corpus}',
        f'count and learn byte-level BPE of {size:,} entries from a file',
        corpus,
        Contender(OURS, 'stages.byte_pairs:learn', options, cores=1),
        (
            Contender('gigabpe', 'peers.giga_bpe:learn', giga_options, cores=1),
            Contender('rustbpe', 'peers.rust_bpe:learn', options, cores=1),
            Contender('tokenizers BPE', 'peers.hugging_face:learn_bpe', options, cores=1),
        ),
        {'gigabpe': 0.8, 'rustbpe': 3, 'tokenizers BPE': 6},
        runs=DEFAULT_RUNS,
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
        (Contender('subword-nmt', 'peers.subword_nmt:learn', options, cores=1),),
        {'subword-nmt': 50},
        patience='once',
    )


def _ids_row(corpus: str, size: int) -> Row:
    def options(inputs: Inputs) -> dict:
        return {'text': inputs.text, 'model': inputs.model(_MODEL, size)}

    def giga_options(inputs: Inputs) -> dict:
        return {**options(inputs), 'parallel': False}

    def candidate_options(inputs: Inputs) -> dict:
        return {**options(inputs), 'packages': inputs.packages(REQUIREMENT)}

    return Row(
        f'bpe-ids/{corpus}',
        f'text to ids by byte-level BPE of {size:,} entries',
        corpus,
        Contender(OURS, 'stages.byte_pairs:encode', options, cores=1),
        (
            Contender('gigatoken', 'peers.giga_token:encode', giga_options, cores=1),
            Contender(
                'tokenizers 1.0rc3', 'peers.tokenizers_rc:encode', candidate_options, cores=1
            ),
            Contender('tokenizers BPE', 'peers.hugging_face:encode', options, cores=1),
            Contender('tiktoken', 'peers.tik_token:encode', options, cores=1),
        ),
        {'gigatoken': 0.95, 'tokenizers 1.0rc3': 1, 'tokenizers BPE': 12, 'tiktoken': 3},
        runs=DEFAULT_RUNS,
    )


def _unbroken_row(documents: int, size: int) -> Row:
    def options(inputs: Inputs) -> dict:
        return {'documents': documents, 'model': inputs.model(_MODEL, size)}

    return Row(
        f'sizes/unbroken/{documents}MB',
        f'{documents} documents of a million letters without a blank to ids',
        ENGLISH,
        Contender(OURS, 'stages.byte_pairs:encode_unbroken', options, cores=1),
        runs=1,
        size=documents,
        is_extra=True,
    )
