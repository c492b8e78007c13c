"""Texts with line feeds and carriage returns in them, as JSON, Parquet and quoted columns hold them."""

import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dataset_files import manifest_of
from jobs import refuse, succeed, write

from tokcore.subword.text_encoder import SubwordTextEncoder
from tokcore.text.t2t import tokenize

TEXTS = [
    text
    for number in range(40)
    for text in (
        f'hello{number % 7} world\nsecond line {number % 5}',
        f'windows{number % 3} line\r\nand another.\n\n\tindented {number % 4}\n',
        f'old mac\rline {number % 6}',
        f'a plain line {number % 9}',
    )
]


def as_json():
    return ''.join(json.dumps({'text': each}) + '\n' for each in TEXTS).encode()


def as_parquet():
    written = io.BytesIO()
    pq.write_table(pa.table({'text': TEXTS}), written, row_group_size=50)
    return written.getvalue()


def as_quoted():
    written = io.StringIO(newline='')
    writer = csv.writer(written, delimiter='\t', lineterminator='\n', quoting=csv.QUOTE_ALL)
    writer.writerow(['text'])
    writer.writerows([each] for each in TEXTS)
    return written.getvalue().encode()


FORMATS = {
    'jsonl': (as_json, ['--fields', 'text']),
    'parquet': (as_parquet, ['--fields', 'text']),
    'tsv': (as_quoted, ['--quoting', 'csv', '--columns', 'text']),
}


@pytest.fixture(scope='module')
def inputs(tmp_path_factory):
    """By format the options that read the texts."""
    folder = tmp_path_factory.mktemp('inputs')
    return {
        name: [f'--{name}', write(folder / f'texts.{name}', data()), *options]
        for name, (data, options) in FORMATS.items()
    }


LEARNERS = [
    pytest.param(['--learner', 'memory'], id='memory'),
    pytest.param(['--learner', 'beam'], marks=pytest.mark.slow, id='beam'),
]


@pytest.mark.parametrize('learner', LEARNERS)
def test_subwords_are_those_of_tensor2tensor(inputs, tmp_path, t2t_text_encoder, learner):
    texts = [text.replace('\r', '').strip() for text in TEXTS]
    theirs = t2t_text_encoder.SubwordTextEncoder.build_from_generator(texts, 150)
    asked = ['--vocab-size', 150, '--max-subtoken-length', 'none', *learner]
    succeed('vocab', *inputs['jsonl'], *asked, '--output', tmp_path / 'vocab')
    ours = SubwordTextEncoder.load(tmp_path / 'vocab')
    assert '\\10;_' in ours.subtokens
    assert [each or '\n' for each in ours.subtokens] == [*theirs.all_subtoken_strings]
    assert [ours.encode(text) for text in texts] == [theirs.encode(text) for text in texts]


def test_counts_first_then_merged_then_learned_from(inputs, tmp_path):
    counts = tmp_path / 'counts'
    succeed('count', *inputs['parquet'], '--output', counts)
    expected = sum(len(tokenize(text.replace('\r', '').strip())) for text in TEXTS)
    assert manifest_of(counts)['tokens'] == expected
    succeed('count', '--counts', counts, '--output', tmp_path / 'merged')
    learned = ['--vocab-size', 150, '--output']
    for given in ('counts', 'merged'):
        succeed('vocab', '--counts', tmp_path / given, *learned, tmp_path / f'{given}.vocab')
    succeed('vocab', *inputs['jsonl'], *learned, tmp_path / 'vocab')
    assert (tmp_path / 'counts.vocab').read_bytes() == (tmp_path / 'vocab').read_bytes()
    assert (tmp_path / 'merged.vocab').read_bytes() == (tmp_path / 'vocab').read_bytes()


def test_counts_of_gpt2s_tokens_are_merged_with_their_line_feeds(inputs, tmp_path):
    counting = ['count', '--scheme', 'bpe']
    succeed(*counting, *inputs['jsonl'], '--output', tmp_path / 'counts')
    succeed('count', '--counts', tmp_path / 'counts', '--output', tmp_path / 'merged')
    assert manifest_of(tmp_path / 'merged')['tokens'] == manifest_of(tmp_path / 'counts')['tokens']


NMT = ['--scheme', 'bpe', '--preset', 'subword-nmt', '--merges', 20]


@pytest.mark.parametrize(
    ('form', 'place'),
    [('jsonl', ', line 1: the line that starts at byte 0'), ('parquet', ': row 0')],
)
def test_what_a_file_of_codes_cannot_hold_is_refused_at_its_row(inputs, tmp_path, form, place):
    learn = ['vocab', *inputs[form], *NMT, '--output', tmp_path / 'codes']
    said = refuse(*learn)
    assert f'{inputs[form][1]}{place}: a token of it has a line feed' in said
    assert 'leave such rows out with --on-error=skip' in said and 'counts' not in said
    assert not (tmp_path / 'codes').exists()
    succeed(*learn, '--on-error', 'skip')
    [lines] = manifest_of(tmp_path, 'codes.tokbeam.json')['lines']
    assert lines['unstorable_token'] == 120
    assert lines['lines'] == 160 == lines['examples'] + lines['unstorable_token']
    left_out = (tmp_path / 'codes.rejected' / 'train.unstorable_token.jsonl').read_text()
    assert len(left_out.splitlines()) == 120
    # Words between white space hold none, so nothing is left out.
    succeed(*learn, '--pre-tokenizer', 'whitespace', '--overwrite')


def test_counts_of_words_as_earlier_versions_made_them_are_told(tmp_path):
    path = tmp_path / 'counts.parquet'
    pq.write_table(pa.table({'token': ['ka', 'a\nb'], 'count': [4, 5]}), path)
    learn = ['vocab', '--counts', path, '--scheme', 'word', '--vocab-size', 9]
    said = refuse(*learn, '--output', tmp_path / 'vocab')
    assert f"{path} has the token 'a\\nb', and a token with a line feed" in said
    assert 'count the text again' in said
