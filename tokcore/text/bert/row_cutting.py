"""Places of a row of text where no token and no rule of BERT's goes across.

Behind white space, before a Chinese character that is a word by itself, and between two characters
of ASCII of which the first is punctuation: nothing joins them, and no word goes on there.
"""

import functools

import numpy as np

WINDOW = 64 << 10  # bytes that are looked at together


@functools.cache
def _byte_classes() -> np.ndarray:
    """uint8[256]: 1 for white space, 2 for punctuation to cut behind, 4 for what may be behind it.

    8 for the first bytes of U+5000 to U+8FFF, all of them Chinese characters.
    """
    classes = np.zeros(256, np.uint8)
    classes[list(b'\t\n\r ')] = 1
    for code in range(0x21, 0x7F):
        character = chr(code)
        # To lower() a sigma ends a word even if some punctuation and more letters are behind it.
        parts_words = f'AΣ{character}A'.lower()[1] == 'ς'
        is_mark = not character.isalnum()
        classes[code] = 4 | (2 if is_mark and parts_words else 0)
    classes[0xE5:0xE9] = 8
    return classes


def cut_places(text: np.ndarray, start: int, end: int, split_cjk: bool, spaces: bool) -> np.ndarray:
    """Returns the places behind `start`, int64[...], where text[start:end] may be cut.

    Args:
        text: uint8, valid UTF-8 from start to end.
        start: where a character begins.
        end: where one ends, behind all places.
        split_cjk: Chinese characters are words by themselves.
        spaces: only behind white space, or before such characters.
    """
    classes = _byte_classes()[text[start:end]]
    before, behind = classes[:-1], classes[1:]
    may_cut = before & 1 != 0
    if split_cjk:
        may_cut |= behind & 8 != 0
    if not spaces:
        may_cut |= (before & 2 != 0) & (behind & 4 != 0)
    return np.flatnonzero(may_cut) + (start + 1)


class RowCuts:
    """Where one row may be cut, other than within its special tokens."""

    def __init__(
        self, text: np.ndarray, split_cjk: bool, special: tuple[np.ndarray, np.ndarray] | None
    ):
        """Takes the starts and ends of special tokens, uint64 each, or None if there are none."""
        self._text, self._split_cjk = text, split_cjk
        self._special = special

    def between(self, start: int, end: int) -> np.ndarray:
        """Returns the places behind `start` and before `end`."""
        has_special = self._special is not None
        places = cut_places(self._text, start, end, self._split_cjk, has_special)
        if has_special and len(self._special[0]):
            starts, ends = (each.astype(np.int64) for each in self._special)
            # A place is within one that starts before it and ends behind it.
            last = np.searchsorted(starts, places, 'left') - 1
            places = places[(last < 0) | (ends[last] <= places)]
        return places

    def next(self, start: int, end: int) -> int:
        """Returns the last place of those within reach of `start`, else the first, else `end`."""
        window = start
        while end - window > WINDOW:
            # One byte before the window is what the first place would be behind.
            places = self.between(max(start, window - 1), window + WINDOW)
            if len(places):
                return int(places[-1 if window == start else 0])
            window += WINDOW
        places = self.between(max(start, window - 1), end) if window > start else []
        return int(places[0]) if len(places) else end
