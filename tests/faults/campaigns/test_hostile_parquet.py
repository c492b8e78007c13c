"""Parquet that is damaged, or far larger in memory than as a file."""

import base64
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile_counts import count

pytestmark = pytest.mark.slow


def parquet_bytes(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


TEXTS = pa.table({'text': [f'the text of row {number}' for number in range(1000)]})


def test_parquet_cut_anywhere(lane, tmp_path):
    whole = parquet_bytes(TEXTS, row_group_size=100)
    for size in (0, 3, 4, 100, len(whole) // 2, len(whole) - 9, len(whole) - 4, len(whole) - 1):
        (tmp_path / 'a.parquet').write_bytes(whole[:size])
        ended = count(lane, tmp_path, '--parquet', 'a.parquet')
        assert 'a.parquet' in ended.complaints[0]


def test_parquet_with_a_damaged_page(lane, tmp_path):
    whole = bytearray(parquet_bytes(TEXTS, compression='gzip', use_dictionary=False))
    whole[len(whole) // 3 : len(whole) // 3 + 50] = bytes(50)
    (tmp_path / 'a.parquet').write_bytes(whole)
    ended = count(lane, tmp_path, '--parquet', 'a.parquet')
    assert 'a.parquet' in ended.complaints[0]


@pytest.mark.parametrize('rows', [0, 1])
def test_parquet_with_empty_row_groups(lane, tmp_path, rows):
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, TEXTS.schema) as writer:
        writer.write_table(TEXTS.slice(0, 0))
        writer.write_table(TEXTS.slice(0, rows))
        writer.write_table(TEXTS.slice(0, 0))
    (tmp_path / 'a.parquet').write_bytes(sink.getvalue())
    ended = count(lane, tmp_path, '--parquet', 'a.parquet', statuses=(0 if rows else 2,))
    assert rows or 'empty' in ended.complaints[0]


@pytest.mark.parametrize('codec', ['snappy', 'gzip', 'brotli', 'lz4', 'zstd'])
@pytest.mark.parametrize('use_dictionary', [False, True])
def test_a_page_damaged_in_any_codec(lane, tmp_path, codec, use_dictionary):
    whole = bytearray(parquet_bytes(TEXTS, compression=codec, use_dictionary=use_dictionary))
    size = pq.read_metadata(io.BytesIO(whole)).row_group(0).column(0).total_compressed_size
    whole[24 : size - 16] = b'\xff' * (size - 40)
    (tmp_path / 'a.parquet').write_bytes(whole)
    ended = count(lane, tmp_path, '--parquet', 'a.parquet')
    assert 'a.parquet is not a whole Parquet file' in ended.complaints[0]


def test_a_page_that_is_not_what_its_checksum_says(lane, tmp_path):
    for write_page_checksum in (False, True):
        whole = parquet_bytes(
            TEXTS,
            compression='none',
            use_dictionary=False,
            write_page_checksum=write_page_checksum,
            write_statistics=False,
        )
        assert whole.count(b'row 17') > 1
        (tmp_path / 'a.parquet').write_bytes(whole.replace(b'row 17', b'now 17', 1))
        statuses = (2,) if write_page_checksum else (0,)
        ended = count(lane, tmp_path, '--parquet', 'a.parquet', '--overwrite', statuses=statuses)
    assert 'a.parquet is not a whole Parquet file' in ended.complaints[0]
    assert 'checksum' in ended.complaints[0].lower()


# Some bits of its footer are flipped: a column's statistics do not go with its schema any more.
BAD_STATISTICS = base64.b64decode(
    'UEFSMRUEFVoVRkwVBBUAEgAA+wUfAAAAbGluZSBlLW1haWwgdGhlChAAoAYAAADnrKwgb2YVBhUKFQpcFQQVABUEFRAV'
    'BBUAEhwAAAAEAgEDAhUEFSAVGkwVBBUAEgAAEwABAIABAAAAAAAAABUGFQoVClwVBBUAFQQVEBUEFQASHAAAAAQBAQMC'
    'FQQZTDUAGAZzY2hlbWEVBAA1BhgDZG9jFQIAFQwlAhgEdGV4dCUATBwAAAAVBCUCGAJpZAAWBBkcGSwmABwVDBk1AAYQ'
    'GSgDZG9jBHRleHQVDhYEFrABFpwBJmomCCksFQQVABUCABUAFRAVAgA8FkoZBhk2AAAEAAAAJgAcFQQZNQAGEBkYAmlk'
    'FQ4WBBZ2FnAm2gEmpAEpLBUEFQAVAgAVABUQFQIAPCkGGSYABAAAABamAhYEJggWjAIAGRwYDEFSUk9XOnNjaGVtYRig'
    'Ai8vLy8vOUFBQUFBUUFBQUFBQUFLQUF3QUJnQUZBQWdBQ2dBQUFBQUJCQUFNQUFBQUNBQUlBQUFBQkFBSUFBQUFCQUFB'
    'QUFJQUFBQThBQUFBQkFBQUFLVC8vLzhBQUFFQ0VBQUFBQndBQUFBRUFBQUFBQUFBQUFJQUFBQnBaQUFBQ0FBTUFBZ0FC'
    'd0FJQUFBQUFBQUFBVUFBQUFEWS8vLy9BQUFCRFJRQUFBQVlBQUFBQkFBQUFBRUFBQUFnQUFBQUF3QUFBR1J2WXdESS8v'
    'Ly9FQUFVQUFnQUJnQUhBQXdBQUFBUUFCQUFBQUFBQUFFRkVBQUFBQndBQUFBRUFBQUFBQUFBQUFRQUFBQjBaWGgwQUFB'
    'QUFBUUFCQUFFQUFBQQAYIHBhcnF1ZXQtY3BwLWFycm93IHZlcnNpb24gMjUuMC4xGSwcAAAcAAAAHAIAAFBBUjE='
)


def test_a_footer_whose_statistics_do_not_go_with_its_schema(lane, tmp_path):
    """Arrow ends the process that asks for that column's metadata."""
    (tmp_path / 'a.parquet').write_bytes(BAD_STATISTICS)
    ended = count(lane, tmp_path, '--parquet', 'a.parquet', '--fields', 'doc.text')
    assert 'a.parquet is not a whole Parquet file' in ended.complaints[0]
    assert 'get it again' in ended.complaints[0]


@pytest.mark.parametrize('nested', [False, True])
@pytest.mark.parametrize('kind', [pa.string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_a_dictionary_of_long_strings_is_never_spread_out_as_a_whole(lane, tmp_path, kind, nested):
    """200 rows of one string of 5 MiB: a gigabyte of text, of a file of far less."""
    texts = pa.array(['a word ' * 750_000], pa.string()).take(pa.array([0] * 100))
    column = texts.cast(kind)
    if nested:
        column = pa.StructArray.from_arrays([column], ['text'])
    sink = io.BytesIO()
    table = pa.table({'doc' if nested else 'text': column})
    with pq.ParquetWriter(sink, table.schema) as writer:
        for _ in range(2):
            writer.write_table(table)
    (tmp_path / 'a.parquet').write_bytes(sink.getvalue())
    field = 'doc.text' if nested else 'text'
    count(lane, tmp_path, '--parquet', 'a.parquet', '--fields', field, statuses=(0,))
    [lines] = json.loads((tmp_path / 'counts' / 'tokbeam.json').read_bytes())['lines']
    assert lines['examples'] == 200


def test_long_strings_after_many_short_ones(lane, tmp_path):
    """Most rows of a row group of 300 MiB are short, and all others are at its end."""
    texts = ['short'] * 20_000 + [f'{number} ' + 'a word ' * 750_000 for number in range(60)]
    table = pa.table({'text': texts})
    whole = parquet_bytes(table, use_dictionary=False, write_batch_size=1)  # pages are small
    (tmp_path / 'a.parquet').write_bytes(whole)
    count(lane, tmp_path, '--parquet', 'a.parquet', statuses=(0,))
