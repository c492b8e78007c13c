"""Each format in each container, sound and damaged: the same counts as by the plain rules, or a sentence."""

import json
import random
from collections.abc import Sequence

from plain.contents import READ, REFUSED, joint_verdict
from plain.formats import FORMATS
from plain.lines import SplitRows

from . import results
from .archives import MEMBERS, PACKERS
from .containers import CONTAINERS, damaged
from .room import Room, Violation

_LONGEST = 16 << 20  # the default of --max-line-size

SMALL_FILE_BYTES = 700 << 20
"""What a command may hold that reads some hundred kilobytes at most, whatever these claim to be."""


def attack_formats(room: Room, dice: random.Random) -> None:
    """Counts sound files: rejected lines are left out, and every line is accounted for."""
    _count_corpus(room, dice, is_damaged=False)


def attack_damaged_files(room: Room, dice: random.Random) -> None:
    """Counts files with some of their bytes changed: no text is read that a plain reader does not find."""
    _count_corpus(room, dice, is_damaged=True)


def _count_corpus(room: Room, dice: random.Random, is_damaged: bool) -> None:
    """Counts a corpus of any format, stored in any way."""
    drawn = FORMATS[dice.choice(list(FORMATS))](dice)
    spoiled = dice.randrange(len(drawn.files)) if is_damaged else None
    words, paths, texts = [], [], []
    is_known = drawn.knows_damaged or not is_damaged
    for place, (role, text) in enumerate(drawn.files.items()):
        known_by = '.sgm' if role.startswith('sgm-') else ''  # SGM is known by its name
        if drawn.is_packed and dice.random() < 0.3:
            ending, member = dice.choice(list(PACKERS)), dice.choice(MEMBERS) + known_by
            name, inside = f'corpus.{role}{ending}', f'!{member}'
            stored = PACKERS[ending](dice, text, member)
            found: bytes | None = text
            if place == spoiled:
                stored, is_known = damaged(dice, stored), False
        else:
            container = CONTAINERS[dice.choice(list(CONTAINERS))]
            container = container if drawn.is_packed else CONTAINERS['plain']
            name, inside = f'corpus.{role}{known_by}{dice.choice([container.ending, ""])}', ''
            stored, found = container.pack(dice, text), text
            if place == spoiled:
                stored = damaged(dice, stored)
                found = container.text_in(stored, name)
        room.write(name, stored)
        words += [f'--{role.removeprefix("sgm-")}', name + inside]
        paths.append(name + inside)
        texts.append(found)
    longest = dice.choice([_LONGEST, _LONGEST, 50, 1000, 64 << 10])
    words += [*drawn.words, *_draw_reading(dice, longest, max(map(len, drawn.files.values())))]
    expected: SplitRows | None = NOT_KNOWN
    if is_known:
        known = [text for text in texts if text is not None]
        is_sound = len(known) == len(texts)
        expected = drawn.rows_of([*zip(paths, known)], longest) if is_sound else None
        expected = expected if expected and expected.rows else None
    if 'parquet' not in drawn.files and expected is not None:
        verdict = joint_verdict(text for text in texts if text is not None)
        expected = expected if verdict == READ else None if verdict == REFUSED else NOT_KNOWN
    count_drawn(room, words, paths, drawn.sides, expected)


def _draw_reading(dice: random.Random, longest: int, size: int) -> list[str]:
    words = ['--on-error=skip', *(['--max-line-size', str(longest)] if longest != _LONGEST else [])]
    if dice.random() < 0.5:
        # A hundred items at most, each of which takes Beam a millisecond or two.
        words += ['@item-size', str(max(size // dice.choice([1, 3, 20, 100]), 1))]
    if dice.random() < 0.5:
        words += ['--workers', str(dice.randint(1, 3))]
    return words


NOT_KNOWN = SplitRows()


def count_drawn(
    room: Room, words: Sequence[str], paths: Sequence[str], sides: int,
    expected: SplitRows | None,
) -> None:  # fmt: skip
    """Counts a corpus with the given words; its rows are the expected ones, or it is refused."""
    statuses = [2] if expected is None else [0, 2] if expected is NOT_KNOWN else [0]
    ended = room.run(
        'count', *words, '--output', 'counts',
        statuses=statuses, may_change=['counts', 'counts.rejected'],
    )  # fmt: skip
    if ended.peak > SMALL_FILE_BYTES:
        raise Violation(f'{ended.peak >> 20} MiB for small files')
    if ended.status == 2:
        if not any(path.partition('!')[0] in ended.complaints[0] for path in paths):
            raise Violation(f'no file is named: {ended.complaints[0]}')
        return
    manifest = json.loads((room.here / 'counts' / 'tokbeam.json').read_bytes())
    for each in manifest['lines']:
        _check_conservation(each)
    if expected is not NOT_KNOWN:
        results.check_counts(room.here / 'counts', expected, range(sides))
        results.check_lines(manifest, room.here / 'counts.rejected', {'train': expected})


def _check_conservation(tally: dict) -> None:
    numbers = {name: value for name, value in tally.items() if name not in ('split', 'lines')}
    if sum(numbers.values()) != tally['lines']:
        raise Violation(f'{tally["lines"]} lines became {numbers}')
