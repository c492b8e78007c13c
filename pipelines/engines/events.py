"""Events that stages, learners, filters and downloads report, each with its sentence."""

import logging
from dataclasses import dataclass

from pipelines.engines.progress import News


@dataclass(frozen=True)
class RowsFiltered(News):
    """Filters dropped rows of a split, or made several of one.

    Attributes:
        split: whose.
        lines: that it has.
        filtered: by filter, what it dropped.
        added: rows that came of others.
    """

    split: str
    lines: int
    filtered: tuple[tuple[str, int], ...]
    added: int

    def __str__(self) -> str:
        parts = [f'{name} dropped {count}' for name, count in self.filtered]
        if self.added:
            parts.append(f'{self.added} came of others')
        return f'filters: {self.split}: of {self.lines} lines, {", ".join(parts)}'


@dataclass(frozen=True)
class DroppedRowsKept(News):
    """Rows that a filter dropped are in a file."""

    rows: int
    path: str

    def __str__(self) -> str:
        return f'{self.rows} rows that a filter dropped: {self.path}'


@dataclass(frozen=True)
class AlreadyDone(News):
    """The results of a stage are there."""

    stage: str
    paths: tuple[str, ...]

    def __str__(self) -> str:
        return f'{self.stage}: already done in {", ".join(self.paths)}'


@dataclass(frozen=True)
class CountsMade(News):
    """A COUNTS folder is whole."""

    tokens: int
    distinct: int
    path: str

    def __str__(self) -> str:
        return f'count: {self.tokens} tokens, {self.distinct} distinct, in {self.path}'


@dataclass(frozen=True)
class VocabularySampled(News):
    """A vocabulary was counted from a part of what there is.

    Attributes:
        how: it was asked for.
        parts: (what, lines taken, lines there are); `what` is empty where there is one part.
    """

    how: str
    parts: tuple[tuple[str, int, int], ...]

    def __str__(self) -> str:
        told = ' and '.join(
            f'{taken:,} of {lines:,} lines{f" of {what}" if what else ""}'
            for what, taken, lines in self.parts
        )
        return f'the vocabulary was counted from {told} (--vocab-sample {self.how})'


@dataclass(frozen=True)
class VocabularyMade(News):
    """A vocabulary's file is whole."""

    size: int
    path: str

    def __str__(self) -> str:
        return f'vocab: {self.size} entries in {self.path}'


@dataclass(frozen=True)
class PiecesCounted(News):
    """A table of pieces is whole, and so are their ids."""

    pieces: int
    path: str
    entries: int
    entries_path: str

    def __str__(self) -> str:
        return (
            f'count: {self.pieces} pieces in {self.path}, ids of {self.entries} entries in '
            f'{self.entries_path}'
        )


@dataclass(frozen=True)
class SplitEncoded(News):
    """All shards of a split are there: how many lines it has, and what became of them."""

    split: str
    lines: int
    examples: int
    empty: int
    folder: str

    def __str__(self) -> str:
        return (
            f'encode: {self.split}: {self.lines} lines, {self.examples} examples, '
            f'{self.empty} empty, in {self.folder}'
        )


@dataclass(frozen=True)
class UnknownTokens(News):
    """Tokens of a split that the vocabulary does not have.

    Attributes:
        split: whose.
        unknown: ids that stand for them.
        ids: of all its text.
        words: the commonest of them, with their counts.
    """

    split: str
    unknown: int
    ids: int
    words: tuple[tuple[str, int], ...]

    @property
    def level(self) -> int:
        return logging.WARNING if self.unknown * 100 > self.ids else logging.INFO

    def __str__(self) -> str:
        said = f'encode: {self.split}: {self.unknown} of {self.ids} ids are the unknown token'
        if self.level == logging.INFO:
            return said
        words = ', '.join(f'{word!r} {count}' for word, count in self.words)
        return f'{said}, {self.unknown / self.ids:.1%}; the commonest are {words}'


@dataclass(frozen=True)
class LinesLeftOut(News):
    """Lines that could not be used are in a file."""

    level = logging.WARNING

    lines: int
    path: str

    def __str__(self) -> str:
        left_out = 'line was' if self.lines == 1 else 'lines were'
        return f'{self.lines} {left_out} left out: {self.path}'


@dataclass(frozen=True)
class SizeMissed(News):
    """A vocabulary is not of the size asked for.

    Attributes:
        label: the vocabulary's file name.
        size: what it has.
        target: what was asked for.
        near: (min-count, size) of what can be had around that.
        smallest: the size that none gets below, if there is one.
        searched: whether others could be had, at other min-counts.
    """

    level = logging.WARNING

    label: str
    size: int
    target: int
    near: tuple[tuple[int, int], ...]
    smallest: int | None
    searched: bool = True

    def __str__(self) -> str:
        if not self.searched:
            return (
                f'{self.label} has {self.size} entries, asked for {self.target}: there are no more'
            )
        near = ' and '.join(f'{size} at min-count {count}' for count, size in self.near)
        below = self.smallest is not None and self.target < self.smallest
        floor = f'; no fewer than {self.smallest} are possible' if below else ''
        return (
            f'{self.label} has {self.size} entries, asked for {self.target}: reachable around it '
            f'are {near or "no others"}{floor}'
        )


