"""Statistics of blocks, and checksums of ranges that join to that of the file."""

import gzip
import io
import json
import os

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.corpus import stats
from tokcore.corpus.corpus import (
    INVALID_UTF8,
    Block,
    BlockText,
    CorpusFile,
    ReadRange,
    Reject,
    Split,
)
from tokcore.corpus.declarations import Bitext, PlainText
from tokcore.corpus.formats import block_rows
from tokcore.corpus.stats import (
    MOST_UNKNOWN_WORDS,
    LineTally,
    RangeChecksum,
    TextSummary,
    add_tallies,
    block_checksums,
    block_stats,
    combine_crc32c,
    join_checksums,
    reject_error,
)
from tokcore.text.normalizers import UNSTRIPPED_LINES


def test_records_of_old_stay_what_they_were():
    record = LineTally('train', 3, 2, 1).record()
    assert record == {
        'split': 'train', 'lines': 3, 'examples': 2, 'empty': 1, 'invalid_utf8': 0,
        'missing_column': 0,
    }  # fmt: skip
    assert LineTally.of_record(record) == LineTally('train', 3, 2, 1)


def test_tallies_add_up():
    first = LineTally('train', 3, 3, 0, {}, 1, 10, 2, {'a': 2})
    second = LineTally('train', 2, 2, 0, {}, 0, 5, 3, {'b': 2, 'a': 1})
    total = add_tallies('train', [first, LineTally('dev', 1, 1, 0), second])
    assert total == LineTally('train', 5, 5, 0, {}, 1, 15, 5, {'a': 3, 'b': 2})
    assert list(total.unknown_words) == ['a', 'b']
    assert add_tallies('dev', [LineTally('dev', 1, 1, 0)]).ids is None


def test_only_the_commonest_words_are_kept():
    words = {f'{number:05d}': 1 for number in range(2 * MOST_UNKNOWN_WORDS)}
    total = add_tallies('train', [LineTally('train', 0, 0, 0, {}, 0, 1, 1, words)])
    assert list(total.unknown_words) == sorted(words)[:MOST_UNKNOWN_WORDS]


def crc32c_by_bits(data):
    """The definition: division by Castagnoli's polynomial, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_a_rejected_line_of_a_file_whose_name_is_not_utf8_is_recorded():
    name = os.fsdecode(b'caf\xe9.txt')
    split = Split('train', PlainText(), ((CorpusFile(name, name, 2, False),),))
    block = Block('train', PlainText(), 0, (BlockText(0, b'\xff\n'),))
    rows = block_rows(block, UNSTRIPPED_LINES)
    [rejected] = block_stats(block, rows, (split,), 'skip').rejected
    assert json.loads(rejected.json_lines)['file'] == name


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_two_checksums_combine_to_that_of_both(first, second):
    combined = combine_crc32c(google_crc32c.value(first), google_crc32c.value(second), len(second))
    assert combined == google_crc32c.value(first + second) == crc32c_by_bits(first + second)


@given(*[st.integers(0, 2**32 - 1)] * 3, *[st.integers(0, 2**50)] * 2)
def test_combining_is_associative_for_lengths_beyond_memory(first, second, third, two, three):
    left = combine_crc32c(combine_crc32c(first, second, two), third, three)
    right = combine_crc32c(first, combine_crc32c(second, third, three), two + three)
    assert left == right


def checksums(text, cuts):
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [
        RangeChecksum('train', 3, 1, start, end - start, google_crc32c.value(text[start:end]))
        for start, end in zip(places, places[1:], strict=False)
    ]


@given(st.binary(max_size=200), st.lists(st.integers(0, 200)), st.randoms())
def test_checksums_join_in_any_order_however_the_text_was_cut(text, cuts, random):
    found = checksums(text, cuts)
    random.shuffle(found)
    assert join_checksums(found, len(text)) == TextSummary(len(text), google_crc32c.value(text))


def test_what_was_lost_or_read_twice_is_named():
    found = checksums(b'abcdefghi', [3, 6])
    with pytest.raises(ValueError, match=r"bytes 3 to 6 of .*\('train', 3, 1\) were lost"):
        join_checksums([found[0], found[2]])
    with pytest.raises(ValueError, match='bytes 0 to 3 .* lost'):
        join_checksums(found[1:])
    with pytest.raises(ValueError, match='bytes 3 to 6 .* read twice'):
        join_checksums([*found, found[1]])
    with pytest.raises(ValueError, match='6 of 9 bytes'):
        join_checksums(found[:2], 9)
    with pytest.raises(ValueError, match='two files'):
        join_checksums([found[0], RangeChecksum('train', 4, 1, 3, 1, 0)])


def test_no_checksums_are_an_empty_text():
    assert join_checksums([]) == TextSummary(0, 0)
    with pytest.raises(ValueError, match='0 of 5 bytes'):
        join_checksums([], 5)


def test_a_pair_gives_a_checksum_for_each_side():
    block = Block('dev', Bitext(), 2, (BlockText(10, b'abc\n'), BlockText(7, b'de\n')))
    assert block_checksums(block) == (
        RangeChecksum('dev', 2, 0, 10, 4, google_crc32c.value(b'abc\n'), [[0, 1]]),
        RangeChecksum('dev', 2, 1, 7, 3, google_crc32c.value(b'de\n'), [[0, 1]]),
    )


def error_of(text, offset, zipped=False, **block):
    """What is said of a rejected line that begins at a byte of a text."""
    stored = gzip.compress(text) if zipped else text
    split = Split('train', PlainText(), ((CorpusFile('a', 'a', len(stored), zipped),),))
    block = Block('train', PlainText(), 0, (BlockText(0, text),), **block)
    reject = Reject(INVALID_UTF8, 0, offset, offset, b'')
    return str(reject_error(reject, block, (split,), lambda path: io.BytesIO(stored)))


@given(
    st.lists(st.sampled_from([b'', b'a', b'\r', b'\xff' * 70]), min_size=1, max_size=20),
    st.booleans(),
    st.data(),
)
def test_an_error_tells_the_number_of_the_line(lines, zipped, data):
    number = data.draw(st.integers(0, len(lines) - 1))
    offset = sum(len(line) + 1 for line in lines[:number])
    assert error_of(b'\n'.join(lines), offset, zipped).startswith(
        f'a, line {number + 1}: invalid UTF-8 at byte {offset}, '
    )


def test_lines_are_not_counted_where_that_would_take_long_or_mean_nothing(monkeypatch):
    text = b'a\n' * 10
    assert error_of(text, 20).startswith('a, line 11: ')
    assert error_of(text, 20, read_ranges=(ReadRange(0, 0, 40, 0),)).startswith('a: ')
    assert error_of(text, 30).startswith('a: ')  # the file is shorter now
    monkeypatch.setattr(stats, '_MOST_NUMBERED', 19)
    assert error_of(text, 20).startswith('a: ')
