"""Families of trained models: ids are those of tokenizers 0.23 for all lines of a corpus.

Of the corpus `TOKBEAM_TEST_LINES` lines at most are compared, evenly spread.
"""

import gzip
import hashlib
import json
import os
from pathlib import Path

import pytest
from environments import run_script
from families import FAMILIES, family_file, lines

from tokcore.foreign_tokenizers.files import parse_pretrained
from tokcore.foreign_tokenizers.tokenizer import PretrainedTokenizer

CORPUS = Path(__file__).parents[3] / 'shared' / 'corpora' / 'docs.en.txt.gz'
LINES = int(os.environ.get('TOKBEAM_TEST_LINES', '20000'))
BATCH = 1_000


@pytest.fixture(scope='module')
def texts():
    texts = lines()
    if CORPUS.exists():
        with gzip.open(CORPUS, 'rt', encoding='utf-8', newline='\n') as corpus:
            of_corpus = corpus.read().split('\n')
        texts += of_corpus[:: -(-len(of_corpus) // LINES)]
    return texts


def test_ids_are_those_of_tokenizers(environment, tokenizers, texts, tmp_path):
    files = {family: tmp_path / f'{family}.json' for family in FAMILIES}
    for family, path in files.items():
        path.write_text(family_file(tokenizers, family), encoding='utf-8')
    (tmp_path / 'lines.txt').write_text('\n'.join(texts), encoding='utf-8')
    python = environment('tokenizers 0.23')
    found = run_script(python, 'digests_of_ids.py', tmp_path / 'lines.txt', *files.values())
    assert found['version'] == '0.23.3'
    for family, path in files.items():
        vocabulary = parse_pretrained(path.read_bytes(), str(path))
        ours = PretrainedTokenizer(vocabulary, allow_special_tokens=True)
        theirs = found['digests'][str(path)]
        assert len(theirs) == -(-len(texts) // BATCH)
        for number, digest in enumerate(theirs):
            ids = ours.encode_batch(texts[number * BATCH : (number + 1) * BATCH])
            own = hashlib.sha256(json.dumps(ids).encode()).hexdigest()
            assert own == digest, f'{family}, lines from {number * BATCH}'