@dataclass(frozen=True)
class RulesAssumed(News):
    """Count files do not record how their tokens were found."""

    label: str
    paths: tuple[str, ...]
    scheme: str
    rules: str

    def __str__(self) -> str:
        which = f'{len(self.paths)} count files do not record'
        if len(self.paths) == 1:
            which = f'{self.paths[0]} does not record'
        return (
            f'{self.label}: {which} how tokens were found: they are taken for those of --scheme '
            f'{self.scheme} ({self.rules})'
        )


@dataclass(frozen=True)
class LearnerChosen(News):
    """Where a vocabulary is learned, and why there."""

    label: str
    where: str
    reason: str

    def __str__(self) -> str:
        return f'{self.label}: learning {self.where}: {self.reason}'


@dataclass(frozen=True)
class VocabularyLearned(News):
    """A search is over: what it took, and the bytes of memory that it was thought to take."""

    label: str
    seconds: float
    peak_bytes: int
    predicted_bytes: int

    def __str__(self) -> str:
        return (
            f'{self.label}: learned in {self.seconds:.1f} s; this process has held up to '
            f'{self.peak_bytes >> 20} MB, {self.predicted_bytes >> 20} MB were predicted'
        )


@dataclass(frozen=True)
class SearchWidened(News):
    """A search goes on beyond the min-count where Tensor2Tensor's ends."""

    label: str
    target: int
    min_count: int

    def __str__(self) -> str:
        return (
            f'{self.label}: still above {self.target} at min-count {self.min_count}, where '
            'Tensor2Tensor ends; searching on (--min-count-range 1:1000 forbids it)'
        )


@dataclass(frozen=True)
class RoundEnded(News):
    """A search has looked at one more vocabulary."""

    label: str
    number: int
    min_count: int
    size: int
    target: int
    seconds: float

    def __str__(self) -> str:
        return (
            f'{self.label}: round {self.number}: min-count {self.min_count} gives {self.size} '
            f'entries of {self.target} ({self.size - self.target:+d}) in {self.seconds:.1f} s'
        )


@dataclass(frozen=True)
class RoundFound(News):
    """A round is there from a run before."""

    label: str
    number: int
    min_count: int

    def __str__(self) -> str:
        return (
            f'{self.label}: round {self.number} at min-count {self.min_count} was finished by an '
            'earlier run'
        )


@dataclass(frozen=True)
class TokensSurveyed(News):
    """A learner on Beam knows what it is to learn from."""

    label: str
    tokens: int
    seconds: float

    def __str__(self) -> str:
        return f'{self.label}: {self.tokens} tokens surveyed in {self.seconds:.1f} s'


@dataclass(frozen=True)
class TablesStored(News):
    """A learner on Beam has the tables of its first iteration."""

    label: str
    groups: int
    stored_bytes: int
    predicted_bytes: int
    seconds: float

    def __str__(self) -> str:
        return (
            f'{self.label}: first tables of {self.groups} groups take {self.stored_bytes >> 20} '
            f'MB, predicted {self.predicted_bytes >> 20} MB, in {self.seconds:.1f} s'
        )


@dataclass(frozen=True)
class PassesHalved(News):
    """A worker of a learner would have sent more than it may."""

    label: str
    most_bytes: int

    def __str__(self) -> str:
        return (
            f'{self.label}: a worker had more than {self.most_bytes >> 20} MB to send; taking '
            'fewer groups at once'
        )


@dataclass(frozen=True)
class FileFetched(News):
    """A file is whole in the work folder."""

    name: str
    bytes: int
    path: str

    def __str__(self) -> str:
        return f'fetched {self.name}: {self.bytes} bytes, in {self.path}'


@dataclass(frozen=True)
class FetchResumed(News):
    """A file was begun before, and the rest of it is asked for."""

    name: str
    bytes: int

    def __str__(self) -> str:
        return f'going on with {self.name} after {self.bytes} bytes'


@dataclass(frozen=True)
class FileChanged(News):
    """A file of the work folder is not the one that came, or not the one that is asked for now."""

    level = logging.WARNING

    name: str
    path: str

    def __str__(self) -> str:
        return f'{self.path} is not as it was fetched, or not what is asked for; {self.name} is fetched again'


@dataclass(frozen=True)
class FetchAwaited(News):
    """Another run fetches the same file into the same work folder."""

    level = logging.WARNING

    said: str

    def __str__(self) -> str:
        return f'waiting: {self.said}'
