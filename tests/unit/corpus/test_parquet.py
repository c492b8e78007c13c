"""Parquet gives the rows that pyarrow reads, known by their numbers, however the file is cut."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from read_format import became_of

from tokcore.corpus.corpus import CorpusFile, TextRange, WorkItem
from tokcore.corpus.declarations import Parquet
from tokcore.corpus.formats import block_rows, read_blocks
from tokcore.errors import InputError
from tokcore.text.normalizers import UNSTRIPPED_LINES


def written(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def test_a_file_is_cut_between_row_groups_and_no_smaller():
    texts = [f'text {number}' for number in range(100)]
    content = written(pa.table({'text': texts}), row_group_size=10)
    assert len(became_of(Parquet(), content, item_bytes=1).blocks) == 10
    [block] = became_of(Parquet(), content, item_bytes=len(content)).blocks
    assert len(block_rows(block, UNSTRIPPED_LINES)) == 100


@pytest.mark.parametrize('name', ['text', 'a.b'])
def test_a_row_group_is_read_in_blocks_of_about_the_size_asked_for(name):
    texts = [f'{number:06d} ' * 100 for number in range(1000)]
    content = written(pa.table({name: texts}), use_dictionary=False)
    chosen = Parquet((name.replace('.', r'\.'),))
    became = became_of(chosen, content, block_bytes=20_000)
    assert became.found == {number: (text,) for number, text in enumerate(texts)}
    assert max(block.held_bytes for block in became.blocks) < 40_000


def test_a_string_that_is_not_utf8_is_told_as_bytes_are():
    damaged = pa.array([b'good', b'bad \xff', b'\xc3']).cast(pa.string(), safe=False)
    became = became_of(Parquet(), written(pa.table({'text': damaged})))
    assert became.found == {0: ('good',), 1: 'invalid_utf8', 2: 'invalid_utf8'}


@pytest.mark.parametrize('kind', [pa.string_view(), pa.binary_view()], ids=str)
def test_views_are_texts_too(kind):
    texts = pa.array(['one', None, '', 'a longer one than twelve bytes'], kind)
    became = became_of(Parquet(), written(pa.table({'text': texts})))
    assert became.found == {0: ('one',), 1: 'null', 3: ('a longer one than twelve bytes',)}


def test_texts_may_hold_line_feeds_and_blanks():
    texts = ['a\nb', '\0', '  a  \r\n', ' \n', '\r', '\u3000']
    became = became_of(Parquet(), written(pa.table({'text': texts})))
    assert became.found == dict(enumerate((text,) for text in texts[:3]))
    assert became.empty == 3


@pytest.mark.parametrize('groups', [0, 1, 3])
def test_a_file_without_rows_has_none(groups):
    kind = pa.schema([('text', pa.string()), ('twice', pa.int8()), ('twice', pa.int8())])
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, kind) as writer:
        for _ in range(groups):
            writer.write_table(kind.empty_table())
    became = became_of(Parquet(), sink.getvalue())
    assert (became.found, became.empty) == ({}, 0)


def test_row_groups_without_rows_among_others_change_no_number():
    table = pa.table({'text': ['one', 'two']})
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema) as writer:
        for part in (table, table.slice(0, 0), table.slice(0, 0), table):
            writer.write_table(part)
    for item_bytes in (1, 1 << 20):
        found = became_of(Parquet(), sink.getvalue(), item_bytes).found
        assert found == {0: ('one',), 1: ('two',), 2: ('one',), 3: ('two',)}


NESTED = pa.table({
    'text': ['x'],
    'pair': pa.array([{'en': 'a', 'zh': 1}]),
    'list': pa.array([['a']]),
    'number': [1],
    'fixed': pa.array([b'ab'], pa.binary(2)),
    'map': pa.array([[('a', 'b')]], pa.map_(pa.string(), pa.string())),
    'codes': pa.array([7]).dictionary_encode(),
})  # fmt: skip


@pytest.mark.parametrize(
    ('field', 'said'),
    [
        ('missing', "corpus has no column 'missing' (--fields); there are text, pair, list"),
        ('pair.fr', "pair of corpus has no column 'fr' (--fields); there are en, zh"),
        (r'pair\.en', "corpus has no column 'pair.en' (--fields)"),
        ('text.en', "text of corpus has no column 'en' (--fields)"),
        ('pair', 'the column pair is struct<en: string, zh: int64>, not text or bytes'),
        ('pair.zh', 'the column pair.zh is int64, not text or bytes'),
        ('number', 'the column number is int64, not text or bytes'),
        ('list', 'not text or bytes; choose another with --fields'),
        ('map', 'the column map is map<'),
        ('map.key', "map of corpus has no column 'key'"),
        ('fixed', 'the column fixed is fixed_size_binary[2]'),
    ],
)
def test_a_column_that_is_none_of_text_is_refused(field, said):
    with pytest.raises(InputError) as refused:
        became_of(Parquet(('text', field)), written(NESTED))
    assert said in str(refused.value)


def test_a_name_that_two_columns_have_is_refused():
    twice = pa.Table.from_arrays([pa.array(['a']), pa.array(['b'])], ['text', 'text'])
    with pytest.raises(InputError, match=r"corpus has several columns 'text' \(--fields\)"):
        became_of(Parquet(), written(twice))


WHOLE = written(pa.table({'text': [f'a text {number}' for number in range(50)]}))


@pytest.mark.parametrize(
    'content',
    [
        b'', b'PAR1', b'some lines\nof text\n', b'PAR1' * 4, WHOLE[:-1], WHOLE[: len(WHOLE) // 2],
        WHOLE[4:], WHOLE + b'\n', WHOLE[:-8] + b'\xff\xff\xff\x7fPAR1', WHOLE[:-4] + b'PARE',
    ],
    ids=range(10),
)  # fmt: skip
def test_what_is_not_a_whole_parquet_file_is_refused(content):
    with pytest.raises(InputError, match='corpus is not a whole Parquet file .* get it again'):
        became_of(Parquet(), content)


def test_a_file_compressed_as_a_whole_is_refused():
    with pytest.raises(InputError, match='corpus is compressed as a whole, .* unpack it'):
        became_of(Parquet(), WHOLE, zipped=True)


def test_an_item_of_row_groups_that_the_file_no_longer_has_is_refused():
    file = CorpusFile('corpus', 'corpus', len(WHOLE), False)
    beyond = TextRange(file, 0, len(WHOLE), skip_lines=1, lines=1)
    item = WorkItem('train', Parquet(), 0, (beyond,))
    with pytest.raises(InputError, match='no longer has the row groups .*; run again'):
        list(read_blocks(item, lambda path: io.BytesIO(WHOLE)))
