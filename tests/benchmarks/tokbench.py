"""`python -m tests.benchmarks --tokbench`: encoders side by side by the protocol of huggingface/tokbench.

Its protocol: a text is cut into a hundred documents of 10 KiB, and a library gets one a call on one
core. Opening the tokenizer is not encoding, and is timed by itself. Ids are compared with those of
`tokenizers`; where they differ, there is no figure. This is its protocol for libraries in Python,
since tokbench calls theirs from Rust. The texts are not its texts, which cannot be had here.

Three speeds of one text:

- cold: the documents for the first time, by a new encoder.
- unseen: five sixths of the documents, each for the first time, after the first sixth warmed the
  encoder up (tokbench today).
- repeated: all documents again, as often as five times (tokbench's first version). A cache of words
  then has them all.

On all cores a library gets a batch of documents, as tokbench's sweep of threads has it: with its
own threads, and where it has none, divided among threads. Only the first model has this.
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

REFERENCE = 'tokenizers 0.23'
_TASK = 'peers.documents:measure'
SPEEDS = ('cold', 'unseen', 'repeated')

_DOCUMENTS = 100
_DOCUMENTS_ON_ALL_CORES = 1200
"""A library that cuts batches into megabytes leaves cores idle with fewer."""

_KIND_BYTES = 1_100_000
_LEARNED_BYTES = 10_000_000
"""Of English; the model that is learned here has seen half as much Chinese, and all other kinds."""

_CHAT = ('<|im_start|>', '<|im_end|>')
_WORDS = 20_000


class _Library(NamedTuple):
    engine: str
    requirement: str | None = None
    """What is installed in a folder of its own; None for what is in the environment."""


LIBRARIES = {
    'tokbeam': _Library('tokbeam'),
    'tokbeam, lists': _Library('tokbeam lists'),
    CANDIDATE: _Library('tokenizers', CANDIDATES),
    'gigatoken': _Library('gigatoken'),
    'tiktoken': _Library('tiktoken'),
    'kitoken': _Library('kitoken', 'kitoken>=0.11,<0.12'),
    REFERENCE: _Library('tokenizers', 'tokenizers==0.23.3'),
}
"""By label. Two versions of a package need two processes, so each library has its own."""

_LEARNED = {'gpt2 learned here': 'gpt2', 'llama3 learned here': 'llama3'}
"""The pre-tokenizers of the models that are learned here, by the names of the models."""

_PUBLISHED = ('qwen3', 'gemma3')

_FEW = ('english', 'chinese', 'code', 'chat')
"""The kinds of text for these, which take seconds to open; on all cores, the first two."""

MODELS = (*_LEARNED, *_PUBLISHED)


def models_named(patterns: Sequence[str]) -> list[str]:
    """Returns the models that a glob matches; without globs, all."""
    return [
        model for model in MODELS if any(fnmatch.fnmatch(model, each) for each in patterns or '*')
    ]


def measure_cells(
    materials: Materials, scale: Scale, patterns: Sequence[str], runs: int
) -> Iterator[dict[str, Any]]:
    """Yields a cell for each model whose name a glob matches, kind of text, number of cores and library."""
    texts = {kind: str(write(materials)) for kind, write in _kinds().items()}
    most = (_DOCUMENTS, _DOCUMENTS_ON_ALL_CORES) if scale.generated_bytes is None else (12, 12)
    for model in models_named(patterns):
        try:
            file = _model_file(materials, scale, model)
        except LookupError as error:
            yield {'model': model, 'ids': str(error.args[0])}
            continue
        for cores in ('one', 'all') if model == MODELS[0] else ('one',):
            measured = texts
            if model in _PUBLISHED or cores == 'all':
                measured = {kind: texts[kind] for kind in (_FEW if cores == 'one' else _FEW[:2])}
            options = {
                'model': file, 'texts': measured, 'documents': most[cores == 'all'],
                'on_all_cores': cores == 'all',
            }  # fmt: skip
            rounds: dict[str, list[Run]] = {label: [] for label in LIBRARIES}
            for _ in range(runs):  # interleaved: what slows the machine down slows all of them
                for label, library in LIBRARIES.items():
                    rounds[label].append(_run(materials, library, options, cores))
            for kind in measured:
                for label in LIBRARIES:
                    cell = {'model': model, 'kind': kind, 'cores': cores, 'library': label}
                    yield cell | _figures(rounds[label], rounds[REFERENCE], kind)


def cell_line(cell: dict[str, Any]) -> str:
    """Returns a cell's line for people: seconds to open, and MB/s with the spread of the rounds."""
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
    return f'{middle:.3g}{unit}{spread}'


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
    """Returns the speeds of all rounds in MB/s; none if ids differ from the reference's."""
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
    path = materials.scratch / f'tokbench.{model.replace(" ", "-")}.json'
    if not path.exists():
        path.write_text(_learned(materials, scale.large_vocabulary, _LEARNED[model]))
    return str(path)


