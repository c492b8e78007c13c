"""Rows of counting and learning: single stages."""

from collections.abc import Iterator
from pathlib import Path

from ..contenders import DEFAULT_RUNS, OURS, Contender, Row, one_core_row
from ..corpora import CHINESE, CORPORA, ENGLISH, MIXED, SOURCES, TARGETS
from ..inputs import Inputs
from ..scale import Scale

T2T = 'Tensor2Tensor'


def learning_rows(scale: Scale) -> Iterator[Row]:
    """Yields the rows of counting, of searches from counts, and of both together."""
    yield from _search_rows(scale)
    yield from _count_rows()
    for threads in (1, 2):
        for corpus in CORPORA:
            yield _learn_row(corpus, threads, scale)
    yield _wordpiece_row(scale)


def _search_rows(scale: Scale) -> Iterator[Row]:
    small, large = scale.small_vocabulary, scale.large_vocabulary
    tables = [
        (SOURCES, scale.column_every, (small, large), 100),
        (TARGETS, scale.column_every, (small, large), 100),
        (ENGLISH, scale.every, (small, large), 100),
        (CHINESE, scale.every, (scale.chinese_vocabulary, large), 60),
    ]
    for number in range(2):  # the sizes of a table are not measured at one time: see `_BuiltOnce`
        for corpus, every, sizes, target in tables:
            size = sizes[number]

            def options(inputs: Inputs, every: int = every, size: int = size) -> dict:
                return {
                    'counts': inputs.counts(every),
                    'vocabulary_size': inputs.reachable_target(every, size),
                }

            def builds(inputs: Inputs, every: int = every) -> str:
                return str(inputs.materials.new_folder(Path(inputs.counts(every)).stem))

            part = f', each {every}th token' if every > 1 else ''
            yield one_core_row(
                f'search/{corpus}/{size}',
                f'whole search from counts, {size:,} entries{part}',
                corpus,
                ('stages.counting:search_counts', options),
                {T2T: ('peers.t2t:search_counts', target, {'builds': builds})},
                patience='once',
            )


def _count_rows() -> Iterator[Row]:
    regex = Contender(
        're.findall + Counter',
        'peers.scripts:count',
        lambda inputs: {'text': inputs.text},
        cores=1,
    )
    for threads in (1, 2):
        for corpus in CORPORA:
            yield Row(
                f'count/{corpus}/{threads}',
                f'count tokens for the second time, {named_threads(threads)}',
                corpus,
                Contender(
                    OURS,
                    'stages.counting:count',
                    lambda inputs, threads=threads: {'text': inputs.text, 'threads': threads},
                    cores=threads,
                ),
                (regex,) if threads == 1 else (),
                {regex.label: 0.6 * 12},
            )


def _learn_row(corpus: str, threads: int, scale: Scale) -> Row:
    size = scale.large_vocabulary
    # Without spaces, BPE learners have other units than tokbeam: their ratios have no target.
    has_targets = threads == 1 and corpus != CHINESE

    def contender(label: str, task: str, takes_threads: bool) -> Contender:
        def options(inputs: Inputs) -> dict:
            base = {'text': inputs.text, 'vocabulary_size': size}
            return {**base, 'threads': threads} if takes_threads else base

        return Contender(label, task, options, cores=threads)

    targets = {'gigabpe': 0.57, 'SentencePiece BPE': 3.6, 'tokenizers BPE': 9.0}
    return Row(
        f'learn/{corpus}/{threads}',
        f'count and learn {size:,} entries from a file, {named_threads(threads)}',
        corpus,
        contender(OURS, 'stages.counting:learn', True),
        (
            contender('gigabpe', 'peers.trainers:gigabpe', True),
            contender('rustbpe', 'peers.trainers:rustbpe', False),
            contender('SentencePiece BPE', 'peers.sentence_piece:learn', True),
            contender('tokenizers BPE', 'peers.hugging_face:learn_bpe', False),
            contender('tokenizers WordPiece', 'peers.hugging_face:learn_wordpiece', False),
        ),
        targets if has_targets else {},
        runs=DEFAULT_RUNS if has_targets else scale.long_runs,
        is_extra=threads > 1 and corpus != MIXED,
    )


def _wordpiece_row(scale: Scale) -> Row:
    def options(inputs: Inputs) -> dict:
        return {
            'counts': inputs.counts_of_beginning(scale.wordpiece_bytes),
            'vocabulary_size': scale.small_vocabulary,
        }

    return one_core_row(
        f'wordpiece/{ENGLISH}',
        f'search {scale.small_vocabulary:,} entries from the counts of '
        f'{scale.wordpiece_bytes / 1e6:g} MB',
        ENGLISH,
        ('stages.counting:search_counts', options),
        {'TensorFlow Text WordPiece': ('peers.tensorflow_tools:search_counts', None)},
        patience='once',
    )


def named_threads(threads: int) -> str:
    return 'one thread' if threads == 1 else f'{threads} threads'
