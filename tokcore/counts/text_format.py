"""Token counts from text: on each line a token, a TAB or a space, and its count."""

import numpy as np

from tokcore.compiled.compilation import kernel_without_allocation, read_only
from tokcore.compiled.ragged_bytes import pick_ranges
from tokcore.corpus.formats.line_kernels import line_bounds
from tokcore.counts.hash_table_kernels import LARGEST_COUNT
from tokcore.counts.token_table import TokenTable, distinct_table
from tokcore.errors import InputError
from tokcore.text.t2t_lines import strip_start
from tokcore.text.unicode_tables import whitespace_table
from tokcore.text.utf8_checking import check_rows

_GOOD = 0
_NOT_UTF8 = 1
_NO_COUNT = 2
_NO_TOKEN = 3
_TOO_LARGE = 4

_REASONS = {
    _NOT_UTF8: 'is not valid UTF-8; convert the file to UTF-8',
    _NO_COUNT: 'does not end with a TAB or a space and a count in decimal digits; write it so',
    _NO_TOKEN: 'has no token before its count; give it one or delete the line',
    _TOO_LARGE: 'has a count above 2^63 - 1; make it smaller',
}


@kernel_without_allocation
def find_separator(data, start, end):
    """Where the last TAB of data[start:end] is, else its last space, else -1."""
    space = -1
    for position in range(end - 1, start - 1, -1):
        if data[position] == 0x09:
            return position
        if data[position] == 0x20 and space < 0:
            space = position
    return space


@kernel_without_allocation
def parse_counts(data, lines, damaged, whitespace, starts, ends, counts):
    """Cuts each line into token and count; returns (lines, tokens, verdict).

    `lines` is (starts, ends), int64[lines] each, without their '\\n'.

    It stops before the first line that is not good, so `lines` is then its index. Blank lines give
    no token.
    """
    line_starts, line_ends = lines
    tokens = 0
    for line in range(len(damaged)):
        if damaged[line]:
            return line, tokens, _NOT_UTF8
        start = line_starts[line]
        end = line_ends[line]
        if strip_start(data, start, end, whitespace) == end:
            continue
        if end > start and data[end - 1] == 0x0D:
            end -= 1
        separator = find_separator(data, start, end)
        if separator < 0 or separator + 1 == end:
            return line, tokens, _NO_COUNT
        count = np.int64(0)
        for position in range(separator + 1, end):
            digit = np.int64(data[position]) - 0x30
            if digit < 0 or digit > 9:
                return line, tokens, _NO_COUNT
            if count > (LARGEST_COUNT - digit) // 10:
                return line, tokens, _TOO_LARGE
            count = count * 10 + digit
        if separator == start:
            return line, tokens, _NO_TOKEN
        starts[tokens] = start
        ends[tokens] = separator
        counts[tokens] = count
        tokens += 1
    return len(damaged), tokens, _GOOD


def read_counts_text(lines: bytes, name: str) -> TokenTable:
    """Returns the table of a text of counts: `b'the 12\\nof\\t7\\n'` gives the: 12, of: 7.

    Each line is split at its last TAB or else its last space, the token taken as it stands; repeats
    are added up, a '\\r' before the '\\n' is dropped and blank lines are passed over. Raises
    InputError, with the file's name and the line, for any other line and for a sum past 2^63 - 1.
    """
    data = np.frombuffer(lines, np.uint8)
    found = tuple(map(read_only, line_bounds(data)))
    size = len(found[0])
    damaged = np.zeros(size, np.uint8)
    check_rows(data, *found, damaged)
    starts = np.empty(size, np.int64)
    ends = np.empty(size, np.int64)
    counts = np.empty(size, np.int64)
    line, tokens, verdict = parse_counts(
        data, found, read_only(damaged), whitespace_table(), starts, ends, counts
    )
    if verdict != _GOOD:
        raise InputError(f'{name}: line {line + 1} {_REASONS[verdict]}')
    packed, offsets = pick_ranges(data, read_only(starts[:tokens]), read_only(ends[:tokens]))
    try:
        return distinct_table(packed, offsets, counts[:tokens])
    except OverflowError as error:
        raise InputError(f'{name}: {error}; make them smaller') from error
