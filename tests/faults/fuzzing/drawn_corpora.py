"""Corpora of one to three splits with what a job must make of them."""

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass

from plain import drawn_text
from plain.lines import NamedText, SplitRows, lines_of, paired_rows, single_rows

from .room import Room


@dataclass(frozen=True)
class DrawnFile:
    path: str  # as it is given
    text: NamedText
    is_damaged: bool


@dataclass(frozen=True)
class DrawnSplit:
    """One split: its files by the option that names them, and the columns it is read by."""

    name: str
    files: dict[str, list[DrawnFile]]  # 'text', 'tsv', or 'source' and 'target'
    patterns: dict[str, list[str]]  # what is given for them
    columns: tuple[int, int] | None
    columns_are_given: bool

    @property
    def is_damaged(self) -> bool:
        return any(file.is_damaged for files in self.files.values() for file in files)

    @property
    def is_unequal(self) -> bool:
        if 'source' not in self.files:
            return False
        return any(
            len(lines_of(source.text.text)) != len(lines_of(target.text.text))
            for source, target in zip(self.files['source'], self.files['target'], strict=True)
        )

    @property
    def sides(self) -> int:
        return 1 if 'text' in self.files else 2

    @property
    def texts(self) -> list[bytes]:
        return [file.text.text for files in self.files.values() for file in files]

    def arguments(self) -> list[str]:
        prefix = '--' if self.name == 'train' else f'--{self.name}-'
        words = []
        for role, patterns in self.patterns.items():
            is_single = self.name != 'train' and 'source' not in self.patterns
            words += [f'--{self.name}' if is_single else prefix + role, *patterns]
        if self.columns_are_given:
            words += ['--columns', '{},{}'.format(*self.columns)]
        return words

    def rows(self, longest: int) -> SplitRows:
        """Returns what the lines become, where no file is damaged and no pair unequal."""
        if 'source' in self.files:
            return paired_rows(
                *([file.text for file in self.files[role]] for role in ('source', 'target')),
                longest,
            )
        [files] = self.files.values()
        return single_rows([file.text for file in files], self.columns, longest)


def draw_corpus(room: Room, dice: random.Random, splits: Sequence[str]) -> list[DrawnSplit]:
    """Draws and writes the splits of a corpus; all of them are pairs, or none."""
    is_text = dice.random() < 0.4
    drawn: list[DrawnSplit] = []
    for name in splits:
        # Files of other splits have the format of the training corpus, or are pairs of files.
        is_bitext = bool(drawn) and drawn[0].columns is None
        kind = 'text' if is_text else 'bitext' if is_bitext else dice.choice(['tsv', 'bitext'])
        drawn.append(_draw_split(room, dice, name, kind, drawn[0].columns if drawn else None))
    return drawn


def _draw_split(
    room: Room, dice: random.Random, name: str, kind: str, trained: tuple[int, int] | None
) -> DrawnSplit:
    columns = None
    is_given = False
    if kind == 'tsv':
        is_given = trained is None and dice.random() < 0.4
        # The columns given for training go for the other splits, too.
        columns = dice.choice([(0, 1), (1, 0), (2, 0), (0, 2)]) if is_given else trained or (0, 1)
    count = dice.choice([1, 1, 1, 2, 3])
    files: dict[str, list[DrawnFile]] = {}
    if kind == 'bitext':
        texts = [_texts_of_pair(dice) for _ in range(count)]
        files['source'] = [
            _write(room, dice, f'{name}.{place}.s', pair[0]) for place, pair in enumerate(texts)
        ]
        files['target'] = [
            _write(room, dice, f'{name}.{place}.t', pair[1]) for place, pair in enumerate(texts)
        ]
    else:
        wide = 1 if columns is None else max(columns) + dice.choice([1, 1, 2])
        files[kind] = [
            _write(room, dice, f'{name}.{place}', drawn_text.text(dice, wide))
            for place in range(count)
        ]
    patterns = {}
    for role, each in files.items():
        paths = [file.path for file in each]
        is_glob = dice.random() < 0.2
        ending = {'source': 's*', 'target': 't*'}.get(role, '*')
        patterns[role] = [f'corpus/{name}.*{ending}'] if is_glob else paths
    return DrawnSplit(name, files, patterns, columns, is_given)


def _texts_of_pair(dice: random.Random) -> tuple[bytes, bytes]:
    lines = drawn_text.text(dice, 2).split(b'\n')
    pairs = [line.partition(b'\t')[::2] for line in lines]
    texts = [b'\n'.join(pair[side] for pair in pairs) for side in (0, 1)]
    if dice.random() < 0.05:
        side = dice.randrange(2)
        texts[side] = drawn_text.mutated(dice, texts[side])
    return texts[0], texts[1]


def _write(room: Room, dice: random.Random, name: str, text: bytes) -> DrawnFile:
    is_damaged = False
    stored = text
    if dice.random() < 0.3:
        stored, is_damaged = drawn_text.zipped(dice, text)
        name += dice.choice(['.gz', ''])
    elif text.startswith(b'\x1f\x8b'):
        is_damaged = True  # which no text can begin with
    path = os.path.join('corpus', name)
    room.write(path, stored)
    return DrawnFile(path, NamedText(name, text), is_damaged)
