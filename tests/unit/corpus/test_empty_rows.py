"""A row without text is empty, whatever its label and other fields are, in all formats."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from read_format import became_of

from tokcore.corpus.jsonl import JsonLines
from tokcore.corpus.line_formats import Labelled
from tokcore.corpus.parquet import Parquet
from tokcore.corpus.tsv import Tsv
from tokcore.text.normalizers import STRIPPED_LINES, T2T_LINES, UNSTRIPPED_LINES, StrippedLines

NORMALIZERS = [UNSTRIPPED_LINES, STRIPPED_LINES, StrippedLines(' '), T2T_LINES]
NAMES = ('pos', 'neg')
BLANKS = ['', ' ', '\u3000', ' \x1f\x85']


def tsv(rows, label='int', **options):
    content = ''.join(f'{text}\t{value}\n' for text, value in rows).encode()
    if label == 'names':
        return Tsv((0,), label='1', labels=NAMES, **options), content
    return Tsv((0,), label=f'1:{label}', **options), content


def quoted_tsv(rows, label='int'):
    return tsv([(f'"{text}"', value) for text, value in rows], label, quoting='csv')


def labelled(rows, label='int'):
    texts, values = (''.join(f'{row[part]}\n' for row in rows).encode() for part in (0, 1))
    return Labelled(labels=NAMES if label == 'names' else None), (texts, values)


def json_lines(rows, label='int'):
    lines = [json.dumps({'text': text, 'l': value}) for text, value in rows]
    content = ''.join(f'{line}\n' for line in lines).encode()
    if label == 'names':
        return JsonLines(label='l', labels=NAMES), content
    return JsonLines(label=f'l:{label}'), content


def parquet(rows, label='int'):
    texts, values = ([row[part] for row in rows] for part in (0, 1))
    sink = io.BytesIO()
    pq.write_table(pa.table({'text': texts, 'l': values}), sink)
    if label == 'names':
        return Parquet(label='l', labels=NAMES), sink.getvalue()
    return Parquet(label=f'l:{label}'), sink.getvalue()


def judged(declared, content, normalizer):
    """What became of each row, in their order, and how many rows were empty."""
    became = became_of(declared, content, normalizer=normalizer)
    return [row if isinstance(row, str) else row[0] for row in became.found.values()], became.empty


@pytest.mark.parametrize('normalizer', NORMALIZERS, ids=lambda each: f'{each.name}{each.options}')
@pytest.mark.parametrize('file_of', [tsv, quoted_tsv, labelled, json_lines, parquet])
def test_an_unknown_label_rejects_rows_with_text_alone(file_of, normalizer):
    rows = [
        ('a', 'pos'),
        ('b', 'bad'),
        *((blank, label) for blank in BLANKS for label in ('bad', 'neg')),
    ]
    declared, content = file_of(rows, 'names')
    assert judged(declared, content, normalizer) == (['a', 'unknown_label'], len(BLANKS) * 2)


@pytest.mark.parametrize('file_of', [tsv, quoted_tsv, labelled])
def test_a_label_that_is_no_number_rejects_rows_with_text_alone(file_of):
    rows = [('a', '1'), ('b', 'x'), *((blank, 'x') for blank in BLANKS)]
    declared, content = file_of(rows)
    assert judged(declared, content, UNSTRIPPED_LINES) == (['a', 'wrong_type'], len(BLANKS))


@pytest.mark.parametrize('value', ['x', None, 1.5, True, [], {}, 1 << 64, '\ud800'])
def test_a_value_of_json_that_does_not_fit(value):
    declared, content = json_lines([('a', 1), ('b', value), *((blank, value) for blank in BLANKS)])
    assert judged(declared, content, UNSTRIPPED_LINES) == (['a', 'wrong_type'], len(BLANKS))
    declared, content = json_lines(
        [('b', '\ud800'), *((blank, '\ud800') for blank in BLANKS)], 'names'
    )
    assert judged(declared, content, UNSTRIPPED_LINES) == (['lone_surrogate'], len(BLANKS))


def test_a_value_of_parquet_that_does_not_fit():
    rows = [('a', 1.0), ('b', float('nan')), ('c', None), *((blank, None) for blank in BLANKS)]
    declared, content = parquet([*rows, *((blank, float('inf')) for blank in BLANKS)], 'float')
    assert judged(declared, content, UNSTRIPPED_LINES) == (
        ['a', 'wrong_type', 'null'],
        2 * len(BLANKS),
    )


def test_what_is_no_row_is_rejected_first():
    """A line that is not UTF-8, or lacks a field, is rejected even if its text is blank."""
    label = {'label': '1'}
    assert judged(Tsv((0,), **label), b' x\n\t1\n \n\xff\n \t\xff\n', UNSTRIPPED_LINES) == (
        ['missing_column', 'invalid_utf8', 'invalid_utf8'],
        2,
    )
    lines = b'{"text": ""}\n{"text": "", "label": "\xff"}\n{"text": "", "label": "x"}\n'
    declared = JsonLines(label='label', keep=('id',))
    assert judged(declared, lines, UNSTRIPPED_LINES) == (
        ['missing_field', 'invalid_utf8', 'missing_field'],
        0,
    )
    declared, content = labelled([(' ', '\0')])
    assert judged(declared, (content[0], b'\xff\n'), UNSTRIPPED_LINES) == (['invalid_utf8'], 0)


def test_an_empty_side_makes_a_pair_empty():
    content = b''.join(
        json.dumps({'a': source, 'b': target}).encode() + b'\n'
        for source, target in [('x', '\u3000'), (' \r\n', 'y'), (' x\r\n', 'y\r')]
    )
    for normalizer, texts in [(UNSTRIPPED_LINES, (' x\r\n', 'y\r')), (STRIPPED_LINES, ('x', 'y'))]:
        became = became_of(JsonLines(fields=('a', 'b')), content, normalizer=normalizer)
        assert [*became.found.values()] == [texts] and became.empty == 2
