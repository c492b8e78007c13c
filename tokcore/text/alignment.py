"""Text that knows where its characters come from, changed as `tokenizers` changes it.

`tokenizers` writes a change as characters, each with a number: 0 takes the place of the next one, -n
also removes n after that, and 1 is added, with the span of what is before it. So of composed characters
the first has the span, and of decomposed ones all have it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tokcore.text.unicode import NEWER, age_table
from tokcore.text.unicode_normalization import NormalForm

Span = tuple[int, int]
"""Where something is in a text: its first character, and the one after its last."""

_DECOMPOSED: dict[NormalForm, NormalForm] = {'NFC': 'NFD', 'NFKC': 'NFKD'}

Changes = Iterable[tuple[str, int]]


class AlignedText(NamedTuple):
    """A text, and for each of its characters what of the original became it.

    Attributes:
        text: the text.
        spans: of its characters.
        start: where the part of the original that became this text begins.
    """

    text: str
    spans: list[Span]
    start: int = 0

    @classmethod
    def of(cls, text: str) -> AlignedText:
        """Returns an original text; as in tiktoken, surrogates are joined, or become U+FFFD."""
        joined, spans, place = joined_surrogates(text), [], 0
        for character in joined:
            size = 2 if character > '\uffff' and text[place] <= '\uffff' else 1
            spans.append((place, place + size))
            place += size
        return cls(joined, spans)

    def part(self, first: int, last: int) -> AlignedText:
        """Returns the characters from `first` up to `last`."""
        spans = self.spans[first:last]
        return AlignedText(self.text[first:last], spans, spans[0][0] if spans else self.start)

    def changed(self, changes: Changes, skipped: int = 0) -> AlignedText:
        """Returns the text after changes; the first `skipped` characters are removed."""
        characters, spans, place = [], [], skipped
        for character, change in changes:
            characters.append(character)
            if change > 0:
                spans.append(self._span_before(place))
            else:
                spans.append(self.spans[place])
                place += 1 - change
        return self._replace(text=''.join(characters), spans=spans)

    def _span_before(self, place: int) -> Span:
        return self.spans[place - 1] if place else (self.start, self.start)

    def mapped(self, table: Callable[[str], str]) -> AlignedText:
        """Returns the text with another string, which may be empty, for each of its characters."""
        changes: list[tuple[str, int]] = []
        skipped = 0
        for character in self.text:
            new = table(character)
            changes += [(each, int(number > 0)) for number, each in enumerate(new)]
            if not new and changes:
                changes[-1] = changes[-1][0], changes[-1][1] - 1
            skipped += not changes
        return self.changed(changes, skipped)

    def prepended(self, prefix: str) -> AlignedText:
        """Returns the text with a prefix; an empty one stays so."""
        if not self.text:
            return self
        return self._replace(
            text=prefix + self.text, spans=self.spans[:1] * len(prefix) + self.spans
        )

    def replaced(self, matches: Iterable[tuple[int, int]], content: str) -> AlignedText:
        """Returns the text with other content for all matches, which are places in it, in order."""
        text, spans, end = '', [], 0
        for start, stop in matches:
            text += self.text[end:start] + content
            spans += self.spans[end:start]
            end = stop
            spans += [self._span_before(end)] * len(content)
        return self._replace(text=text + self.text[end:], spans=spans + self.spans[end:])

    def normalized(self, form: NormalForm) -> AlignedText:
        """Returns the text in a normal form of Unicode."""
        changes = _decomposed(self.text, _DECOMPOSED.get(form, form), NEWER)
        return self.changed(_composed(changes) if form in _DECOMPOSED else changes)

    def decomposed_by_9(self) -> AlignedText:
        """Returns the text in the form NFD of Unicode 9, in which newer characters stay as they are."""
        return self.changed(_decomposed(self.text, 'NFD', 9))


def joined_surrogates(text: str) -> str:
    """Returns a text with a character for each pair of surrogates, and U+FFFD for others."""
    return text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')


def _decomposed(text: str, form: NormalForm, age: int) -> Iterator[tuple[str, int]]:
    pending: list[tuple[str, int]] = []
    for character in text:
        if age_table()[ord(character)] > age:
            yield from sorted(pending, key=_class)
            pending.clear()
            yield character, 0
            continue
        for number, each in enumerate(unicodedata.normalize(form, character)):
            if not unicodedata.combining(each):
                yield from sorted(pending, key=_class)
                pending.clear()
            pending.append((each, int(number > 0)))
    yield from sorted(pending, key=_class)


def _class(change: tuple[str, int]) -> int:
    return unicodedata.combining(change[0])


def _composed(changes: Changes) -> Iterator[tuple[str, int]]:
    """Composes each character with the starter before it, unless one between them blocks it."""
    starter: list[tuple[str, int]] = []  # and the marks after it that were not composed with it
    for character, change in changes:
        kind = unicodedata.combining(character)
        if starter and (len(starter) == 1 or _class(starter[-1]) < kind):
            composed = unicodedata.normalize('NFC', starter[0][0] + character)
            if len(composed) == 1:
                starter[0] = composed, starter[0][1] + change - 1
                continue
        if starter and kind:
            starter.append((character, change))
            continue
        yield from starter
        starter = [] if kind else [(character, change)]
        if kind:
            yield character, change
    yield from starter
