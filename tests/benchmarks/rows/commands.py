"""Rows of whole commands: on corpora, with one worker and two, and their start-up."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from ..contenders import DEFAULT_RUNS, OURS, Contender, Row
from ..corpora import ENGLISH, LARGE, MIXED
from ..inputs import Inputs
from ..scale import Scale

_TOKBEAM = ('-m', 'pipelines')
_ABOVE_START_UP = 'stages.commands:run_above_start_up'
_WHOLE = 'stages.commands:run'
_SHARDS = 10
ONE_WORKER = 'one worker'
_TWO_PROCESSES = 'two processes, half the text each'


def command_rows(scale: Scale) -> Iterator[Row]:
    """Yields the rows of whole commands."""
    yield Row(
        f'command/count/{ENGLISH}',
        'count a corpus, whole command above start-up',
        ENGLISH,
        Contender(OURS, _ABOVE_START_UP, above_start_up(count_arguments(1))),
        (
            Contender(
                're.findall + Counter',
                _ABOVE_START_UP,
                above_start_up(('-m', 'tests.benchmarks.peers.scripts', '{text}', '{output}')),
            ),
        ),
        {'re.findall + Counter': 4},
        runs=scale.long_runs,
        patience='wait',
    )
    yield Row(
        f'command/build/{MIXED}',
        f'build two vocabularies of {scale.small_vocabulary:,} and shards, whole command',
        MIXED,
        Contender(OURS, _WHOLE, whole(_build_arguments(scale.small_vocabulary))),
        runs=scale.long_runs,
    )
    yield from _large_rows(scale)
    yield from _start_up_rows(scale)


def _large_rows(scale: Scale) -> Iterator[Row]:
    """Yields rows of the large text: two workers compared with one and with two processes."""
    size = scale.large_vocabulary
    kernels = Contender(
        'kernels alone',
        'stages.shuffling:encode_and_shuffle',
        lambda inputs: {
            'text': inputs.text,
            'vocabulary': inputs.vocabulary(size, MIXED),
            'shards': _SHARDS,
            'output': inputs.output('runs'),
        },
        against=ONE_WORKER,
    )
    yield _large_row(scale, 'count', count_arguments, None, (), {ONE_WORKER: 1.8})
    yield _large_row(
        scale, 'encode', encode_arguments, size, (kernels,), {ONE_WORKER: 1.8, kernels.label: 0.7}
    )


def _large_row(
    scale: Scale,
    name: str,
    arguments: Callable[[int], tuple[str, ...]],
    vocabulary: int | None,
    peers: tuple[Contender, ...],
    targets: Mapping[str, float],
) -> Row:
    one, two = (above_start_up(arguments(workers), vocabulary) for workers in (1, 2))

    def halves(inputs: Inputs) -> dict:
        options = one(inputs)
        del options['text']
        return {**options, 'halves': [str(half) for half in inputs.materials.halves(LARGE)]}

    kernels = ' and one against its kernels' if peers else ''
    return Row(
        f'large/{name}',
        f'{name} {scale.large_bytes / 1e9:g} GB, whole command above start-up, two workers '
        f'against one{kernels}',
        LARGE,
        Contender('two workers', _ABOVE_START_UP, two),
        (
            Contender(ONE_WORKER, _ABOVE_START_UP, one),
            Contender(_TWO_PROCESSES, 'stages.commands:run_halves_above_start_up', halves),
            *peers,
        ),
        targets,
        patience='wait',
    )


def _start_up_rows(scale: Scale) -> Iterator[Row]:
    pipeline = ('-m', 'tests.benchmarks.peers.empty_pipeline')
    imports = Contender('imports + empty pipeline', _WHOLE, whole(pipeline, of_small=True))
    for state in ('warm', 'cold'):
        cold = state == 'cold'
        rounds = 1 if cold else DEFAULT_RUNS  # compiling takes long, and there is no peer
        yield Row(
            f'start-up/count/{state}',
            f'count 1 KB, {state} kernel cache',
            ENGLISH,
            Contender(OURS, _WHOLE, whole(count_arguments(1), of_small=True, cold=cold)),
            () if cold else (imports,),
            {imports.label: 1 / 2.5},
            runs=rounds,
        )
        yield Row(
            f'start-up/encode/{state}',
            f'encode 1 KB, {state} kernel cache',
            MIXED,
            Contender(OURS, _WHOLE, whole(encode_arguments(1), True, cold, scale.small_vocabulary)),
            () if cold else (imports,),
            runs=rounds,
        )
    for name, arguments in (
        ('help', (*_TOKBEAM, '--help')),
        ('version', (*_TOKBEAM, '--version')),
        ('imports', ('-c', 'import apache_beam, numba, pyarrow.parquet')),
        ('python', ('-c', 'pass')),
    ):
        yield Row(
            f'start-up/{name}',
            f'python {" ".join(arguments)}',
            ENGLISH,
            Contender(OURS, _WHOLE, whole(arguments, of_small=True)),
        )


def count_arguments(workers: int) -> tuple[str, ...]:
    """Returns a command that counts a text."""
    return (
        *(*_TOKBEAM, 'count', '--text', '{text}', '--output', '{output}'),
        *('--workers', str(workers)),
    )


def encode_arguments(workers: int) -> tuple[str, ...]:
    """Returns a command that encodes a text with a vocabulary."""
    return (
        *(*_TOKBEAM, 'encode', '--text', '{text}', '--vocab', '{vocabulary}'),
        *('--name', 'bench', '--shards', str(_SHARDS), '--output', '{output}'),
        *('--workers', str(workers)),
    )


def _build_arguments(size: int) -> tuple[str, ...]:
    return (
        *(*_TOKBEAM, 'build', '--tsv', '{text}', '--vocab-size', str(size)),
        *('--name', 'bench', '--shards', str(_SHARDS), '--output', '{output}'),
    )


def above_start_up(
    arguments: Sequence[str], size: int | None = None, of_bytes: int | None = None
) -> Callable[[Inputs], dict]:
    """Returns the options of a run above start-up, with a vocabulary if `size` is not None."""

    def options(inputs: Inputs) -> dict:
        text = inputs.text if of_bytes is None else inputs.beginning(of_bytes)
        filled = _filled(inputs, arguments, size)
        # Otherwise the first start-up would be a cold one, and the time above it too short.
        inputs.materials.warm_up(_WHOLE, {**filled, 'text': inputs.small})
        return {**filled, 'text': text, 'small': inputs.small}

    return options


def whole(
    arguments: Sequence[str], of_small: bool = False, cold: bool = False, size: int | None = None
) -> Callable[[Inputs], dict]:
    """Returns the options of a run as a whole, of the corpus or of a kilobyte."""

    def options(inputs: Inputs) -> dict:
        text = inputs.small if of_small else inputs.text
        return {**_filled(inputs, arguments, size), 'text': text, 'cold': cold}

    return options


def _filled(inputs: Inputs, arguments: Sequence[str], size: int | None) -> dict:
    if size is not None:
        # The large text repeats the corpora, so it gets the vocabulary of one of them.
        vocabulary = inputs.vocabulary(size, MIXED)
        arguments = [each.replace('{vocabulary}', vocabulary) for each in arguments]
    return {'arguments': list(arguments), 'output': inputs.output('command')}
