"""Rows of text to ids by the files of trained models, stages alone, one thread.

A file that the tests have not fetched (`pytest -m files`) is reported as missing. Contenders agree if
they make as many ids.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.tokenizer_files import RANKS, SENTENCEPIECE, TOKENIZER_JSON, Place

from ..contenders import DEFAULT_RUNS, OURS, Contender, Row
from ..corpora import CORPORA
from ..inputs import Inputs
from ..peers.tokenizers_rc import REQUIREMENT
from ..scale import Scale

_UNIGRAM = 'peers.sentence_piece:train_unigram'


class _Model(NamedTuple):
    """The files of a model.

    Attributes:
        json: its tokenizer.json; a SentencePiece model of which one is made.
        ranks: the name of its file of ranks, which tiktoken reads.
        of_ranks: whether ours and gigatoken read that too.
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
    def json(inputs: Inputs) -> dict:
        make = inputs.converted if model.json in SENTENCEPIECE.values() else inputs.tokenizer_file
        return {'text': inputs.text, 'model': make(model.json)}

    def candidate(inputs: Inputs) -> dict:
        return {**json(inputs), 'packages': inputs.packages(REQUIREMENT)}

    ours, giga = _our_options(json), _giga_options(json)
    peers = [Contender('tokenizers 1.0rc3', 'peers.tokenizers_rc:encode', candidate, cores=1)]
    if model.ranks is not None:
        ranks = _ranks_options(model.ranks)
        peers.append(Contender('tiktoken', 'peers.tik_token:encode_ranks', ranks, cores=1))
        if model.of_ranks:
            ours, giga = ranks, ranks
    giga_task = 'peers.giga_token:' + ('encode_ranks' if model.of_ranks else 'encode')
    return Row(
        f'model-ids/{name}/{corpus}',
        f"text to ids by {name}'s file",
        corpus,
        Contender(OURS, 'stages.pretrained:encode', ours, cores=1),
        (Contender('gigatoken', giga_task, giga, cores=1), *peers),
        {'gigatoken': 0.6, 'tokenizers 1.0rc3': 1, 'tiktoken': 1},
        runs=DEFAULT_RUNS,
    )


_Options = Callable[[Inputs], dict]


def _our_options(json: _Options) -> _Options:
    def options(inputs: Inputs) -> dict:
        given = json(inputs)
        return {'text': given['text'], 'file': given['model']}

    return options


def _giga_options(json: _Options) -> _Options:
    return lambda inputs: {**json(inputs), 'parallel': False}


def _ranks_options(name: str) -> _Options:
    place, pattern = RANKS[name]

    def options(inputs: Inputs) -> dict:
        return {'text': inputs.text, 'file': inputs.tokenizer_file(place), 'pattern': pattern}

    return options


def _unigram_row(corpus: str, size: int) -> Row:
    def options(inputs: Inputs) -> dict:
        return {'text': inputs.text, 'model': inputs.model(_UNIGRAM, size)}

    return Row(
        f'unigram-ids/{corpus}',
        f'text to ids by a Unigram model of SentencePiece of {size:,} entries',
        corpus,
        Contender(OURS, 'stages.pretrained:encode', _our_options(options), cores=1),
        (
            Contender(
                'SentencePiece Unigram',
                'peers.sentence_piece:encode',
                lambda inputs: {**options(inputs), 'threads': 1},
                cores=1,
            ),
        ),
        {'SentencePiece Unigram': 4},
        runs=DEFAULT_RUNS,
    )
