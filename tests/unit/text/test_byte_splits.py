"""Splits of byte-level text: the tokens that the splits find one after another, in plain Python."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scanned_tokens import laid_out

from tokcore.text.byte_level import spelled
from tokcore.text.pre_tokenizer import RowTokens, TextRows
from tokcore.text.regex_splits import ByteSplitPreTokenizer, Split, SplitPreTokenizer, cut
from tokcore.text.split_sequence import pattern_pre_tokenizer

KERNEL = pattern_pre_tokenizer('gpt2')
WORDS = SplitPreTokenizer((Split(r'\s+'),))
FIRST = {
    'a kernel': (KERNEL, KERNEL.tokens),
    'expressions': (WORDS, WORDS.tokens),
    'nothing': (RowTokens(), lambda text: [text]),
}
SPLITS = {
    'Falcon': (Split(r'\p{N}+'), Split('[0-9][0-9][0-9]')),
    'removed': (Split('²', 'Removed'),),
    'merged': (Split('[Ã-å]', 'MergedWithPrevious'), Split('¼', 'MergedWithNext')),
}
TEXTS = st.lists(
    st.text("a1234567890é²³¼½٣中文🙂\u0301 \t!,'", max_size=40) | st.text(st.characters(exclude_categories=['Cs'])),
    max_size=5,
)  # fmt: skip


def plain(text, words, splits):
    tokens = [word.encode() for word in words(text) if word]
    return [token[start:end] for token in tokens for start, end in cut(spelled(token), splits)]


def prepared(rows, pre_tokenizer):
    listed, text = pre_tokenizer.prepare(rows)
    tokens = [
        text[start:end].tobytes()
        for start, end in zip(listed.starts.tolist(), listed.ends.tolist(), strict=True)
    ]
    bounds = listed.row_tokens.tolist()
    return [tokens[first:last] for first, last in zip(bounds, bounds[1:], strict=False)]


@pytest.mark.parametrize('splits', SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize(('first', 'words'), FIRST.values(), ids=FIRST)
def test_tokens(first, words, splits):
    pre_tokenizer = ByteSplitPreTokenizer(first, splits)

    @given(TEXTS)
    @example(['', 'x²y 12345 ²²', ''])
    def same(texts):
        rows = laid_out(texts)
        expected = [plain(text, words, splits) for text in texts]
        assert prepared(rows, pre_tokenizer) == expected
        for number, tokens in enumerate(expected):
            assert parts_joined(rows, number, pre_tokenizer) == tokens

    same()


def parts_joined(rows, row, pre_tokenizer):
    """The tokens of a row by its parts, of which those with several tokens are rows."""
    tokens = []
    for part in pre_tokenizer.row_parts(rows, row, 8):
        if part.is_long_token:
            tokens.append(part.text[part.start : part.end].tobytes())
        else:
            bounds = (np.array([each], np.int64) for each in (part.start, part.end))
            [of_part] = prepared(TextRows(part.text, *bounds), pre_tokenizer)
            tokens += of_part
    return tokens
