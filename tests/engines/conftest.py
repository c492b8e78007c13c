"""A small corpus with gaps, and the dataset that the plainest command makes of it."""

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from generated_text import as_bitext, as_tsv, pairs_with_gaps
from jobs import run, succeed, write


@dataclass(frozen=True)
class SmallCorpus:
    """Some hundred pairs, a few of them empty; as columns, as two files, and as one side's text."""

    pairs: list[tuple[str, str]]
    tsv: Path
    source: Path
    target: Path


@pytest.fixture(scope='session')
def small(tmp_path_factory) -> SmallCorpus:
    folder = tmp_path_factory.mktemp('small')
    pairs = pairs_with_gaps(300, seed=8)
    source, target = as_bitext(pairs)
    return SmallCorpus(
        pairs,
        write(folder / 'pairs.tsv', as_tsv(pairs)),
        write(folder / 'pairs.en', source),
        write(folder / 'pairs.zh', target),
    )


SMALL_DATASET = ['--name', 'small', '--shards', 3]
SMALL_VOCABULARY = ['--vocab-size', 900]


@pytest.fixture(scope='session')
def small_build(small, tmp_path_factory) -> Path:
    """What `build` makes of the small corpus in columns; not to be changed."""
    folder = tmp_path_factory.mktemp('small-build') / 'out'
    succeed('build', '--tsv', small.tsv, *SMALL_DATASET, *SMALL_VOCABULARY, '--output', folder)
    return folder


@pytest.fixture(scope='module')
def built(building, tmp_path_factory) -> Path:
    """What a module's command line `building`, which has no output, makes."""
    folder = tmp_path_factory.mktemp('built') / 'out'
    succeed(*building, '--output', folder)
    return folder


@pytest.fixture
def build(tmp_path):
    """Runs `build` as for the small corpus, into a new folder, which is returned."""
    numbers = iter(range(100))

    def run_build(*arguments: object) -> Path:
        folder = tmp_path / f'out-{next(numbers)}'
        succeed('build', *SMALL_DATASET, *SMALL_VOCABULARY, '--output', folder, *arguments)
        return folder

    return run_build


@pytest.fixture
def filter_lines(monkeypatch):
    """Runs a command on standard input; returns its standard output."""

    def run_filter(data: bytes, *arguments, status: int = 0) -> bytes:
        output = io.BytesIO()
        monkeypatch.setattr(sys, 'stdin', io.TextIOWrapper(io.BytesIO(data), newline=''))
        monkeypatch.setattr(sys, 'stdout', io.TextIOWrapper(output, newline=''))
        ended = run(*arguments)
        sys.stdout.flush()
        assert ended.status == status, ended.said
        return output.getvalue() if status == 0 else ended.said.encode()

    return run_filter


@pytest.fixture
def printed(capsys):
    """Runs a command that checks a folder; returns its status and the JSON of its lines."""

    def run_printed(*arguments: object) -> tuple[int, list]:
        capsys.readouterr()
        ended = run(*arguments, '--json', '--progress=none')
        assert ended.status in (0, 3), ended.said
        return ended.status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run_printed
