"""Rows of encoding and of TFRecords: single stages."""

from collections.abc import Callable, Iterator

from ..contenders import DEFAULT_RUNS, OURS, Contender, Row, one_core_row
from ..corpora import CORPORA, MIXED
from ..inputs import Inputs
from ..scale import Scale
from .learning import T2T, named_threads

_SHARDS = 10


def encoding_rows(scale: Scale) -> Iterator[Row]:
    """Yields the rows of text to ids, text to records, and ids to records."""
    size, few = scale.large_vocabulary, scale.long_runs
    for threads in (1, 2):
        for corpus in CORPORA:
            yield _ids_row(corpus, size, threads, DEFAULT_RUNS if threads == 1 else few)
        for corpus in CORPORA:
            yield _records_row(corpus, size, threads)
    for corpus in CORPORA:
        yield _frames_row(corpus, size, few)
        yield _shards_row(corpus, size, few)


def _ids_row(corpus: str, size: int, threads: int, runs: int) -> Row:
    bpe, wordpiece = 'peers.hugging_face:train_bpe', 'peers.hugging_face:train_wordpiece'

    def contender(label: str, task: str, model: str, **more: object) -> Contender:
        def options(inputs: Inputs) -> dict:
            return {'text': inputs.text, 'model': inputs.model(model, size), **more}

        return Contender(label, task, options, cores=threads)

    return Row(
        f'ids/{corpus}/{threads}',
        f'text to ids, {size:,} entries, {named_threads(threads)}',
        corpus,
        Contender(OURS, 'stages.encoding:encode', _ours(size, threads), cores=threads),
        (
            contender('nanotoken', 'peers.encoders:nanotoken', wordpiece, parallel=threads > 1),
            contender('gigatoken', 'peers.encoders:gigatoken', bpe, parallel=threads > 1),
            contender(
                'SentencePiece BPE',
                'peers.sentence_piece:encode',
                'peers.sentence_piece:train',
                threads=threads,
            ),
            contender('tokenizers BPE', 'peers.hugging_face:encode', bpe),
            contender('tokenizers WordPiece', 'peers.hugging_face:encode', wordpiece),
        ),
        {
            'nanotoken': 0.9,
            'gigatoken': 0.9,
            'SentencePiece BPE': 4.8,
            'tokenizers BPE': 15,
            'tokenizers WordPiece': 15,
        }
        if threads == 1
        else {},
        runs=runs,
        is_extra=threads > 1 and corpus != MIXED,
    )


def _records_row(corpus: str, size: int, threads: int) -> Row:
    def peer_options(inputs: Inputs) -> dict:
        return {
            'text': inputs.text,
            'vocabulary': inputs.vocabulary(size),
            'output': inputs.output('theirs.tfrecord'),
        }

    t2t = Contender(T2T, 'peers.t2t:write_records', peer_options, cores=1)
    return Row(
        f'records/{corpus}/{threads}',
        f'text to a TFRecord file, {size:,} entries, {named_threads(threads)}',
        corpus,
        Contender(
            OURS,
            'stages.encoding:write_records',
            _ours(size, threads, 'ours.tfrecord'),
            cores=threads,
        ),
        (t2t,) if threads == 1 else (),
        {T2T: 36},
    )


def _frames_row(corpus: str, size: int, runs: int) -> Row:
    def options(inputs: Inputs) -> dict:
        return {'ids': inputs.ids(size), 'output': inputs.output('framed.tfrecord')}

    return one_core_row(
        f'frames/{corpus}',
        'ids to a TFRecord file, one thread',
        corpus,
        ('stages.encoding:frame_ids', options),
        {'tf.train.Example + TFRecordWriter': ('peers.tensorflow_tools:frame_ids', None)},
        runs=runs,
    )


def _shards_row(corpus: str, size: int, runs: int) -> Row:
    def options(inputs: Inputs) -> dict:
        return {'ids': inputs.ids(size), 'shards': _SHARDS, 'output': inputs.output('shards')}

    return Row(
        f'shards/{corpus}',
        f'ids to {_SHARDS} TFRecord shards',
        corpus,
        Contender(OURS, 'stages.encoding:write_shards', options),
        (Contender("Beam's WriteToTFRecord", 'peers.tensorflow_tools:beam_examples', options),),
        runs=runs,
        is_extra=corpus != MIXED,
    )


def _ours(size: int, threads: int, output: str | None = None) -> Callable[[Inputs], dict]:
    def options(inputs: Inputs) -> dict:
        base = {'text': inputs.text, 'vocabulary': inputs.vocabulary(size), 'threads': threads}
        return base if output is None else {**base, 'output': inputs.output(output)}

    return options
