"""Added tokens in texts, many at once: those that a search from the left finds, text by text."""

import numpy as np
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from tokcore.bpe.added_tokens import AddedTokenFinder, Parts
from tokcore.bpe.vocabulary import AddedToken
from tokcore.text.patterns import WHITE_SPACE
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


def is_word(character: str) -> bool:
    return bool(regex.match(r'[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]', character))


def cut(text: str, tokens: list[AddedToken]) -> list[tuple[int, int, int]]:
    """The plain form of `find`, by characters."""
    matches, place = [], 0
    while place < len(text):
        here = [token for token in tokens if text.startswith(token.content, place)]
        longest = max(here, key=lambda token: len(token.content), default=None)
        if longest is not None:
            matches.append((place, longest))
        place += len(longest.content) if longest else 1
    parts, done = [], 0
    for start, token in matches:
        end = start + len(token.content)
        if token.single_word and (is_word(text[:start][-1:]) or is_word(text[end : end + 1])):
            continue
        if token.lstrip:
            start = max(len(text[:start].rstrip(WHITE_SPACE)), done)
        if token.rstrip:
            end = len(text) - len(text[end:].lstrip(WHITE_SPACE))
        if done < start:
            parts.append((done, start, -1))
        parts.append((start, end, token.id))
        done = end
    return parts + [(done, len(text), -1)] if done < len(text) or not parts else parts


@given(
    st.lists(st.sampled_from([*'a_1²é字<\t\n\u3000\xa0 \x1c\u200d', '<b>', '\n\n'])).map(''.join),
    st.lists(
        st.tuples(st.sampled_from([*_CONTENTS, '\n', ' ']), *[st.booleans()] * 3),
        unique_by=lambda token: token[0],
    ),
)
@example('<b> \n\n a', [('<b>', False, False, True), ('\n', False, False, False)])
@example('<b> \n\n a', [('<b>', False, False, True), ('\n', False, True, False)])
@example('<b> \n\n a', [('<b>', False, False, True), ('\n', True, False, False)])
@example('<b> \n\n a', [('<b>', False, False, True), ('\n', False, False, True)])
def test_flags_are_followed_one_match_after_another(text, drawn):
    tokens = [
        AddedToken(number, content, single_word=word, lstrip=left, rstrip=right)
        for number, (content, word, left, right) in enumerate(drawn)
    ]
    places = [len(text[:place].encode()) for place in range(len(text) + 1)]
    found = AddedTokenFinder(tokens).find(text.encode())
    assert found == [(places[start], places[end], id_) for start, end, id_ in cut(text, tokens)]
