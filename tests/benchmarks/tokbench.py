"""`python -m tests.benchmarks --tokbench`: encoders compared by the protocol of huggingface/tokbench.

A text is cut into a hundred documents of 10 KiB, and a library gets one document a call on one core.
The time to open the tokenizer is a figure of its own. A library whose ids differ from those of
`tokenizers` has no speed. tokbench calls the libraries from Rust, and this module from Python; the
texts are not tokbench's, which were not available.

Three speeds of one text:

- cold: a new encoder sees each document for the first time.
- unseen: the first sixth of the documents warms the encoder up; the others are timed, each for the
  first time (tokbench today).
- repeated: all documents again, up to five times (tokbench's first version), from caches of words.

On all cores, a library gets a batch of documents, as in tokbench's sweep of threads. It uses its own
threads; documents for a library without threads are divided among threads. Only the first model is
measured on all cores.
"""

import fnmatch
import json
import random
import statistics
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests import tokenizer_files

from .corpora import CHINESE, ENGLISH, MIXED
from .inputs import Materials
from .rows.byte_pairs import CANDIDATE, CANDIDATES
from .running import ROOT, Run, run_task
from .scale import Scale
from .zipf_text import spelled

REFERENCE = 'tokenizers 0.23'
OURS = ('tokbeam', 'tokbeam, lists')
_TASK = 'peers.documents:measure'
SPEEDS = ('cold', 'unseen', 'repeated')

_DOCUMENTS = 100
_DOCUMENTS_ON_ALL_CORES = 1200
"""With fewer, a library that cuts batches into megabytes leaves cores idle."""

_SMOKE_DOCUMENTS = 12

_KIND_BYTES = 1_100_000
_LEARNED_BYTES = 10_000_000
"""English that the models are learned from, with half as much Chinese and the written kinds."""

_CHAT = ('<|im_start|>', '<|im_end|>')
_WORDS = 20_000

_CORPORA = {'english': ENGLISH, 'chinese': CHINESE, 'mixed': MIXED}
"""The kinds of text that are corpora."""


class _Library(NamedTuple):
    engine: str
    requirement: str | None = None
    """The package that is installed into a separate folder; None for that of the environment."""


LIBRARIES = {
    OURS[0]: _Library('tokbeam'),
    OURS[1]: _Library('tokbeam lists'),
    CANDIDATE: _Library('tokenizers', CANDIDATES),
    'gigatoken': _Library('gigatoken'),
    'tiktoken': _Library('tiktoken'),
    'kitoken': _Library('kitoken', 'kitoken>=0.11,<0.12'),
    REFERENCE: _Library('tokenizers', 'tokenizers==0.23.3'),
}
"""By label. Each library runs in its own process, since two of them are versions of one package."""

_LEARNED = {'gpt2 learned here': 'gpt2', 'llama3 learned here': 'llama3'}
"""The models that are learned here, and their pre-tokenizers."""

_PUBLISHED = ('qwen3', 'gemma3')

_KINDS_OF_PUBLISHED = ('english', 'chinese', 'code', 'chat')
"""Fewer, because published tokenizers take seconds to open."""

_KINDS_ON_ALL_CORES = ('english', 'chinese')

MODELS = (*_LEARNED, *_PUBLISHED)


def models_named(patterns: Sequence[str]) -> list[str]:
    """Returns the models that a glob matches; all without globs."""
    wanted = patterns or ['*']
    return [model for model in MODELS if any(fnmatch.fnmatch(model, each) for each in wanted)]