def _learned(materials: Materials, size: int, pre_tokenizer: str) -> str:
    """Returns a tokenizer.json that tokbeam learns, with two more special tokens."""
    import tokcore

    corpora = materials.corpora
    texts = [corpora.beginning(ENGLISH, _LEARNED_BYTES)]
    texts += [corpora.beginning(CHINESE, _LEARNED_BYTES // 2)]
    texts += [write(materials) for kind, write in _kinds().items() if kind in _WRITERS]
    tokenizer = tokcore.learn_vocabulary(
        paths=texts, scheme='bpe', vocab_size=size, pre_tokenizer=pre_tokenizer
    )
    file = materials.scratch / f'tokbench.{pre_tokenizer}.learned.json'
    tokenizer.save(file)
    document = json.loads(file.read_text())
    for id_, token in enumerate(_CHAT, size):
        added = {**document['added_tokens'][0], 'id': id_, 'content': token}
        document['added_tokens'].append(added)
        document['model']['vocab'][token] = id_
    return json.dumps(document, ensure_ascii=False)


def _kinds() -> dict[str, Callable[[Materials], Path]]:
    """Returns by kind of text what returns its file."""
    corpora = {'english': ENGLISH, 'chinese': CHINESE, 'mixed': MIXED}
    kinds: dict[str, Callable[[Materials], Path]] = {
        kind: (lambda materials, corpus=corpus: materials.corpora.path(corpus))
        for kind, corpus in corpora.items()
    }
    return kinds | {
        kind: (lambda materials, kind=kind: _written(materials, kind)) for kind in _WRITERS
    }


def _written(materials: Materials, kind: str) -> Path:
    path = materials.scratch / f'tokbench.{kind}.txt'
    if not path.exists():
        path.write_text(_WRITERS[kind](materials), encoding='utf-8')
    return path


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
    words, dice = [_spelled(rank, 'bdfgklmnprst', 'aeiou') for rank in range(40)], random.Random(1)
    drawn = dice.choices(words, k=_KIND_BYTES // 6)
    return ' '.join(
        word + '<|endoftext|>' if place % 5 == 4 else word for place, word in enumerate(drawn)
    )


def _script(consonants: str, vowels: str, space: str = ' ') -> Callable[[Materials], str]:
    """Returns what writes words of a script by Zipf's law."""

    def write(_: Materials) -> str:
        dice = random.Random(consonants)
        words = [_spelled(rank, consonants, vowels) for rank in range(_WORDS)]
        weights = [1 / (rank + 3) for rank in range(_WORDS)]
        drawn = dice.choices(words, weights, k=_KIND_BYTES // 8)
        lines = (space.join(drawn[start : start + 16]) for start in range(0, len(drawn), 16))
        return '\n'.join(lines)

    return write


def _spelled(rank: int, consonants: str, vowels: str) -> str:
    word = ''
    rank += 1
    while rank:
        rank, digit = divmod(rank, len(consonants) * len(vowels))
        word += consonants[digit // len(vowels)] + vowels[digit % len(vowels)]
    return word


_WRITERS: dict[str, Callable[[Materials], str]] = {
    'code': _code,
    'chat': _chat,
    'special': _special,
    'russian': _script('бвгдзклмнпрст', 'аеиоуы'),
    'hindi': _script('कगचजटडतदनपबमरलवसह', 'ािीुूेैो'),
    'thai': _script('กขคงจชดตทนบปมยรลวสห', 'ะาิีุูเแโ', ''),
}
"""Kinds of text that are no corpora: the last three are made of letters by chance."""
