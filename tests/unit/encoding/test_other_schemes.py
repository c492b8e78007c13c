"""The engine takes a scheme that is made here: words in lower case, each with one id or unknown."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcore.counts.counting import TokenAccumulator
from tokcore.counts.token_table import TokenTable
from tokcore.encoding import encoder as encoding_encoder
from tokcore.encoding.encoder import RowEncoder
from tokcore.encoding.kernels import larger_workspace, segment_tokens
from tokcore.kernels.bytes import READABLE
from tokcore.kernels.jit import kernel_without_allocation
from tokcore.text.pre_tokenizer import CHUNK_TOKENS, RowPart, scan_tokens
from tokcore.text.rows import Side

START, STOP, UNKNOWN, FIRST_WORD = 101, 102, 100, 3
WORDS = ['the', 'cat', 'sat']


class LowerCase(NamedTuple):
    """The tokens are written here: they are not slices of the rows."""

    buffer: np.ndarray


@scan_tokens.register(LowerCase)
@kernel_without_allocation
def _scan_words(rows, row, position, pre_tokenizer, tokens):
    buffer, count, used = pre_tokenizer.buffer, 0, 0
    while row < len(rows.starts):
        place = rows.starts[row] if position < 0 else position
        if (
            count > len(tokens.starts) - CHUNK_TOKENS
            or used + rows.ends[row] - place > len(buffer) - READABLE
        ):
            return row, position, count
        while place < rows.ends[row]:
            if count > len(tokens.starts) - CHUNK_TOKENS:
                return row, place, count
            first = used
            while place < rows.ends[row] and rows.text[place] != 0x20:
                byte = rows.text[place]
                buffer[used] = byte | 0x20 if 0x41 <= byte <= 0x5A else byte
                used += 1
                place += 1
            if used > first:
                tokens.starts[count], tokens.ends[count] = first, used
                count += 1
            place += 1
        row, position = row + 1, -1
        tokens.row_tokens[row] = count
    return row, position, count


class WhiteSpace:
    def prepare(self, rows):
        longest = int((rows.ends - rows.starts).max(initial=0))
        state = LowerCase(np.zeros(longest + READABLE, np.uint8))
        return state, state.buffer

    def row_parts(self, rows, row, longest):
        place = int(rows.starts[row])
        for word in rows.text[rows.starts[row] : rows.ends[row]].tobytes().split(b' '):
            if word:
                yield RowPart(rows.text, place, place + len(word), len(word) > longest)
            place += len(word) + 1


class Letters(NamedTuple):
    """Words of three letters, one after another."""

    words: np.ndarray


class Ids(NamedTuple):
    ids: np.ndarray
    id_bounds: np.ndarray


@segment_tokens.register(Letters)
@kernel_without_allocation
def _number_words(tokens, missed, model, work):
    work.id_bounds[0] = 0
    for number in range(missed.count):
        token = missed.numbers[number]
        start, end = tokens.starts[token], tokens.ends[token]
        work.ids[number] = UNKNOWN
        for word in range(len(model.words) // 3):
            same = end - start == 3
            for k in range(3):
                same &= tokens.text[start + np.uint64(k)] == model.words[3 * word + k]
            if same:
                work.ids[number] = FIRST_WORD + word
        work.id_bounds[number + 1] = number + 1
    return 0, 0


@larger_workspace.register(Letters)
@kernel_without_allocation
def _no_larger(missed, model, work):
    return work


class WholeWords:
    size = 200
    state = Letters(np.frombuffer(''.join(WORDS).encode(), np.uint8))

    def workspace(self, tokens):
        return Ids(np.empty(tokens, np.int32), np.empty(tokens + 1, np.uint64))

    def segment_long_token(self, part):
        yield np.array([UNKNOWN])

    def describe_failure(self, token, failure):
        raise AssertionError('every token has an id')


def side_of(texts):
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    starts = ends - np.array([len(text) for text in texts], np.int64)
    return Side(np.frombuffer(''.join(texts).encode(), np.uint8), starts, ends)


def ids_of(text):
    numbers = {word: FIRST_WORD + place for place, word in enumerate(WORDS)}
    return [numbers.get(word, UNKNOWN) for word in text.lower().split()]


words = st.sampled_from(['the', 'The', 'CAT', 'sat', 'dog', 'a' * 40])
texts = st.lists(st.lists(words, max_size=30).map(' '.join), min_size=1, max_size=9)


@pytest.mark.parametrize('long_row', [60, 1 << 20], ids=['in parts', 'whole'])
def test_rows_have_the_ids_of_their_words_between_two_others(long_row, monkeypatch):
    monkeypatch.setattr(encoding_encoder, 'LONG_ROW_BYTES', long_row)
    monkeypatch.setattr(encoding_encoder, 'LONG_TOKEN_BYTES', 30)

    @given(texts, st.sampled_from([0, 1 << 16]))
    def check(texts, cache_bytes):
        encoder = RowEncoder(WhiteSpace(), WholeWords(), cache_bytes)
        encoded = encoder.encode_side(side_of(texts), before=[START], after=[STOP])
        rows = np.split(encoded.ids, encoded.offsets[1:-1])
        assert [ids.tolist() for ids in rows] == [[START, *ids_of(text), STOP] for text in texts]

    check()


@given(texts)
def test_words_are_counted_as_the_pre_tokenizer_writes_them(texts):
    sums, side = TokenAccumulator(), side_of(texts)
    sums.add_rows(side.text, side.starts, side.ends, WhiteSpace())
    counted = dict(TokenTable(*sums.finish()).items())
    words = ' '.join(texts).lower().split()
    assert counted == {word: words.count(word) for word in words}
