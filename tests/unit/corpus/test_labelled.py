"""Labels and other extra fields: their values, and rows whose values do not fit, in all formats."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from read_format import became_of, rows_of_block, texts_of

from tokcore.corpus.corpus import INVALID_UTF8, TOO_LONG
from tokcore.corpus.declarations import JsonLines, Labelled, Parquet, Tsv
from tokcore.corpus.fields import UNKNOWN_LABEL, WRONG_TYPE
from tokcore.text.normalizers import STRIPPED_LINES, T2T_LINES, UNSTRIPPED_LINES, StrippedLines

NAMES = ('pos', 'neg', 'o k')
NORMALIZERS = [UNSTRIPPED_LINES, STRIPPED_LINES, StrippedLines(' '), T2T_LINES]
BLANKS = ['', ' ', '\u3000', ' \x1f\x85']


def rows_of(text, labels, names=(), most=1 << 20):
    declared = Labelled(labels=names or None)
    return rows_of_block(declared, text, labels, offsets=(50, 9), max_line_bytes=most)


def labels_of(rows):
    [labels] = rows.extra_features
    assert labels.name == 'targets' and labels.values.dtype == np.int64
    return [text for (text,) in texts_of(rows)], labels.values.tolist()


def test_a_label_is_a_number():
    rows = rows_of(b'a b\n\nc\r\nd', b' 3 \n5\n-1\r\n+7')
    assert labels_of(rows) == (['a b', 'c', 'd'], [3, -1, 7])
    assert rows.offsets.tolist() == [50, 55, 58]
    assert (rows.lines, rows.empty, rows.rejects) == (4, 1, ())


def test_or_the_index_of_a_name():
    rows = rows_of(b'a\nb\nc\n', b'neg\r\npos\n\to k \n', NAMES)
    assert labels_of(rows) == (['a', 'b', 'c'], [1, 0, 2])


@pytest.mark.parametrize(
    ('label', 'names', 'reason'),
    [
        (b'one', (), WRONG_TYPE),
        (b'1.5', (), WRONG_TYPE),
        (b'9223372036854775808', (), WRONG_TYPE),
        (b'', NAMES, UNKNOWN_LABEL),
        (b'0', NAMES, UNKNOWN_LABEL),
        (b'\xff', NAMES, INVALID_UTF8),
        (b'1' * 90, (), TOO_LONG),
    ],
)
def test_what_is_not_a_label_is_rejected_for_that(label, names, reason):
    good = names[0].encode() if names else b'4'
    rows = rows_of(b'a\nb\nc\n', b'%s\n%s\n%s\n' % (good, label, good), names, 80)
    assert labels_of(rows)[0] == ['a', 'c']
    [reject] = rows.rejects
    assert (reject.reason, reject.side, reject.offset) == (reason, 1, 10 + len(good))
    if reason in Labelled.reasons:
        assert f'byte {reject.offset} is' in Labelled(labels=names or None).explain(reject)


# A row without text is empty, whatever its label and other fields are.


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


def options_of(label):
    return {'label': 'l', 'labels': NAMES} if label == 'names' else {'label': f'l:{label}'}


def json_lines(rows, label='int'):
    lines = [json.dumps({'text': text, 'l': value}) for text, value in rows]
    return JsonLines(**options_of(label)), ''.join(f'{line}\n' for line in lines).encode()


def parquet(rows, label='int'):
    texts, values = ([row[part] for row in rows] for part in (0, 1))
    sink = io.BytesIO()
    pq.write_table(pa.table({'text': texts, 'l': values}), sink)
    return Parquet(**options_of(label)), sink.getvalue()


def judged(declared, content, normalizer=UNSTRIPPED_LINES):
    """What became of each row, in their order, and how many rows were empty."""
    became = became_of(declared, content, normalizer=normalizer)
    return [row if isinstance(row, str) else row[0] for row in became.found.values()], became.empty


@pytest.mark.parametrize('normalizer', NORMALIZERS, ids=lambda each: f'{each.name}{each.options}')
@pytest.mark.parametrize('file_of', [tsv, quoted_tsv, labelled, json_lines, parquet])
def test_an_unknown_label_rejects_rows_with_text_alone(file_of, normalizer):
    blank = [(blank, label) for blank in BLANKS for label in ('bad', 'neg')]
    found = judged(*file_of([('a', 'pos'), ('b', 'bad'), *blank], 'names'), normalizer)
    assert found == (['a', 'unknown_label'], len(blank))


@pytest.mark.parametrize('file_of', [tsv, quoted_tsv, labelled])
def test_a_label_that_is_no_number_rejects_rows_with_text_alone(file_of):
    rows = [('a', '1'), ('b', 'x'), *((blank, 'x') for blank in BLANKS)]
    assert judged(*file_of(rows)) == (['a', 'wrong_type'], len(BLANKS))


@pytest.mark.parametrize('value', ['x', None, 1.5, True, [], {}, 1 << 64, '\ud800'])
def test_a_value_of_json_that_does_not_fit(value):
    rows = [('a', 1), ('b', value), *((blank, value) for blank in BLANKS)]
    assert judged(*json_lines(rows)) == (['a', 'wrong_type'], len(BLANKS))
    rows = [('b', '\ud800'), *((blank, '\ud800') for blank in BLANKS)]
    assert judged(*json_lines(rows, 'names')) == (['lone_surrogate'], len(BLANKS))


def test_a_value_of_parquet_that_does_not_fit():
    rows = [('a', 1.0), ('b', float('nan')), ('c', None), *((blank, None) for blank in BLANKS)]
    rows += [(blank, float('inf')) for blank in BLANKS]
    assert judged(*parquet(rows, 'float')) == (['a', 'wrong_type', 'null'], 2 * len(BLANKS))


def test_what_is_not_a_row_is_rejected_first():
    """A line that is not UTF-8, or lacks a field, is rejected even if its text is blank."""
    assert judged(Tsv((0,), label='1'), b' x\n\t1\n \n\xff\n \t\xff\n') == (
        ['missing_column', 'invalid_utf8', 'invalid_utf8'], 2,
    )  # fmt: skip
    lines = b'{"text": ""}\n{"text": "", "label": "\xff"}\n{"text": "", "label": "x"}\n'
    assert judged(JsonLines(label='label', keep=('id',)), lines) == (
        ['missing_field', 'invalid_utf8', 'missing_field'], 0,
    )  # fmt: skip
    assert judged(Labelled(), (b' \n', b'\xff\n')) == (['invalid_utf8'], 0)
