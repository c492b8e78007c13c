"""Rows of text to ids by the files of trained models, on one thread.

A file that the tests have not fetched (`pytest -m files`) is reported as missing. Contenders agree if
they have the same number of ids.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tests.tokenizer_files import RANKS, SENTENCEPIECE, TOKENIZER_JSON, Place

from ..contenders import OURS, Contender, Row
from ..corpora import CORPORA
from ..inputs import Inputs
from ..scale import Scale
from .byte_pairs import CANDIDATE, candidate_packages

_UNIGRAM = 'peers.sentence_piece:train_unigram'


class _Model(NamedTuple):
    """The files of a model.

    Attributes:
        json: its tokenizer.json, or a SentencePiece model that is converted to one.
        ranks: the name of its file of ranks, which tiktoken reads.
        of_ranks: whether tokbeam and gigatoken read the ranks too.
    """

    json: Place
    ranks: str | None = None
    of_ranks: bool = False


_MODELS = {
    'cl100k': _Model(TOKENIZER_JSON['gpt35turbo'], 'cl100k', True),
    'o200k': _Model(TOKENIZER_JSON['gpt4o'], 'o200k', True),
    'llama3': _Model(TOKENIZER_JSON['llama3'], 'llama3'),
    # tiktoken does not normalize, and this file asks for NFC.
    'qwen3': _Model(TOKENIZER_JSON['qwen3']),
    'gemma3': _Model(TOKENIZER_JSON['gemma3']),
    'deepseek_v3': _Model(TOKENIZER_JSON['deepseek_v3']),
    'mistral': _Model(SENTENCEPIECE['mistral-v1']),
}


def model_rows(scale: Scale) -> Iterator[Row]:
    """Yields a row of each model and corpus, and rows of Unigram."""
    for name, model in _MODELS.items():
        for corpus in CORPORA:
            yield _ids_row(name, model, corpus)
    for corpus in CORPORA:
        yield _unigram_row(corpus, scale.large_vocabulary)


def _ids_row(name: str, model: _Model, corpus: str) -> Row:
    def json_file(inputs: Inputs) -> dict:
        materials = inputs.materials
        is_sentencepiece = model.json in SENTENCEPIECE.values()
        file = (materials.converted if is_sentencepiece else materials.tokenizer_file)(model.json)
        return {'text': inputs.text, 'model': str(file)}

    def ranks(inputs: Inputs) -> dict:
        place, pattern = RANKS[model.ranks]
        file = inputs.materials.tokenizer_file(place)
        return {'text': inputs.text, 'file': str(file), 'pattern': pattern}

    def our_options(inputs: Inputs) -> dict:
        return ranks(inputs) if model.of_ranks else _as_file(json_file(inputs))

    def giga_options(inputs: Inputs) -> dict:
        return ranks(inputs) if model.of_ranks else {**json_file(inputs), 'parallel': False}

    def candidate(inputs: Inputs) -> dict:
        return {**json_file(inputs), 'packages': candidate_packages(inputs)}

    giga_task = 'peers.encoders:gigatoken' + ('_ranks' if model.of_ranks else '')
    peers = [
        Contender('gigatoken', giga_task, giga_options, cores=1),
        Contender(CANDIDATE, 'peers.hugging_face:encode', candidate, cores=1),
    ]
    if model.ranks is not None:
        peers.append(Contender('tiktoken', 'peers.encoders:tiktoken_ranks', ranks, cores=1))
    return Row(
        f'model-ids/{name}/{corpus}',
        f"text to ids by {name}'s file",
        corpus,
        Contender(OURS, 'stages.pretrained:encode', our_options, cores=1),
        tuple(peers),
        {'gigatoken': 0.6, CANDIDATE: 1, 'tiktoken': 1},
    )


def _as_file(options: dict) -> dict:
    return {'text': options['text'], 'file': options['model']}


def _unigram_row(corpus: str, size: int) -> Row:
    def options(inputs: Inputs) -> dict:
        return {'text': inputs.text, 'model': inputs.model(_UNIGRAM, size)}

    peer = 'SentencePiece Unigram'
    return Row(
        f'unigram-ids/{corpus}',
        f'text to ids by a Unigram model of SentencePiece of {size:,} entries',
        corpus,
        Contender(OURS, 'stages.pretrained:encode', lambda inputs: _as_file(options(inputs)), 1),
        (
            Contender(
                peer,
                'peers.sentence_piece:encode',
                lambda inputs: {**options(inputs), 'threads': 1},
                1,
            ),
        ),
        {peer: 4},
    )
