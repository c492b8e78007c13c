"""Fixtures that run commands in this process, over small corpora that the tests damage."""

import contextlib
import logging
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import faster_beam
import pytest
from command_outcome import Outcome
from forked_commands import ForkedCommands, Lane
from sizes import sizes_apart, with_sizes
from small_corpus import BUILD_OPTIONS, PAIRS, SmallCorpus

from pipelines.cli.main import main


@pytest.fixture(scope='session')
def lanes() -> Iterator[Sequence[Lane]]:
    """Two lanes, each of which runs one command at a time, in a child of one warm process."""
    if not hasattr(os, 'pidfd_open'):
        pytest.skip('children are watched by their handles, which only Linux has')
    with ForkedCommands(lanes=2) as lanes:
        yield lanes


@pytest.fixture(scope='session')
def lane(lanes) -> Lane:
    return lanes[0]


@pytest.fixture
def tokbeam(capfd) -> Callable[..., Outcome]:
    """Runs a command line in this process."""
    faster_beam.install()

    def run(*arguments: object) -> Outcome:
        capfd.readouterr()
        words, sizes = sizes_apart(arguments)
        root = logging.getLogger()
        handlers = root.handlers[:]
        try:
            with with_sizes(sizes):
                status = main(words)
        finally:
            root.handlers[:] = handlers
        return Outcome(status, capfd.readouterr().err)

    return run


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Callable[[int], Path]]:
    """Mounts a disk of a given size and returns its folder; only root can do that."""
    with contextlib.ExitStack() as stack:

        def mount(size: int) -> Path:
            folder = tmp_path / f'disk-{size}'
            folder.mkdir()
            mounted = subprocess.run(
                ['mount', '-t', 'tmpfs', '-o', f'size={size}', 'tmpfs', folder],
                capture_output=True,
                text=True,
            )
            if mounted.returncode:
                pytest.skip(f'nothing can be mounted here: {mounted.stderr.strip()}')
            stack.callback(subprocess.run, ['umount', folder], check=True)
            return folder

        yield mount


@pytest.fixture
def write_corpus(tmp_path) -> Callable[..., SmallCorpus]:
    """Writes a split without damage, as one of the kinds of corpora."""

    def write(kind: str, split: str = 'train', pairs: Sequence[tuple[str, str]] = PAIRS):
        prefix = '--' if split == 'train' else f'--{split}-'
        # Single files of other splits have the format of the training corpus.
        is_single = split != 'train' and kind != 'bitext'
        if kind == 'bitext':
            texts = {
                role: ''.join(pair[side] + '\n' for pair in pairs)
                for side, role in enumerate(('source', 'target'))
            }
        elif kind == 'tsv':
            texts = {'tsv': ''.join('\t'.join(pair) + '\n' for pair in pairs)}
        else:
            texts = {'text': ''.join(pair[0] + '\n' for pair in pairs)}
        files = {role: tmp_path / f'{split}.{role}' for role in texts}
        for role, text in texts.items():
            files[role].write_text(text, encoding='utf-8', newline='')
        return SmallCorpus(
            tuple(
                word
                for role in files
                for word in (f'--{split}' if is_single else prefix + role, str(files[role]))
            ),
            tuple(files.values()),
        )

    return write


@pytest.fixture
def build(tokbeam, write_corpus, tmp_path) -> Callable[..., Outcome]:
    """Runs `build` on corpora, with the output in `tmp_path/out`."""

    def run(*corpora: SmallCorpus, extra: Sequence[object] = ()) -> Outcome:
        return tokbeam(
            'build',
            *(word for corpus in corpora for word in corpus.arguments),
            *BUILD_OPTIONS,
            '--output',
            tmp_path / 'out',
            *extra,
        )

    return run


@pytest.fixture(params=['count', 'vocab', 'encode'])
def each_command(request, tmp_path) -> Sequence[object]:
    """Each command beside `build` that reads a corpus, with an output in `tmp_path/out`."""
    vocabulary = tmp_path / 'given.subwords'
    # The last ones spell all text.
    subtokens = ['<pad>_', '<EOS>_', *'abcdefghijklmnopqrstuvwxyz0123456789\\;_u']
    vocabulary.write_text(''.join(f"'{each}'\n" for each in subtokens))
    options = {
        'count': (),
        'vocab': ('--vocab-size', 100),
        'encode': ('--vocab', vocabulary, '--name', 'small'),
    }
    return (request.param, *options[request.param], '--output', tmp_path / 'out' / 'result')
