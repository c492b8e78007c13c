"""Commands run in this process, over small corpora that tests spoil."""

import logging
from collections.abc import Callable, Sequence

import pytest
from command_outcome import Outcome
from small_corpus import BUILD_OPTIONS, PAIRS, SmallCorpus

from pipelines.cli.main import main


@pytest.fixture
def tokbeam(capfd) -> Callable[..., Outcome]:
    """Runs a command line in this process."""

    def run(*arguments: object) -> Outcome:
        capfd.readouterr()
        root = logging.getLogger()
        handlers = root.handlers[:]
        try:
            status = main([str(argument) for argument in arguments])
        finally:
            root.handlers[:] = handlers
        return Outcome(status, capfd.readouterr().err)

    return run


@pytest.fixture
def write_corpus(tmp_path) -> Callable[..., SmallCorpus]:
    """Writes a sound split of a kind."""

    def write(kind: str, split: str = 'train', pairs: Sequence[tuple[str, str]] = PAIRS):
        prefix = '--' if split == 'train' else f'--{split}-'
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
            tuple(word for role in files for word in (prefix + role, str(files[role]))),
            tuple(files.values()),
        )

    return write


@pytest.fixture
def build(tokbeam, write_corpus, tmp_path) -> Callable[..., Outcome]:
    """Builds from the corpora given into `tmp_path/out`."""

    def run(*corpora: SmallCorpus, extra: Sequence[object] = ()) -> Outcome:
        return tokbeam(
            'build',
            *(word for corpus in corpora for word in corpus.arguments),
            *BUILD_OPTIONS,
            '--output', tmp_path / 'out',
            *extra,
        )

    return run
