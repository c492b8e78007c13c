"""The files that contenders take: texts, counts, vocabularies and models, each made once."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from tests import tokenizer_files
from tokcore.corpus.line_rows import text_rows
from tokcore.counts.token_table import TokenTable
from tokcore.encoding.encoder import EncodedSide
from tokcore.format_numbers import DATASET
from tokcore.learning.size_search import SearchResult
from tokcore.records.tfrecord import frame_examples
from tokcore.subword.text_encoder import EOS_ID, SubwordTextEncoder, dump_vocabulary
from tokcore.text.normalizers import T2T_LINES

from . import running
from .corpora import SOURCES, TARGETS, Corpora
from .stages.blocks import text_blocks
from .stages.counting import count_blocks, search
from .stages.formats import write_as
from .stages.wordpieces import count_words

_MODEL_BYTES = 20_000_000  # text that the peers' models are trained on, which is not timed


class Materials:
    """Files in the scratch folder, made from the corpora when a row first needs them."""

    def __init__(self, corpora: Corpora):
        self.corpora = corpora
        self._missing: dict[str, LookupError] = {}
        self._searches: dict[tuple[str, int, int], SearchResult] = {}
        self._warmed: set[tuple[str, ...]] = set()
        self._new = tempfile.TemporaryDirectory(prefix='new-', dir=corpora.scratch)

    @property
    def scratch(self) -> Path:
        return self.corpora.scratch

    def new_folder(self, name: str) -> Path:
        """Returns a folder that no earlier run of the benchmark has written to."""
        folder = Path(self._new.name) / name
        folder.mkdir(exist_ok=True)
        return folder

    def counts(self, name: str, every: int = 1) -> Path:
        """Returns the token table of a corpus, or of each n-th token in byte order."""

        def make(path: Path) -> None:
            if every == 1:
                table = count_blocks(text_blocks(self.corpora.path(name).read_bytes()), 1).sorted()
            else:
                whole = TokenTable.from_bytes(self.counts(name).read_bytes())
                table = whole.pick(np.arange(0, len(whole), every))
            path.write_bytes(table.to_bytes())

        return self.cached(f'{name}.every{every}.counts', make)

    def as_format(self, name: str, kind: str, limit: int | None) -> Path:
        """Returns the lines of a corpus, or of a sample, as a file of a format."""
        return self.cached(
            f'{name}.{limit}.{kind}',
            lambda path: write_as(kind, self.corpora.path(name, limit), path),
        )

    def word_counts(self, name: str, every: int = 1) -> Path:
        """Returns the table of a corpus's words by BERT's rules, or of each n-th in byte order."""

        def make(path: Path) -> None:
            table = count_words(text_blocks(self.corpora.path(name).read_bytes())).sorted()
            path.write_bytes(table.pick(np.arange(0, len(table), every)).to_bytes())

        return self.cached(f'{name}.every{every}.words', make)

    def counts_of_beginning(self, name: str, size: int) -> Path:
        """Returns the token table of a corpus's first bytes, with only alphanumeric tokens."""

        def make(path: Path) -> None:
            text = self.corpora.beginning(name, size).read_bytes()
            items = count_blocks(text_blocks(text), 1).items()
            words = TokenTable.from_items(item for item in items if item[0].isalnum())
            path.write_bytes(words.to_bytes())

        return self.cached(f'{name}.first{size}.counts', make)

    def search(self, name: str, every: int, size: int) -> SearchResult:
        """Returns the vocabulary that the original's search finds for a table, within its limits."""
        key = name, every, size
        if key not in self._searches:
            table = TokenTable.from_bytes(self.counts(name, every).read_bytes())
            self._searches[key] = search(table, size)
        return self._searches[key]

    def vocabulary(self, name: str, size: int) -> Path:
        """Returns a subword vocabulary file learned from all of a corpus."""

        def make(path: Path) -> None:
            path.write_bytes(dump_vocabulary(self.search(name, 1, size).subtokens))

        return self.cached(f'{name}.{size}.subwords', make)

    def word_dataset(self, size: int) -> dict[str, str]:
        """Returns the folder of pairs encoded as whole words, and their texts and vocabulary."""
        source, target = (self.corpora.path(name) for name in (SOURCES, TARGETS))
        folder = self.scratch / f'words.{size}'
        asked = ['--source', source, '--target', target, '--name', 'words', '--scheme', 'word']
        asked += ['--vocab-size', size, '--shared-vocab', '--progress=none', '--output', folder]
        command = [sys.executable, '-m', 'pipelines', 'build', *map(str, asked)]
        subprocess.run(command, cwd=running.ROOT, check=True)
        vocabulary = folder / f'vocab.words.{size}.words.txt'
        return {'folder': str(folder), 'shared': f'{source}|{target}|{vocabulary}'}

    def many_shards(self, rows: int) -> Path:
        """Returns a dataset of 100 shards with so many short rows, as `encode` writes them."""
        folder = self.scratch / f'many.{rows}'
        if not (folder / 'tokbeam.json').exists():
            folder.mkdir(exist_ok=True)
            _write_shards(folder, rows // 100)
        return folder

    def ids(self, name: str, limit: int | None, size: int) -> Path:
        """Returns a text's ids, as `ids` and `offsets` in an .npz file."""

        def make(path: Path) -> None:
            vocabulary = SubwordTextEncoder.load(str(self.vocabulary(name, size)))
            rows = text_rows(self.corpora.path(name, limit).read_bytes(), 0, T2T_LINES)
            encoded = vocabulary.row_encoder().encode_side(rows.sides[0], after=[EOS_ID])
            np.savez(path, ids=encoded.ids, offsets=encoded.offsets, places=rows.offsets)

        return self.cached(f'{name}.{limit}.{size}.npz', make)

    def halves(self, name: str) -> list[Path]:
        """Returns the first and the last lines of a corpus, each about half of its bytes."""
        whole = self.corpora.path(name)
        first = self.corpora.beginning(name, whole.stat().st_size // 2)

        def make(path: Path) -> None:
            with open(whole, 'rb') as lines, open(path, 'wb') as rest:
                lines.seek(first.stat().st_size)
                shutil.copyfileobj(lines, rest, 1 << 20)

        return [first, self.cached(f'{name}.second-half.txt', make)]

    def model(self, task: str, name: str, size: int) -> Path:
        """Returns a peer's model, trained by its task on a sample of the corpus.

        Raises LookupError, with the reason, if the task fails.
        """
        text = str(self.corpora.path(name, _MODEL_BYTES))
        options = {'text': text, 'vocabulary_size': size}
        return self.cached(
            f'{name}.{size}.{task.replace(":", "-")}.model',
            lambda path: _run(task, {**options, 'model': str(path)}),
        )

    def packages(self, requirement: str) -> Path:
        """Returns a folder with another version of a package than the environment has.

        Raises LookupError if it cannot be installed.
        """

        def make(path: Path) -> None:
            pip = [sys.executable, '-m', 'pip', 'install', '--quiet', '--no-deps']
            command = [*pip, '--target', path, requirement]
            process = subprocess.run(command, capture_output=True, text=True)
            if process.returncode:
                raise LookupError(f'missing: {requirement} cannot be installed')

        return self.cached(re.sub(r'[^\w.]+', '-', requirement), make)

    def tokenizer_file(self, place: tokenizer_files.Place) -> Path:
        """Returns a file of a trained model.

        Raises LookupError if the tests have not fetched it.
        """
        name = f'{place.package}.{place.member}'.replace('/', '-')
        return self.cached(name, lambda path: path.write_bytes(tokenizer_files.stored(place)))

    def converted(self, place: tokenizer_files.Place) -> Path:
        """Returns the tokenizer.json that gigatoken makes of a SentencePiece model.

        Raises LookupError, with the reason, if gigatoken fails.
        """
        model = self.tokenizer_file(place)
        return self.cached(
            f'{model.name}.json',
            lambda path: _run('peers.encoders:convert', {'model': str(model), 'output': str(path)}),
        )

    def warm_up(self, task: str, options: Mapping[str, Any]) -> None:
        """Runs the task of a command once, so that its kernels are compiled."""
        command = tuple(options['arguments'])
        if command not in self._warmed:
            running.run_task(task, options, cores=None)
            self._warmed.add(command)

    def cached(self, name: str, make: Callable[[Path], object]) -> Path:
        """Returns a path in the scratch folder, which `make` writes if it does not exist.

        If `make` raises LookupError, so does each later call.
        """
        path = self.scratch / name
        if name in self._missing:
            raise self._missing[name]
        if not path.exists():
            part = path.with_name('part.' + name)
            try:
                make(part)
            except LookupError as error:
                self._missing[name] = error
                raise
            part.rename(path)
        return path


def _run(task: str, options: Mapping[str, Any]) -> None:
    run = running.run_task(task, options, cores=None)
    if run.problem:
        raise LookupError(run.problem)


def _write_shards(folder: Path, rows: int) -> None:
    offsets = 20 * np.arange(rows + 1)
    side = EncodedSide(np.arange(20 * rows, dtype=np.int32) % 1000, offsets)
    data = frame_examples([('targets', side)], np.zeros(rows, np.uint64)).records.tobytes()
    files: list[dict] = []
    for number in range(100):
        name = f'many-train-{number:05d}-of-00100'
        (folder / name).unlink(missing_ok=True)  # left by a benchmark that was killed
        if number:
            os.link(folder / files[0]['name'], folder / name)  # all have the same content
        else:
            (folder / name).write_bytes(data)
        crc32c = f'{google_crc32c.value(data):08x}'
        files.append({'name': name, 'rows': rows, 'bytes': len(data), 'crc32c': crc32c})
    text = {'split': 'train', 'role': 'text', 'name': 'many', 'bytes': 0, 'crc32c': '00000000'}
    manifest = {'stage': 'encode', 'options': {'scheme': 'byte'}, 'inputs': [text]}
    manifest |= {'format': DATASET, 'files': files, 'vocabularies': []}
    (folder / 'tokbeam.json').write_text(json.dumps(manifest))


class Inputs:
    """The materials of one row: of its corpus, or of a sample of it."""

    def __init__(self, materials: Materials, corpus: str, row: str, limit: int | None = None):
        self.materials = materials
        self.corpus = corpus
        self._row = row
        self._limit = limit
        self.notes: list[str] = []

    @property
    def text(self) -> str:
        return str(self.materials.corpora.path(self.corpus, self._limit))

    @property
    def small(self) -> str:
        return str(self.materials.corpora.small(self.corpus))

    @property
    def bytes(self) -> int:
        return Path(self.text).stat().st_size

    def output(self, name: str) -> str:
        """Returns a path that no other row writes to."""
        return str(self.materials.scratch / f'{self._row.replace("/", "-")}.{name}')

    def as_format(self, kind: str) -> str:
        return str(self.materials.as_format(self.corpus, kind, self._limit))

    def counts(self, every: int = 1) -> str:
        return str(self.materials.counts(self.corpus, every))

    def word_counts(self, every: int = 1) -> str:
        return str(self.materials.word_counts(self.corpus, every))

    def counts_of_beginning(self, size: int) -> str:
        return str(self.materials.counts_of_beginning(self.corpus, size))

    def beginning(self, size: int) -> str:
        return str(self.materials.corpora.beginning(self.corpus, size))

    def vocabulary(self, size: int, corpus: str | None = None) -> str:
        return str(self.materials.vocabulary(corpus or self.corpus, size))

    def ids(self, size: int) -> str:
        return str(self.materials.ids(self.corpus, self._limit, size))

    def model(self, task: str, size: int) -> str:
        return str(self.materials.model(task, self.corpus, size))

    def reachable_target(self, every: int, size: int) -> int:
        """Returns the target, or the size that a sampled table gives if that is over 1 % off."""
        if every == 1:
            return size  # what users ask the original for
        result = self.materials.search(self.corpus, every, size)
        reached = len(result.subtokens)
        if abs(reached - size) * 100 < size:
            return size
        note = f'target {reached:,}, since this table cannot reach {size:,}'
        if note not in self.notes:
            self.notes.append(note)
        return reached