def measure_cells(
    materials: Materials, scale: Scale, patterns: Sequence[str], runs: int
) -> Iterator[dict[str, Any]]:
    """Yields a cell for each model whose name a glob matches, kind of text, number of cores and library."""
    for model in models_named(patterns):
        try:
            file = _model_file(materials, scale, model)
        except LookupError as error:
            yield {'model': model, 'ids': str(error.args[0])}
            continue
        for cores, kinds, documents in _measurements(model):
            options = {
                'model': file,
                'texts': {kind: str(_text(materials, kind)) for kind in kinds},
                'documents': documents if scale.generated_bytes is None else _SMOKE_DOCUMENTS,
                'on_all_cores': cores == 'all',
            }
            rounds: dict[str, list[Run]] = {label: [] for label in LIBRARIES}
            for _ in range(runs):  # interleaved: what slows the machine down slows all of them
                for label, library in LIBRARIES.items():
                    rounds[label].append(_run(materials, library, options, cores))
            for kind in kinds:
                for label in LIBRARIES:
                    cell = {'model': model, 'kind': kind, 'cores': cores, 'library': label}
                    yield cell | _figures(rounds[label], rounds[REFERENCE], kind)


def _measurements(model: str) -> Iterator[tuple[str, Sequence[str], int]]:
    """Yields the cores, kinds of text and number of documents that a model is measured with."""
    kinds = _KINDS_OF_PUBLISHED if model in _PUBLISHED else (*_CORPORA, *_WRITERS)
    yield 'one', kinds, _DOCUMENTS
    if model == MODELS[0]:
        yield 'all', _KINDS_ON_ALL_CORES, _DOCUMENTS_ON_ALL_CORES


def cell_line(cell: dict[str, Any]) -> str:
    """Returns a line to print: seconds to open, and MB/s with the spread of the rounds."""
    if 'library' not in cell:
        return f'{cell["model"]}: {cell["ids"]}'
    name = f'{cell["model"]}, {cell["kind"]}, cores: {cell["cores"]}'
    line = f'{name:<44} {cell["library"]:<16}'
    if cell['ids'] == 'equal':
        line += ' opened {:>5.2f} s, {:.2f} s'.format(*cell['opened'])
        line += ''.join(f'  {speed} {with_spread(cell[speed]):<10}' for speed in SPEEDS)
    return f'{line}  ids {cell["ids"]}'


def with_spread(values: Sequence[float], unit: str = '') -> str:
    """Returns the median, and half of the range in per cent of it: '66.2 ±3%'."""
    middle = statistics.median(values)
    spread = f' ±{50 * (max(values) - min(values)) / middle:.0f}%' if len(values) > 1 else ''
    return f'{float(f"{middle:.3g}"):g}{unit}{spread}'


def _run(materials: Materials, library: _Library, options: dict[str, Any], cores: str) -> Run:
    packages = None
    if library.requirement is not None:
        try:
            packages = str(materials.packages(library.requirement))
        except LookupError as error:
            return Run(problem=str(error.args[0]))
    arguments = {**options, 'engine': library.engine, 'packages': packages}
    return run_task(_TASK, arguments, 1 if cores == 'one' else None)


def _figures(runs: Sequence[Run], reference: Sequence[Run], kind: str) -> dict[str, Any]:
    """Returns the speeds of all rounds in MB/s, unless ids differ from the reference's."""
    if problem := next((run.problem for run in runs if run.problem), ''):
        return {'ids': problem.removeprefix('failed: ValueError: ')}
    if problem := next((run.problem for run in reference if run.problem), ''):
        return {'ids': f'not compared: {REFERENCE} {problem}'}
    facts = [run.facts['kinds'][kind] for run in runs]
    wanted = reference[0].facts['kinds'][kind]['digests']
    differ = max(
        sum(one != two for one, two in zip(each['digests'], wanted, strict=True)) for each in facts
    )
    version = {'version': runs[0].facts['version'], 'bytes': facts[0]['bytes']}
    if differ:
        return {**version, 'ids': f'differ in {differ} of {len(wanted)} documents'}
    speeds = {speed: [each['bytes'] / 1e6 / each[speed] for each in facts] for speed in SPEEDS}
    opened = [
        statistics.median(run.facts['first_opened'] for run in runs),
        statistics.median(each['opened'] for each in facts),
    ]
    return {**version, 'opened': opened, **speeds, 'ids': 'equal'}


def _model_file(materials: Materials, scale: Scale, model: str) -> str:
    if model in _PUBLISHED:
        return str(materials.tokenizer_file(tokenizer_files.TOKENIZER_JSON[model]))
    return str(
        materials.cached(
            f'tokbench.{model.replace(" ", "-")}.json',
            lambda path: _learn(path, materials, scale.large_vocabulary, _LEARNED[model]),
        )
    )


