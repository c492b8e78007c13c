"""Added tokens in texts, many at once: those that a search from the left finds, text by text."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.bpe.added_tokens import AddedTokenFinder, Parts
from tokcore.bpe.vocabulary import AddedToken
from tokcore.text.rows import Side

_CONTENTS = ['\t', '\t\t', '<b>', 'é', 'aé']
_OF_MANY_BYTES = [*'123456789', '<b', '12345']


def searched(text: str, contents: list[str]) -> list[tuple[str, int]]:
    """The leftmost, and the longest at one place; -1 for text between them."""
    found, begin, place = [], 0, 0
    while place < len(text):
        at_place = [each for each in contents if text.startswith(each, place)]
        if not at_place:
            place += 1
            continue
        if begin < place:
            found.append((text[begin:place], -1))
        longest = max(at_place, key=len)
        found.append(('', 10 + contents.index(longest)))
        begin = place = place + len(longest)
    return [*found, (text[begin:], -1)] if begin < len(text) or not text else found


@given(
    st.lists(
        st.lists(st.sampled_from(['\t', '<b>', 'é', 'a', 'b', '字', '12', '字' * 20])).map(''.join)
    ),
    st.lists(st.sampled_from(_CONTENTS), unique=True)
    | st.lists(st.sampled_from([*_CONTENTS, *_OF_MANY_BYTES]), unique=True),
    st.booleans(),
)
@example(['b' * before + '<b>\t\t<b' for before in range(59, 70)], _CONTENTS, False)
@example(['b' * before + '<b>123456<b' for before in range(59, 70)], _OF_MANY_BYTES, False)
@example(['\ta\t', '', 'é<b>'], ['\t', '<b>'], True)
def test_texts_are_cut_as_by_a_search(texts, contents, has_one_that_strips):
    tokens = [AddedToken(10 + number, content) for number, content in enumerate(contents)]
    if has_one_that_strips:  # it is nowhere, or where there is no white space
        tokens.append(AddedToken(99, 'b', lstrip=True, rstrip=True))
        texts = [text.replace('\t', '') for text in texts]
    data = [text.encode() for text in texts]
    ends = np.cumsum([*map(len, data)], dtype=np.int64)
    sizes = np.array([*map(len, data)], np.int64)
    side = Side(np.frombuffer(b''.join(data), np.uint8), ends - sizes, ends)
    finder = AddedTokenFinder(tokens)
    parts = finder.cut(Parts.whole(side))
    found = [[] for _ in texts]
    for row, id_, first, start, end in zip(
        parts.rows, parts.ids, parts.is_first, parts.texts.starts, parts.texts.ends, strict=True
    ):
        assert first == (not found[row])
        found[row].append((parts.texts.text[start:end].tobytes().decode(), id_))
    every = [*contents, 'b'] if has_one_that_strips else contents
    expected = [searched(text, every) for text in texts]
    if has_one_that_strips:
        number = 10 + len(contents)
        expected = [[(text, 99 if id_ == number else id_) for text, id_ in row] for row in expected]
    assert found == expected
    for text, row in zip(data, found, strict=True):
        assert finder.may_be_in(text) >= any(id_ >= 0 for _, id_ in row)
