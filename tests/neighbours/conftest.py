"""What the neighbours open: vocabularies of both kinds, and datasets, as the commands make them."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from environments import python_of
from jobs import succeed
from sample_lines import LINES, SAMPLE


@dataclass(frozen=True)
class Vocabulary:
    """A vocabulary: its file, the folder that others open, and what `tokcore` opens it with."""

    file: Path
    folder: Path
    tokenizer: str


@pytest.fixture(scope='session')
def kept(pytestconfig):
    """The folder of what is made once: environments, and a program."""
    named = os.environ.get('TOKBEAM_NEIGHBOURS')
    return Path(named) if named else Path(pytestconfig.cache.mkdir('neighbours'))


@pytest.fixture(scope='session')
def environment(kept):
    """A function from a name in `REQUIREMENTS` to an interpreter that has its packages."""
    return lambda name: python_of(name, kept)


@pytest.fixture(scope='session')
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp('texts') / 'lines.txt'
    path.write_text('\n'.join(LINES) + '\n', encoding='utf-8')
    return path


@pytest.fixture(scope='session')
def vocabularies(texts, tmp_path_factory) -> dict[str, Vocabulary]:
    """By name: of `vocab` under the names of Hugging Face's libraries and another, and of `build`."""
    folder = tmp_path_factory.mktemp('vocabularies')
    text = ['--text', texts]
    special = ['--special-tokens', '<pad>,</s>']
    wordpiece = ['--scheme', 'wordpiece', '--vocab-size', 2500]
    bpe = ['--scheme', 'bpe', '--vocab-size', 900, *special]
    succeed('vocab', *text, *wordpiece, '--output', folder / 'bert' / 'vocab.txt')
    succeed('vocab', *text, *wordpiece, '--no-lower-case', '--output', folder / 'cased.txt')
    succeed('vocab', *text, *bpe, '--output', folder / 'gpt2' / 'tokenizer.json')
    succeed('vocab', *text, *bpe, '--preset', 'cl100k', '--output', folder / 'cl100k.json')
    o200k = ['--preset', 'cl100k', '--pre-tokenizer', 'o200k', '--unicode-form', 'NFC']
    succeed('vocab', *text, *bpe, *o200k, '--output', folder / 'o200k.json')
    to = ['--to', 'huggingface', '--output', folder / 'exported']
    succeed('export', folder / 'o200k.json', *to)
    one, two = folder / 'one', folder / 'two'
    pair = ['--source', SAMPLE / 'train.en', '--target', SAMPLE / 'train.zh', '--shards', 2]
    succeed('build', *text, *wordpiece, '--name', 'one', '--shards', 2, '--output', one)
    succeed('build', *pair, *bpe, '--name', 'two', '--output', two)
    opened = {
        'bert': ('bert/vocab.txt', 'bert'),
        'cased': ('cased.txt', 'cased.txt.tokenizer'),
        'gpt2': ('gpt2/tokenizer.json', 'gpt2'),
        'cl100k': ('cl100k.json', 'cl100k.json.tokenizer'),
        'exported': ('o200k.json', 'exported'),
        'build': ('one/vocab.one.2500.wordpiece.txt', 'one'),
        'build, inputs': ('two/vocab.two.900.bpe.json.inputs', 'two/tokenizer.inputs'),
        'build, targets': ('two/vocab.two.900.bpe.json.targets', 'two/tokenizer.targets'),
    }
    return {
        name: Vocabulary(
            folder / file,
            folder / place,
            'WordPieceTokenizer' if name in ('bert', 'cased', 'build') else 'BpeTokenizer',
        )
        for name, (file, place) in opened.items()
    }


@pytest.fixture(scope='session')
def dataset_folder(tmp_path_factory) -> Path:
    """The README's first dataset, in eight shards."""
    folder = tmp_path_factory.mktemp('dataset') / 'enzh'
    succeed(
        'build', '--source', SAMPLE / 'train.en', '--target', SAMPLE / 'train.zh',
        '--name', 'enzh', '--vocab-size', 2048, '--shared-vocab', '--shards', 8, '--output', folder,
    )  # fmt: skip
    return folder


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.neighbours)