def _learn(path: Path, materials: Materials, size: int, pre_tokenizer: str) -> None:
    """Writes a tokenizer.json that tokbeam learns, with two more special tokens."""
    import tokcore

    texts = [
        materials.corpora.beginning(ENGLISH, _LEARNED_BYTES),
        materials.corpora.beginning(CHINESE, _LEARNED_BYTES // 2),
        *(_text(materials, kind) for kind in _WRITERS),
    ]
    tokcore.learn_vocabulary(
        paths=texts, scheme='bpe', vocab_size=size, pre_tokenizer=pre_tokenizer
    ).save(path)
    document = json.loads(path.read_text(encoding='utf-8'))
    for id_, token in enumerate(_CHAT, size):
        added = {**document['added_tokens'][0], 'id': id_, 'content': token}
        document['added_tokens'].append(added)
        document['model']['vocab'][token] = id_
    path.write_text(json.dumps(document, ensure_ascii=False), encoding='utf-8')


def _text(materials: Materials, kind: str) -> Path:
    if kind in _CORPORA:
        return materials.corpora.path(_CORPORA[kind])
    return materials.cached(
        f'tokbench.{kind}.txt',
        lambda path: path.write_text(_WRITERS[kind](materials), encoding='utf-8'),
    )


def _code(_: Materials) -> str:
    """The sources of this project."""
    listed = subprocess.run(['git', 'ls-files', '*.py'], cwd=ROOT, capture_output=True, text=True)
    paths = [ROOT / name for name in listed.stdout.split()] or sorted(ROOT.rglob('tokcore/**/*.py'))
    return '\n'.join(path.read_text(encoding='utf-8') for path in paths)[:_KIND_BYTES]


def _chat(materials: Materials) -> str:
    """English lines as turns between ChatML's special tokens."""
    lines = materials.corpora.beginning(ENGLISH, _KIND_BYTES).read_text().splitlines()
    begin, end = _CHAT
    roles = ('user', 'assistant')
    turns = (
        f'{begin}{roles[turn // 3 % 2]}\n{" ".join(lines[turn : turn + 3])}{end}\n'
        for turn in range(0, len(lines), 3)
    )
    return ''.join(turns)


def _special(_: Materials) -> str:
    """Words of a list of forty, every fifth followed by a special token."""
    syllables = _syllables('bdfgklmnprst', 'aeiou')
    words = [spelled(rank, syllables) for rank in range(40)]
    drawn = random.Random(1).choices(words, k=_KIND_BYTES // 6)
    drawn[4::5] = [f'{word}<|endoftext|>' for word in drawn[4::5]]
    return ' '.join(drawn)


def _script(consonants: str, vowels: str, space: str = ' ') -> Callable[[Materials], str]:
    """Returns a function that writes words of a script by Zipf's law."""

    def write(_: Materials) -> str:
        syllables = _syllables(consonants, vowels)
        words = [spelled(rank, syllables) for rank in range(_WORDS)]
        weights = [1 / (rank + 3) for rank in range(_WORDS)]
        drawn = random.Random(consonants).choices(words, weights, k=_KIND_BYTES // 8)
        lines = (space.join(drawn[start : start + 16]) for start in range(0, len(drawn), 16))
        return '\n'.join(lines)

    return write


def _syllables(consonants: str, vowels: str) -> list[str]:
    return [consonant + vowel for consonant in consonants for vowel in vowels]


_WRITERS: dict[str, Callable[[Materials], str]] = {
    'code': _code,
    'chat': _chat,
    'special': _special,
    'russian': _script('бвгдзклмнпрст', 'аеиоуы'),
    'hindi': _script('कगचजटडतदनपबमरलवसह', 'ािीुूेैो'),
    'thai': _script('กขคงจชดตทนบปมยรลวสห', 'ะาิีุูเแโ', ''),
}
"""The kinds of text that are written here; the last three are random letters."""
