"""Published vocabularies cut down to the corpora: their sizes, and that no line changes.

The sizes are those of docs/recipe-published-tokenizer.md.
"""

import gzip
import itertools
import json
import pathlib

import pytest
import tokenizer_files
from jobs import succeed
from tokenizer_files import RANKS, TOKENIZER_JSON

import tokcore

pytestmark = [pytest.mark.files, pytest.mark.corpora]

CORPORA = pathlib.Path(__file__).parents[3] / 'shared' / 'corpora'
FILES = {'docs': 'docs.en.txt.gz', 'enzh': 'enzh.tsv.gz', 'poetry': 'poetry.zh.txt.gz'}
SIZES = {
    'cl100k': {'docs': 68_762, 'enzh': 42_853, 'poetry': 1_348, 'all': 73_985},
    'o200k': {'docs': 82_431, 'enzh': 49_945, 'poetry': 4_726, 'all': 91_240},
    'llama3': {'docs': 75_885, 'enzh': 46_221, 'poetry': 4_297, 'all': 82_175},
}
BATCH = 20_000
OF_TOKENIZERS = 10
"""One batch of so many is also encoded by tokenizers, which is slower."""


def published(name, folder):
    """The tokenizer.json of a model, of ranks as `export` makes it."""
    try:
        if name == 'llama3':
            path = folder / 'tokenizer.json'
            path.write_bytes(tokenizer_files.fetched(TOKENIZER_JSON[name]))
            return path
        ranks = folder / f'{name}_base.tiktoken'
        ranks.write_bytes(tokenizer_files.fetched(RANKS[name].place))
    except LookupError as error:
        pytest.skip(str(error))
    succeed('export', ranks, '--to', 'huggingface', '--output', folder / 'exported')
    return folder / 'exported' / 'tokenizer.json'


def batches(paths):
    for path in paths:
        with gzip.open(path, 'rt', encoding='utf-8', newline='\n') as file:
            while lines := [line.rstrip('\n') for line in itertools.islice(file, BATCH)]:
                yield lines


@pytest.mark.parametrize('name', SIZES)
def test_no_line_of_the_corpora_changes(name, tmp_path, tokenizers):
    paths = [CORPORA / file for file in FILES.values()]
    if not all(path.exists() for path in paths):
        pytest.skip(f'no corpora in {CORPORA}')
    old = published(name, tmp_path)
    bpe = ['--scheme', 'bpe', '--pre-tokenizer', name]
    counts = {corpus: tmp_path / f'counts.{corpus}' for corpus in FILES}
    for corpus, path in zip(FILES, paths, strict=True):
        succeed('count', '--text', path, *bpe, '--output', counts[corpus])
    whole = tmp_path / 'counts.all'
    succeed('count', '--counts', *counts.values(), *bpe, '--output', whole)
    sizes = {}
    for corpus, folder in {**counts, 'all': whole}.items():
        output = tmp_path / corpus / 'tokenizer.json'
        said = succeed('vocab', '--shrink', old, '--counts', folder, '--output', output)
        assert 'pieces change' not in said
        ids = json.loads((tmp_path / corpus / 'tokenizer.json.ids.json').read_text())
        sizes[corpus] = len(ids)
    assert sizes == SIZES[name]
    new_ids, new = dict(ids), tmp_path / 'all' / 'tokenizer.json'
    ours = [tokcore.load_tokenizer(path) for path in (old, new)]
    theirs = [tokenizers.Tokenizer.from_file(str(path)) for path in (old, new)]
    for tokenizer in theirs:
        tokenizer.encode_special_tokens = True
    lines = 0
    for number, batch in enumerate(batches(paths)):
        before, after = (tokenizer.encode_batch(batch) for tokenizer in ours)
        for old_row, new_row in zip(before, after, strict=True):
            assert [new_ids[id_] for id_ in old_row] == [*new_row]
        if number % OF_TOKENIZERS == 0:
            rows = [row.ids for row in theirs[1].encode_batch(batch)]
            assert rows == [[*row] for row in after]
            rows = [row.ids for row in theirs[0].encode_batch(batch)]
            assert rows == [[*row] for row in before]
        lines += len(batch)
    assert lines == 1_374_155
